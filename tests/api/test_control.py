"""Pools, limits and tenants over REST."""

import httpx2

from scheduler.models import AuditEvent
from scheduler.services.autoscale import autoscale


def test_a_pool_is_declared_edited_and_told_apart_from_a_stale_edit(admin: httpx2.Client) -> None:
    made = admin.post("/pools", json={"name": "crunch", "executor": "python", "min": 2, "max": 8, "reason": "new work"})
    assert made.status_code == 201, made.text
    assert (made.json()["slots"], made.json()["version"]) == (8, 1)
    edit = {"version": 1, "slots": 4, "retry": {"max_attempts": 7}, "timeout": 9.5, "reason": "less"}
    edited = admin.patch("/pools/crunch", json=edit).json()
    assert (edited["slots"], edited["retry"]["max_attempts"], edited["timeout"], edited["version"]) == (4, 7, 9.5, 2)
    stale = admin.patch("/pools/crunch", json=edit)
    assert stale.status_code == 409
    assert (stale.json()["code"], stale.json()["sent"], stale.json()["current"]) == ("version_conflict", 1, 2)
    assert admin.patch("/pools/crunch", json={"version": 2, "timeout": None}).json()["timeout"] is None
    taken = admin.post("/pools", json={"name": "crunch", "executor": "python"})
    assert (taken.status_code, taken.json()["code"]) == (409, "name_taken")
    event = AuditEvent.objects.filter(subject="pool:crunch", action="pool.edit").earliest("id")
    assert (event.source, event.reason) == ("api", "less")
    assert event.before == {"slots": 8, "max_attempts": 3, "timeout_s": None}
    assert event.after == {"slots": 4, "max_attempts": 7, "timeout_s": 9.5}


def test_faults_of_a_pool_are_all_named(admin: httpx2.Client) -> None:
    body = {"name": "no spaces", "executor": "python", "min": 9, "max": 20_000, "lease_ttl": 0}
    problem = admin.post("/pools", json=body).json()
    assert problem["code"] == "bad_pool"
    assert {e["loc"][0] for e in problem["errors"]} == {"name", "max", "lease_ttl"}
    config = {"name": "model", "executor": "llm", "config": {"base_url": "ftp://x"}}
    assert admin.post("/pools", json=config).json()["errors"][0]["loc"] == ["config"]
    assert admin.get("/pools/model").status_code == 404


def test_a_pool_follows_its_demand_when_asked_to(admin: httpx2.Client, api: httpx2.Client) -> None:
    body = {"name": "elastic", "executor": "remote", "min": 0, "max": 50, "slo": {"high": 2}, "autoscale": {}}
    made = admin.post("/pools", json=body).json()
    assert made["slo"] == {"high": 2.0}
    assert (made["autoscale"]["target_utilization"], made["autoscale"]["max_step_up_abs"]) == (0.75, 4)
    scale = api.get("/pools/elastic/scale").json()
    assert (scale["desired"], scale["autoscaled"], scale["as_of"]) == (50, True, None)
    autoscale()
    scale = api.get("/pools/elastic/scale").json()
    assert scale["desired"] == 49
    assert scale["says"] == ["0: nothing waits and nothing arrives.", "From 50 to 49 now, on the way to 0."]
    assert scale["needs"][0] == {"kind": "arrivals", "priority": None, "slots": 0.0}
    faulty = {"version": 1, "autoscale": {"target_utilization": 7}, "slo": {"low": 1}}
    problem = admin.patch("/pools/elastic", json=faulty).json()
    assert problem["errors"][0]["loc"] == ["autoscale", "target_utilization"]
    assert admin.patch("/pools/elastic", json={"version": 1, "slo": {"urgent": 1}}).status_code == 422
    fixed = admin.patch("/pools/elastic", json={"version": 1, "autoscale": None, "slo": None}).json()
    assert (fixed["autoscale"], fixed["slo"]) == (None, None)
    assert api.get("/pools/elastic/scale").json()["desired"] == 50
    assert api.get("/pools/nope/scale").status_code == 404


def test_a_pool_says_why_it_does_not_start_more(admin: httpx2.Client, api: httpx2.Client) -> None:
    admin.post("/pools", json={"name": "quiet", "executor": "python", "slo": {"high": 2}})
    idle = api.get("/pools/quiet/why").json()
    assert [r["code"] for r in idle["reasons"]] == ["idle"]
    assert idle["classes"][1] == {
        "priority": "high",
        "waiting": 0,
        "oldest_waiting_s": None,
        "slo_s": 2.0,
        "forecast": None,
    }
    api.post("/tasks", json={"pool": "quiet", "payload": 1, "priority": "high"})
    admin.post("/pools/quiet/pause", json={"reason": "lunch"})
    waits = api.get("/pools/quiet/why").json()
    assert [r["code"] for r in waits["reasons"]] == ["pool_paused", "no_worker"]
    assert waits["reasons"][0]["text"].endswith(": lunch")
    assert waits["classes"][1]["waiting"] == 1
    assert waits["classes"][1]["oldest_waiting_s"] >= 0
    assert waits["scale"]["says"] == ["The pool is not autoscaled: it has the 10 slots that were set."]
    assert api.get("/pools/nope/why").status_code == 404


