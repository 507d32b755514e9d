"""Quotas, bounds, overload and overrides over REST."""

import httpx2

from scheduler.models import AuditEvent, Pool, PoolState
from tests.api.conftest import Site


def test_a_tenants_limits_are_declared_edited_and_shown_with_their_use(admin: httpx2.Client) -> None:
    quota = {"start_rate": 5, "max_in_flight": 2, "max_queued": 2}
    made = admin.post("/tenants", json={"slug": "hooli", "quota": quota})
    assert made.status_code == 201, made.text
    shown = {name: value for name, value in made.json()["quota"].items() if value is not None}
    assert shown == {**quota, "start_rate": 5.0, "start_burst": 5.0, "alert_at": [0.8, 1.0]}
    for _ in range(2):
        assert admin.post("/tasks", json={"pool": "llm", "payload": 1, "tenant": "hooli"}).status_code == 202
    full = admin.post("/tasks", json={"pool": "llm", "payload": 1, "tenant": "hooli"})
    assert (full.status_code, full.json()["code"]) == (429, "overloaded")
    assert full.json()["errors"][0]["loc"] == ["tenant"]
    assert "max_queued is 2" in full.json()["detail"]
    assert 1 <= int(full.headers["Retry-After"]) <= 60
    use = admin.get("/tenants/hooli").json()["use"]
    assert use == {"in_flight": 0, "queued": 2, "start_level": 5.0}
    edit = {"version": 1, "quota": {"max_queued": None, "start_rate": None}, "reason": "campaign"}
    edited = admin.patch("/tenants/hooli", json=edit).json()
    assert {name for name, value in edited["quota"].items() if value is not None} == {"max_in_flight", "alert_at"}
    assert edited["use"]["start_level"] is None
    assert admin.patch("/tenants/hooli", json=edit).json()["code"] == "version_conflict"
    assert admin.post("/tasks", json={"pool": "llm", "payload": 1, "tenant": "hooli"}).status_code == 202
    event = AuditEvent.objects.get(subject="tenant:hooli", action="tenant.edit")
    assert event.before == {"max_queued": 2, "start_rate": 5.0, "start_burst": 5.0}
    assert event.after == {"max_queued": None, "start_rate": None, "start_burst": None}
    assert event.reason == "campaign"


def test_faults_of_limits_are_named(admin: httpx2.Client) -> None:
    body = {"slug": "faulty", "quota": {"start_burst": 3}}
    assert admin.post("/tenants", json=body).json()["errors"][0]["loc"] == ["quota", "start_burst"]
    for quota in ({"start_rate": -1}, {"max_queued": -1}, {"max_in_flight": 1.5}, {"start_rate": 1, "start_burst": 0}):
        refused = admin.post("/tenants", json={"slug": "faulty", "quota": quota})
        assert refused.status_code == 422, quota
    assert admin.get("/tenants/faulty").status_code == 404


def test_nobody_sees_or_edits_the_limits_of_others(site: Site, api: httpx2.Client) -> None:
    with site.client(site.rival) as rival:
        assert rival.get("/tenants/acme").status_code == 404
        assert {t["slug"] for t in rival.get("/tenants").json()["tenants"]} == {"globex"}
    for method, path in (("PATCH", "/tenants/acme"), ("POST", "/resources/openai/override")):
        assert api.request(method, path, json={"version": 1, "rate": 1.0}).status_code == 403
    assert api.delete("/resources/openai/override").status_code == 403


def test_a_suspended_tenant_submits_reads_and_waits(site: Site, admin: httpx2.Client) -> None:
    version = admin.get("/tenants/globex").json()["version"]
    edited = admin.patch("/tenants/globex", json={"version": version, "status": "suspended"}).json()
    with site.client(site.rival) as rival:
        task = rival.post("/tasks", json={"pool": "llm", "payload": 1})
        assert task.status_code == 202
        reasons = rival.get(f"/tasks/{task.json()['id']}/why").json()["reasons"]
        assert "tenant_suspended" in [r["code"] for r in reasons]
        assert rival.get("/tenants/globex").json()["use"]["queued"] == 1
    admin.patch("/tenants/globex", json={"version": edited["version"], "status": "active"})


