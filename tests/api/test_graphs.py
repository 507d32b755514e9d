"""Graphs and groups over REST, up to an engine that runs them."""

from __future__ import annotations

import asyncio
from typing import Any

import httpx2
import pytest

from scheduler.engine.executors.base import Permanent
from scheduler.models import AuditEvent
from tests.api.conftest import Site
from tests.engine.running import engine
from tests.support.waiting import wait_until
from tests.support.work import make_pool


def node(key: str, *after: str | dict[str, Any], **fields: Any) -> dict[str, Any]:
    """A task of the pool `graphs` that comes after others."""
    edges = [{"key": each} if isinstance(each, str) else each for each in after]
    return {"pool": "graphs", "key": key, "payload": None, "after": edges, **fields}


async def count_or_refuse(ctx: Any, payload: Any) -> Any:
    """A map counts, or refuses; a reduce adds up what came and names what is missing."""
    if payload == "refuse":
        raise Permanent("not today")
    if ctx.upstream:
        counts = [each["result"] for each in ctx.upstream.values() if each["result"] is not None]
        return {"sum": sum(counts), "missing": list(ctx.missing), "states": [u["state"] for u in ctx.upstream.values()]}
    return payload


def wait_for(api: httpx2.Client, task: int) -> Any:
    """The task, once it has ended."""
    return api.get(f"/tasks/{task}/wait", params={"timeout_s": 20}).json()


@pytest.fixture(scope="module")
def pool(site: Site) -> None:
    """A pool that an engine in this process serves while a test runs one."""
    make_pool("graphs", slots=8)


def test_a_graph_is_shown_with_its_edges_and_explained(api: httpx2.Client, pool: None) -> None:
    batch = {"group": "shown", "tasks": [node("m1"), node("m2"), node("r", "m1", {"key": "m2", "on": "complete"})]}
    accepted = api.post("/tasks/batch", json=batch)
    assert accepted.status_code == 202, accepted.text
    body = accepted.json()
    assert (body["group"], [t["state"] for t in body["tasks"]]) == ("shown", ["ready", "ready", "blocked"])
    m1, m2, reduce = (t["id"] for t in body["tasks"])

    shown = api.get(f"/tasks/{reduce}").json()
    assert shown["group"] == "shown"
    assert shown["after"] == [
        {"key": "m1", "id": m1, "on": "success", "state": "ready", "met": None},
        {"key": "m2", "id": m2, "on": "complete", "state": "ready", "met": None},
    ]
    (reason,) = api.get(f"/tasks/{reduce}/why").json()["reasons"]
    assert (reason["code"], reason["detail"]["count"]) == ("blocked_on", 2)
    assert reason["text"] == "It waits for m1 to succeed (now ready) and m2 to end (now ready)."

    api.post(f"/tasks/{m2}/cancel")
    api.post(f"/tasks/{m1}/cancel")
    (reason,) = api.get(f"/tasks/{reduce}/why").json()["reasons"]
    assert reason["code"] == "skipped"
    assert "m1, which had to succeed and is cancelled" in reason["text"]
    group = api.get("/groups/shown").json()
    assert (group["counts"], group["total"], group["ended"]) == ({"cancelled": 2, "skipped": 1}, 3, 3)
    assert (group["join"], group["done"], group["cancelled_at"]) == ("best_effort", True, None)


@pytest.mark.parametrize(
    ("tasks", "code", "loc"),
    [
        ([node("a", "b"), node("b", "a")], "cycle", ["tasks", 0, "after", 0]),
        ([node("a", "nobody")], "unknown_dependency", ["after", 0]),
        ([node("a", {"on": "success"})], "invalid", ["tasks", 0, "after", 0]),
        ([node("a", {"key": "b", "id": 1})], "invalid", ["tasks", 0, "after", 0]),
        ([node("a", {"key": "b", "on": "never"})], "invalid", ["tasks", 0, "after", 0, "on"]),
    ],
)
def test_a_fault_in_a_graph_is_named_by_its_place(
    api: httpx2.Client, pool: None, tasks: list[Any], code: str, loc: list[Any]
) -> None:
    refused = api.post("/tasks/batch", json={"tasks": tasks})
    assert (refused.status_code, refused.json()["code"]) == (422, code)
    assert refused.json()["errors"][0]["loc"] == loc


def test_one_task_comes_after_another_by_id_and_joins_a_group(api: httpx2.Client, pool: None) -> None:
    first = api.post("/tasks", json=node("single")).json()["id"]
    after = {**node("follower", {"id": first}), "group": "pair", "join": "fail_fast"}
    assert api.post("/tasks", json=after).json()["state"] == "blocked"
    again = api.post("/tasks", json=after)
    assert (again.status_code, again.json()["duplicate"]) == (200, True)
    assert api.post("/tasks", json={**node("x"), "join": "fail_fast"}).status_code == 422
    other = api.post("/tasks", json={**node("y"), "group": "pair", "join": "best_effort"})
    assert (other.status_code, other.json()["code"]) == (422, "group_join_differs")
    api.post(f"/tasks/{first}/cancel")
    wait_until(lambda: api.get("/groups/pair").json()["counts"] == {"skipped": 1}, what="the follower to be skipped")