def test_an_edit_is_previewed_and_says_where_too_little_is_known(admin: httpx2.Client, api: httpx2.Client) -> None:
    admin.post("/pools", json={"name": "maybe", "executor": "python"})
    found = admin.post("/pools/maybe/preview", json={"slots": 4})
    assert found.status_code == 200, found.text
    assert "maybe" in found.json()["unknown"]
    assert "Insufficient data about maybe: fewer than 20 recent starts." in found.json()["says"]
    assert admin.get("/pools/maybe").json()["version"] == 1
    assert admin.post("/resources/openai/preview", json={"rate": 1}).status_code == 200
    assert admin.post("/resources/openai/preview", json={"rate": -1}).json()["code"] == "bad_resource"
    assert admin.post("/tenants/acme/preview", json={"weight": 3, "status": "suspended"}).json()["own"] == []
    assert admin.post("/tenants/nobody/preview", json={}).status_code == 404
    assert admin.post("/pools/maybe/preview", json={"colour": 1}).status_code == 422
    refused = api.post("/pools/maybe/preview", json={"slots": 4})
    assert (refused.status_code, refused.json()["code"]) == (403, "needs_all_tenants")


def test_pausing_is_said_once_and_undone(admin: httpx2.Client) -> None:
    admin.post("/pools", json={"name": "halt", "executor": "python"})
    paused = admin.post("/pools/halt/pause", json={"reason": "provider is down"})
    assert paused.json()["state"] == "paused"
    assert paused.json()["pause"]["reason"] == "provider is down"
    again = admin.post("/pools/halt/pause", json={"reason": "another reason"})
    assert again.json()["pause"]["reason"] == "provider is down"
    assert admin.post("/pools/halt/resume").json()["state"] == "running"
    assert admin.post("/pools/halt/resume").status_code == 200
    assert AuditEvent.objects.filter(subject="pool:halt").count() == 3
    assert admin.post("/pools/nope/pause").status_code == 404


def test_limits_are_declared_and_edited(admin: httpx2.Client) -> None:
    made = admin.post("/resources", json={"name": "tpm", "kind": "token_bucket", "rate": 10, "burst": 100})
    assert made.status_code == 201
    assert made.json()["available"] == made.json()["capacity"] == 98.0
    paused = admin.patch("/resources/tpm", json={"version": 1, "rate": 0, "burst": 0})
    assert paused.json()["paused"] is True
    assert admin.patch("/resources/tpm", json={"version": 1, "rate": 5}).status_code == 409
    wrong = admin.patch("/resources/tpm", json={"version": 2, "permits": 5})
    assert (wrong.status_code, wrong.json()["errors"][0]["loc"]) == (422, ["permits"])
    assert admin.patch("/resources/tpm", json={"version": 2, "kind": "semaphore"}).json()["errors"][0]["loc"] == [
        "kind"
    ]
    semaphore = admin.post("/resources", json={"name": "gpu", "kind": "semaphore", "permits": 3}).json()
    assert (semaphore["available"], semaphore["held"], semaphore["waiting"]) == (3.0, 0.0, 0)
    assert admin.post("/resources", json={"name": "x", "kind": "semaphore", "rate": 3}).status_code == 422
    assert {"tpm", "gpu", "openai"} <= {r["name"] for r in admin.get("/resources").json()["resources"]}


def test_tenants_are_declared_weighed_and_suspended(admin: httpx2.Client) -> None:
    made = admin.post("/tenants", json={"slug": "umbrella", "weight": 2, "time_zone": "Europe/Berlin"})
    assert made.status_code == 201
    edited = admin.patch("/tenants/umbrella", json={"version": 1, "status": "suspended", "weight": 0})
    assert (edited.json()["status"], edited.json()["weight"], edited.json()["version"]) == ("suspended", 0.0, 2)
    assert admin.patch("/tenants/umbrella", json={"version": 1, "weight": 1}).status_code == 409
    faults = admin.post("/tenants", json={"slug": "Bad Slug", "weight": -1, "time_zone": "Mars/Base"}).json()["errors"]
    assert {f["loc"][0] for f in faults} == {"slug", "weight", "time_zone"}
    task = admin.post("/tasks", json={"pool": "llm", "payload": 1, "tenant": "umbrella"}).json()["id"]
    assert "tenant_suspended" in [r["code"] for r in admin.get(f"/tasks/{task}/why").json()["reasons"]]


def test_tokens_are_checked_before_they_are_made(admin: httpx2.Client) -> None:
    assert admin.post("/tokens", json={"scopes": []}).status_code == 422
    assert admin.post("/tokens", json={"scopes": ["root"]}).status_code == 422
    assert admin.post("/tokens", json={"scopes": ["read"], "tenant": "nobody"}).status_code == 404
    assert admin.post("/tokens", json={"scopes": ["read"], "pools": ["nope"]}).json()["code"] == "unknown_pool"
    made = admin.post("/tokens", json={"scopes": ["read"]}).json()
    assert admin.delete(f"/tokens/{made['id']}").status_code == 204
    assert admin.delete(f"/tokens/{made['id']}").status_code == 404


def test_there_is_no_snapshot_before_an_engine_ran(admin: httpx2.Client) -> None:
    answer = admin.get("/snapshot")
    assert (answer.status_code, answer.json()["code"]) == (503, "no_snapshot")
    assert answer.headers["Retry-After"] == "2"
    metrics = admin.get(f"{admin.base_url.copy_with(path='/metrics')}")
    assert "cronoq_up 0" in metrics.text