def test_a_pools_bound_and_what_one_more_does_are_declared(admin: httpx2.Client) -> None:
    pool = {"name": "small", "executor": "python", "max_pending": 2, "overflow": "shed_lowest"}
    made = admin.post("/pools", json=pool)
    assert made.status_code == 201, made.text
    shown = made.json()
    assert (shown["max_pending"], shown["overflow"], shown["allow_degraded"]) == (2, "shed_lowest", False)
    task = {"pool": "small", "payload": 1, "tenant": "acme"}
    two = {"tasks": [{"pool": "small", "payload": n, "priority": "low"} for n in (1, 2)], "tenant": "acme"}
    low = admin.post("/tasks/batch", json=two).json()["tasks"]
    refused = admin.post("/tasks", json={**task, "priority": "low"})
    assert (refused.status_code, refused.json()["errors"][0]["loc"]) == (429, ["pool"])
    assert admin.post("/tasks", json=task).status_code == 202
    assert sorted(admin.get(f"/tasks/{t['id']}").json()["state"] for t in low) == ["ready", "shed"]
    batch = admin.post("/tasks/batch", json={"tasks": [{"pool": "small", "payload": 1}] * 2, "tenant": "acme"})
    assert batch.status_code == 429
    edited = admin.patch("/pools/small", json={"version": 1, "max_pending": 50, "overflow": "reject"}).json()
    assert (edited["max_pending"], edited["overflow"]) == (50, "reject")
    waits = admin.patch("/pools/small", json={"version": 2, "overflow": "wait"})
    assert "Only a submitter in the same process" in waits.json()["detail"]
    assert admin.patch("/pools/small", json={"version": 2, "overflow": "explode"}).status_code == 422


def test_an_overloaded_pool_says_so_to_everybody(admin: httpx2.Client) -> None:
    admin.post("/pools", json={"name": "busy", "executor": "python", "slo": {"high": 2}, "allow_degraded": True})
    PoolState.objects.create(pool=Pool.objects.get(name="busy"), level=2, degrades=True, predicted_s=9.0)
    task = {"pool": "busy", "payload": 1, "tenant": "acme"}
    low = admin.post("/tasks", json={**task, "priority": "low"})
    assert (low.status_code, low.json()["errors"][0]["loc"], low.headers["Retry-After"]) == (429, ["priority"], "9")
    taken = admin.post("/tasks", json=task).json()
    assert (taken["overload"], taken["degraded"]) == (2, True)
    overload = admin.get("/pools/busy").json()["overload"]
    assert (overload["level"], overload["predicted_wait"]) == (2, 9.0)
    assert admin.get("/pools/llm").json()["overload"]["level"] == 0


def test_an_override_goes_before_what_is_declared_until_its_time(admin: httpx2.Client) -> None:
    made = admin.post(
        "/resources",
        json={"name": "rpm", "kind": "token_bucket", "rate": 10, "burst": 100, "margin": 0, "ceilings": {"low": 0.2}},
    )
    assert (made.json()["ceilings"], made.json()["override"]) == ({"low": 0.2}, None)
    over = admin.post("/resources/rpm/override", json={"rate": 2, "for_s": 3600, "reason": "incident"}).json()
    assert (over["rate"], over["override"]["rate"], over["override"]["burst"]) == (10.0, 2.0, None)
    assert over["effective"] == {"rate": 2.0, "burst": 100.0, "permits": 0}
    assert over["refill_per_s"] == 2.0
    ended = admin.post("/resources/rpm/override", json={"rate": 2, "until": "2020-01-01T00:00:00Z"})
    assert (ended.status_code, ended.json()["errors"][0]["loc"]) == (422, ["until"])
    assert admin.post("/resources/rpm/override", json={"reason": "nothing"}).json()["code"] == "bad_override"
    assert admin.post("/resources/rpm/override", json={"permits": 3}).status_code == 422
    both = admin.post("/resources/rpm/override", json={"rate": 1, "for_s": 5, "until": "2099-01-01T00:00:00Z"})
    assert both.status_code == 422
    lifted = admin.delete("/resources/rpm/override").json()
    assert (lifted["override"], lifted["effective"]["rate"]) == (None, 10.0)
    assert admin.delete("/resources/rpm/override").json()["version"] == lifted["version"]
    actions = AuditEvent.objects.filter(subject="resource:rpm").order_by("id").values_list("action", flat=True)
    assert list(actions) == ["resource.add", "resource.override", "resource.lift_override"]
    stale = admin.patch("/resources/rpm", json={"version": 1, "rate": 5})
    assert stale.json()["code"] == "version_conflict", "an override is a change like any other"


def test_ceilings_are_checked_and_can_be_taken_away(admin: httpx2.Client) -> None:
    body = {"name": "tpd", "kind": "token_bucket", "rate": 1, "burst": 10}
    wrong = admin.post("/resources", json={**body, "ceilings": {"low": 1.0}})
    assert wrong.json()["errors"][0]["loc"] == ["ceilings", "low"]
    admin.post("/resources", json=body)
    edited = admin.patch("/resources/tpd", json={"version": 1, "ceilings": {"low": 0.5, "normal": 0.1}}).json()
    assert edited["ceilings"] == {"low": 0.5, "normal": 0.1}
    assert admin.patch("/resources/tpd", json={"version": 2, "rate": 2}).json()["ceilings"] == edited["ceilings"]
    assert admin.patch("/resources/tpd", json={"version": 3, "ceilings": None}).json()["ceilings"] is None
    semaphore = {"name": "gate", "kind": "semaphore", "permits": 1, "ceilings": {"low": 0.5}}
    assert admin.post("/resources", json=semaphore).json()["errors"][0]["loc"] == ["ceilings"]
