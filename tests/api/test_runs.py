"""Runs over REST: an agent's run from its creation to its end, and whose it is."""

from __future__ import annotations

import httpx2
import pytest

from tests.api.conftest import Site
from tests.api.test_access import routes

STEP = {"pool": "llm", "payload": {"n": 1}}


@pytest.fixture
def run(api: httpx2.Client) -> int:
    answer = api.post("/runs", json={"goal": {"order": 1017}, "name": "refund", "caps": {"max_steps": 3}})
    assert answer.status_code == 201
    found: int = answer.json()["id"]
    return found


def test_a_run_is_stored_with_what_its_tenant_lets_it_have(api: httpx2.Client, run: int) -> None:
    got = api.get(f"/runs/{run}").json()
    assert (got["state"], got["goal"], got["used"]) == (
        "active",
        {"order": 1017},
        {"steps": 0, "tokens": 0, "attempts": 0, "cost_usd": "0.00"},
    )
    assert got["caps"] == {
        "max_steps": 3,
        "max_width": 8,
        "max_tokens": None,
        "max_cost_usd": None,
        "wall_clock_s": None,
    }
    assert run in [r["id"] for r in api.get("/runs").json()["runs"]]


def test_the_same_key_gives_the_first_run_and_another_content_is_refused(api: httpx2.Client) -> None:
    asked = {"goal": [1], "key": "once", "caps": {"max_cost_usd": "2.50"}}
    first, second = api.post("/runs", json=asked), api.post("/runs", json=asked)
    assert (first.status_code, second.status_code) == (201, 200)
    assert second.json() == {"id": first.json()["id"], "state": "active", "duplicate": True}
    other = api.post("/runs", json={**asked, "goal": [2]})
    assert (other.status_code, other.json()["code"]) == (422, "key_reused")
    assert api.get(f"/runs/{first.json()['id']}").json()["caps"]["max_cost_usd"] == "2.50"


def test_steps_are_tasks_of_the_run_and_the_fourth_of_three_is_refused(api: httpx2.Client, run: int) -> None:
    batch = {"tasks": [{**STEP, "run": run, "effect": "write"}, {**STEP, "run": run}, {**STEP, "run": run}]}
    tasks = api.post("/tasks/batch", json=batch).json()["tasks"]
    first = api.get(f"/tasks/{tasks[0]['id']}").json()
    assert (first["run"], first["effect"]) == (run, "write")
    refused = api.post("/tasks", json={**STEP, "run": run})
    assert (refused.status_code, refused.json()["code"]) == (422, "run_steps")
    assert api.get(f"/runs/{run}").json()["steps"] == {"ready": 3}
    alone = api.post("/tasks", json={**STEP, "effect": "write"})
    assert (alone.status_code, alone.json()["code"]) == (422, "effect_without_run")


def test_a_run_is_paused_edited_killed_and_resumed_with_a_record(api: httpx2.Client, run: int) -> None:
    assert api.post(f"/runs/{run}/pause", json={"reason": "look"}).json()["state"] == "paused"
    assert api.post(f"/runs/{run}/pause").json()["code"] == "run_state"
    edited = api.patch(f"/runs/{run}", json={"version": 2, "caps": {"max_steps": 9}}).json()
    assert edited["caps"]["max_steps"] == 9
    late = api.patch(f"/runs/{run}", json={"version": 2, "caps": {"max_steps": 8}})
    assert (late.status_code, late.json()["code"]) == (409, "version_conflict")
    killed = api.post(f"/runs/{run}/kill", json={"reason": "enough"}).json()
    assert killed == {"id": run, "state": "killed", "epoch": 1, "told": 0}
    assert api.post("/tasks", json={**STEP, "run": run}).json()["code"] == "run_ended"
    assert api.post(f"/runs/{run}/resume").json()["state"] == "active"
    done = api.post(f"/runs/{run}/finish", json={"state": "succeeded", "result": {"refunded": True}}).json()
    assert done["state"] == "succeeded"
    assert api.get(f"/runs/{run}").json()["result"] == {"refunded": True}
    assert api.post(f"/runs/{run}/kill").json()["code"] == "run_ended"


def test_without_a_current_lease_nothing_is_claimed_or_written(api: httpx2.Client, run: int) -> None:
    assert api.get(f"/runs/{run}/checkpoint").json()["version"] == 0
    for method, path, more in (
        ("PUT", "checkpoint", {"checkpoint": {}}),
        ("POST", "receipts/pay/claim", {"fingerprint": "x"}),
        ("POST", "receipts/pay/commit", {"receipt": {}}),
        ("POST", "receipts/pay/abandon", {}),
    ):
        answer = api.request(method, f"/runs/{run}/{path}", json={"lease_id": 7, **more})
        assert (answer.status_code, answer.json()["code"]) == (409, "stale_lease"), path
    assert api.get(f"/runs/{run}/receipts").json() == {"receipts": []}


def test_another_tenants_run_is_not_found_on_any_route(site: Site, api: httpx2.Client, run: int) -> None:
    bodies = {
        "edit_run": {"version": 1, "caps": {}},
        "save_checkpoint": {"lease_id": 1, "checkpoint": 1},
        "claim_receipt": {"lease_id": 1, "fingerprint": "x"},
        "commit_receipt": {"lease_id": 1, "receipt": 1},
        "abandon_receipt": {"lease_id": 1},
    }
    with site.client(site.rival) as rival:
        for method, path, operation in routes(rival):
            if "/runs/1" in path:
                mine = path.replace("/runs/1", f"/runs/{run}")
                answer = rival.request(method, f"{site.url}{mine}", json=bodies.get(operation["operationId"], {}))
                assert (answer.status_code, answer.json()["code"]) == (404, "unknown_run"), operation["operationId"]
        assert run not in [r["id"] for r in rival.get("/runs").json()["runs"]]
        refused = rival.post("/tasks", json={**STEP, "run": run})
        assert (refused.status_code, refused.json()["code"]) == (422, "unknown_run")
    assert api.get(f"/runs/{run}").json()["state"] == "active"


def test_everything_is_killed_and_resumed_by_an_administrator_alone(api: httpx2.Client, admin: httpx2.Client) -> None:
    assert api.post("/kills", json={"scope": "everything"}).status_code == 403
    assert admin.post("/kills", json={"scope": "everything", "reason": "fire"}).json()["epoch"] == 1
    assert [k["scope"] for k in admin.get("/kills").json()["kills"]] == ["everything"]
    assert admin.post("/kills", json={"scope": "everything"}).json()["code"] == "killed"
    assert admin.post("/kills/resume", json={"scope": "everything"}).status_code == 200
    assert admin.get("/kills").json() == {"kills": []}
    nobody = admin.post("/kills", json={"scope": "tenant", "name": "nobody"})
    assert (nobody.status_code, nobody.json()["code"]) == (404, "unknown_tenant")


def test_a_tenants_quota_bounds_its_runs(site: Site, admin: httpx2.Client) -> None:
    made = admin.post(
        "/tenants", json={"slug": "small", "quota": {"max_steps_per_run": 5, "max_cost_per_run_usd": "0.50"}}
    )
    assert made.json()["quota"]["max_cost_per_run_usd"] == "0.50"
    usual = admin.post("/runs", json={"tenant": "small"}).json()["id"]
    caps = admin.get(f"/runs/{usual}").json()["caps"]
    assert (caps["max_steps"], caps["max_cost_usd"]) == (5, "0.50")
    more = admin.post("/runs", json={"tenant": "small", "caps": {"max_steps": 6}})
    assert (more.status_code, more.json()["code"]) == (422, "bad_caps")