def test_a_group_is_cancelled_together_and_by_its_owner_alone(
    site: Site, api: httpx2.Client, admin: httpx2.Client, pool: None
) -> None:
    assert api.post("/tasks/batch", json={"group": "mine", "tasks": [node("g1"), node("g2", "g1")]}).status_code == 202
    with site.client(site.rival) as rival:
        for answer in (rival.get("/groups/mine"), rival.post("/groups/mine/cancel")):
            assert (answer.status_code, answer.json()["code"]) == (404, "unknown_group")
        assert rival.get("/groups/mine", params={"tenant": "acme"}).json()["code"] == "unknown_tenant"
        assert rival.get("/groups", params={"tenant": "acme"}).json()["code"] == "unknown_tenant"
        assert rival.get("/groups").json() == {"groups": [], "next_cursor": None}
        assert rival.post("/tasks", json=node("spy", "g1")).json()["code"] == "unknown_dependency"
    assert admin.get("/groups/mine").json()["code"] == "tenant_required"
    assert api.get("/groups", params={"limit": 1}).json()["groups"][0]["name"] == "mine"
    assert "mine" in [g["name"] for g in admin.get("/groups", params={"limit": 200}).json()["groups"]]
    assert admin.get("/groups/mine", params={"tenant": "acme"}).json()["total"] == 2
    done = api.post("/groups/mine/cancel", json={"reason": "no use"})
    assert (done.status_code, done.json()["counts"]) == (200, {"cancelled": 2})
    assert api.post("/groups/mine/cancel").json()["code"] == "group_cancelled"
    assert AuditEvent.objects.get(action="group.cancel").subject == "group:acme/mine"
    refused = api.post("/tasks/batch", json={"group": "mine", "tasks": [node("g3")]})
    assert refused.json()["code"] == "group_cancelled"


def test_a_pool_says_what_becomes_of_unknown_keys(admin: httpx2.Client) -> None:
    made = admin.post("/pools", json={"name": "waits", "executor": "python", "unknown_dependency": "await"})
    assert (made.json()["unknown_dependency"], made.json()["await_timeout"]) == ("await", None)
    edited = admin.patch("/pools/waits", json={"version": 1, "await_timeout": 5})
    assert (edited.json()["unknown_dependency"], edited.json()["await_timeout"]) == ("await", 5.0)


def test_a_map_and_a_reduce_go_through_an_engine(api: httpx2.Client, pool: None) -> None:
    maps = [node(f"map{n}", payload=n) for n in range(5)] + [node("map5", payload="refuse")]
    reduce = node("reduce", *({"key": f"map{n}", "on": "complete"} for n in range(6)))
    strict = node("strict", *(f"map{n}" for n in range(6)))
    mourner = node("mourner", {"key": "map5", "on": "failure"}, payload="sorry")
    with engine({"graphs": count_or_refuse}):
        body = {"join": "best_effort", "tasks": [reduce, strict, mourner, *maps]}
        accepted = api.post("/tasks/batch", json=body).json()
        first, second, third = (wait_for(api, task["id"]) for task in accepted["tasks"][:3])
    assert first["state"] == "succeeded", first
    assert first["result"] == {"sum": 10, "missing": ["map5"], "states": ["succeeded"] * 5 + ["failed"]}
    assert [each["met"] for each in first["after"]] == [True] * 6
    assert (second["state"], second["finished_at"] is not None) == ("skipped", True)
    assert (third["state"], third["result"]) == ("succeeded", {"sum": 0, "missing": ["map5"], "states": ["failed"]})
    assert accepted["group"].startswith("batch-")


def test_a_group_that_fails_fast_stops_what_waits_and_what_runs(api: httpx2.Client, pool: None) -> None:
    async def handle(ctx: Any, payload: Any) -> Any:
        if payload == "refuse":
            raise Permanent("not today")
        # Until it is told to stop.
        await asyncio.Event().wait()

    tasks = [node("endless", payload="endless"), node("last", "endless"), node("refuses", payload="refuse")]
    with engine({"graphs": handle}):
        accepted = api.post("/tasks/batch", json={"group": "fast", "join": "fail_fast", "tasks": tasks}).json()
        ended = [wait_for(api, task["id"])["state"] for task in accepted["tasks"]]
    assert ended == ["cancelled", "cancelled", "failed"]
    group = api.get("/groups/fast").json()
    assert (group["cause"], group["done"]) == (accepted["tasks"][2]["id"], True)
