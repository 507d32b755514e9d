"""The newcomer's path without an engine: submit, look, ask why, and meet sentences instead of stack traces."""

import httpx2

CHAT = {
    "pool": "llm",
    "kind": "chat",
    "priority": "high",
    "payload": {"messages": [{"role": "user", "content": "Say hello."}]},
    "resources": {"openai": 1, "openai-concurrency": 1},
}


def test_submit_look_and_ask_why(api: httpx2.Client) -> None:
    accepted = api.post("/tasks", json=CHAT)
    assert accepted.status_code == 202, accepted.text
    body = accepted.json()
    assert body["state"] == "ready"
    assert body["duplicate"] is False

    task = api.get(f"/tasks/{body['id']}").json()
    assert task["state"] == "ready"
    assert task["tenant"] == "acme"
    assert task["resources"] == {"openai": 1.0, "openai-concurrency": 1.0}
    assert task["created_at"].endswith("Z")

    why = api.get(f"/tasks/{body['id']}/why").json()
    # Other tests may have left work that goes first.
    codes = [reason["code"] for reason in why["reasons"]]
    assert codes == (["no_worker", "behind"] if why["position"] else ["no_worker"])
    assert why["forecast"] is None

    listed = api.get("/tasks", params={"pool": "llm", "state": "ready"}).json()
    assert body["id"] in [each["id"] for each in listed["tasks"]]


def test_waiting_longer_than_the_task_takes_answers_with_where_it_stands(api: httpx2.Client) -> None:
    task = api.post("/tasks", json=CHAT).json()["id"]
    answer = api.get(f"/tasks/{task}/wait", params={"timeout_s": 0.2})
    assert answer.status_code == 200
    assert answer.json()["state"] == "ready"
    assert api.get(f"/tasks/{task}/result").status_code == 409


def test_a_cancelled_task_ends_a_wait(api: httpx2.Client) -> None:
    task = api.post("/tasks", json=CHAT).json()["id"]
    cancelled = api.post(f"/tasks/{task}/cancel", json={"reason": "changed my mind"})
    assert cancelled.json() == {"id": task, "state": "cancelled", "requested": False}
    assert api.get(f"/tasks/{task}/wait", params={"timeout_s": 60}).json()["state"] == "cancelled"
    again = api.post(f"/tasks/{task}/cancel")
    assert again.status_code == 409
    assert again.json()["code"] == "task_ended"
    assert api.post(f"/tasks/{task}/replay").json()["code"] == "not_replayable"


def test_the_docs_and_the_document_are_served_from_here(api: httpx2.Client) -> None:
    page = api.get("/docs")
    assert page.status_code == 200
    assert "http" not in page.text.replace("http://www.w3.org", "")
    document = api.get("/openapi.json").json()
    assert document["openapi"].startswith("3.1")
    assert document["paths"]["/api/v1/tasks"]["post"]["operationId"] == "submit_task"


def test_probes(api: httpx2.Client) -> None:
    root = str(api.base_url).removesuffix("/api/v1/")
    assert httpx2.get(f"{root}/healthz", trust_env=False).json() == {"status": "ok"}
    ready = httpx2.get(f"{root}/readyz", trust_env=False)
    assert ready.status_code == 200
    assert ready.json()["status"] == "degraded"
    assert {c["name"]: c["ok"] for c in ready.json()["checks"]}["engine"] is False
