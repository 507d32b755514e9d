"""Routes, and limits in trouble, over REST."""

import httpx2

from scheduler.models import AuditEvent, ResourceState


def test_a_route_is_declared_edited_and_used(admin: httpx2.Client) -> None:
    models = [{"model": "small", "resources": {"openai": 1}}, {"model": "large", "resources": {}}]
    made = admin.post("/routes", json={"capability": "draft", "models": models, "degraded_model": "tiny"})
    assert made.status_code == 201, made.text
    assert made.json()["models"][0] == {"model": "small", "resources": {"openai": 1.0}, "waiting": 0}
    task = {"pool": "llm", "tenant": "acme", "capability": "draft", "payload": {"messages": []}}
    assert admin.post("/tasks", json=task).status_code == 202
    assert admin.get("/routes/draft").json()["models"][0]["waiting"] == 1
    edit = {"version": 1, "models": models[1:], "reason": "small is gone"}
    edited = admin.patch("/routes/draft", json=edit).json()
    assert [each["model"] for each in edited["models"]] == ["large"]
    assert edited["degraded_model"] == "tiny"
    assert admin.patch("/routes/draft", json=edit).json()["code"] == "version_conflict"
    event = AuditEvent.objects.get(action="route.edit")
    assert (event.subject, event.reason) == ("route:draft", "small is gone")
    assert [each["capability"] for each in admin.get("/routes").json()["routes"]] == ["draft"]
    unknown = admin.post("/tasks", json={**task, "capability": "sing"})
    assert (unknown.status_code, unknown.json()["code"]) == (422, "unknown_capability")


def test_faults_of_a_route_are_named(admin: httpx2.Client) -> None:
    body = {"capability": "x", "models": [{"model": "a", "resources": {"nowhere": 1}}, {"model": "a"}]}
    refused = admin.post("/routes", json=body)
    assert refused.status_code == 422
    locs = [error["loc"] for error in refused.json()["errors"]]
    assert locs == [["models", 1, "model"], ["models", 0, "resources", "nowhere"]]
    assert admin.get("/routes/x").status_code == 404


def test_trouble_is_shown_and_reset(admin: httpx2.Client, api: httpx2.Client) -> None:
    state = ResourceState.objects.filter(resource__name="openai")
    calm = admin.get("/resources/openai").json()
    assert calm["breaker"]["state"] == "closed"
    assert (calm["pause"], calm["factor"]) == (None, 1.0)
    state.update(open_until="2100-01-01T00:00:00Z", opens=1, factor=0.5)
    assert admin.get("/resources/openai").json()["breaker"]["state"] == "open"
    assert api.post("/resources/openai/breaker/reset").status_code == 403
    reset = admin.post("/resources/openai/breaker/reset", json={"reason": "it is back"}).json()
    assert (reset["breaker"]["state"], reset["factor"], reset["version"]) == ("closed", 0.5, calm["version"] + 1)
    again = admin.post("/resources/openai/breaker/reset").json()
    assert again["version"] == reset["version"], "there is nothing to reset"
    assert admin.post("/resources/openai/factor/reset").json()["factor"] == 1.0
    paused = admin.post("/resources/openai/pause", json={"reason": "incident"}).json()
    assert (paused["paused"], paused["pause"]["reason"]) == (True, "incident")
    assert admin.post("/resources/openai/resume").json()["pause"] is None
    actions = AuditEvent.objects.filter(subject="resource:openai").order_by("id").values_list("action", flat=True)
    assert list(actions)[-4:] == [
        "resource.reset_breaker",
        "resource.reset_factor",
        "resource.pause",
        "resource.resume",
    ]
