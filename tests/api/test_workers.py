"""Remote workers over HTTP: who gets what, what is kept, and what a report under a lease comes to."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import httpx2
import pytest

from scheduler.engine.runner import Engine
from scheduler.policy.declarations import PoolSettings
from scheduler.services.pools import add_pool
from scheduler.services.tokens import create_token
from tests.api.conftest import Site
from tests.support.waiting import wait_until

Api = httpx2.Client
SOON = {"max": 10, "wait_s": 10}
AT_ONCE = {"max": 10, "wait_s": 0.2}


@contextmanager
def engine_in_a_thread() -> Iterator[None]:
    """An engine that leads, on a loop of its own."""
    loop = asyncio.new_event_loop()
    stop = asyncio.Event()
    engine = Engine()
    thread = threading.Thread(target=lambda: loop.run_until_complete(engine.run(stop)))
    thread.start()
    try:
        wait_until(lambda: engine.leading, timeout_s=30, what="the engine to lead")
        yield
    finally:
        loop.call_soon_threadsafe(stop.set)
        thread.join()
        loop.close()


@pytest.fixture(scope="module", autouse=True)
def leader(site: Site) -> Iterator[None]:
    """Somebody plans, and there is a pool of remote workers."""
    add_pool("remote", "remote", PoolSettings(slots_max=100, slots=100), actor="test")
    with engine_in_a_thread():
        yield


@pytest.fixture
def rival(site: Site) -> Iterator[Api]:
    """A client of globex."""
    with site.client(site.rival) as client:
        yield client


def register(api: Api, slots: int = 10, **fields: Any) -> str:
    answer = api.post("/workers", json={"owner": "test", "pools": ["remote"], "slots": slots, **fields})
    assert answer.status_code == 201, answer.text
    return str(answer.json()["id"])


def submit(api: Api, count: int = 1, **fields: Any) -> list[int]:
    tasks = [{"pool": "remote", "payload": {"n": n}, **fields} for n in range(count)]
    answer = api.post("/tasks/batch", json={"tasks": tasks})
    assert answer.status_code == 202, answer.text
    return [task["id"] for task in answer.json()["tasks"]]


def lease(api: Api, worker: str, **query: Any) -> list[dict[str, Any]]:
    answer = api.post(f"/workers/{worker}/lease", params=SOON | query)
    assert answer.status_code == 200, answer.text
    leases: list[dict[str, Any]] = answer.json()["leases"]
    return leases


def state(api: Api, task: int) -> str:
    return str(api.get(f"/tasks/{task}").json()["state"])


def finish(api: Api, leases: list[dict[str, Any]]) -> None:
    for each in leases:
        assert api.post(f"/leases/{each['lease_id']}/complete", json={"result": each["payload"]}).status_code == 200


def test_a_task_goes_to_a_worker_and_comes_back(api: Api) -> None:
    worker = register(api)
    [task] = submit(api, kind="greet", tags={"a": "b"})
    [given] = lease(api, worker)
    assert (given["task"], given["payload"], given["kind"]) == (task, {"n": 0}, "greet")
    assert (given["pool"], given["tenant"], given["attempt"], given["type"]) == ("remote", "acme", 1, "lease")
    assert state(api, task) == "running"
    done = api.post(f"/leases/{given['lease_id']}/complete", json={"result": {"said": "hello"}, "usage": {"input": 3}})
    assert (done.status_code, done.json()) == (200, {"lease_id": given["lease_id"], "state": "succeeded"})
    assert api.get(f"/tasks/{task}/result").json()["result"] == {"said": "hello"}


def test_repeated_and_late_reports_change_nothing(api: Api) -> None:
    worker = register(api)
    [task] = submit(api)
    [given] = lease(api, worker)
    path = f"/leases/{given['lease_id']}"
    first = api.post(f"{path}/complete", json={"result": 1})
    again = api.post(f"{path}/complete", json={"result": 2})
    assert (first.status_code, again.status_code, again.json()) == (200, 200, first.json())
    assert api.get(f"/tasks/{task}/result").json()["result"] == 1
    for what, body in [("heartbeat", {}), ("fail", {"class": "error", "message": "x"})]:
        late = api.post(f"/leases/{given['lease_id'] + 1_000_000}/{what}", json=body)
        assert (late.status_code, late.json()["code"]) == (409, "stale_lease")
    assert state(api, task) == "succeeded"


def test_a_worker_writes_under_its_current_lease_and_no_other(api: Api, rival: Api) -> None:
    worker = register(api)
    run = api.post("/runs", json={"goal": 1}).json()["id"]
    submit(api, run=run)
    [given] = lease(api, worker)
    assert given["run"] == run
    path = f"/leases/{given['lease_id']}"
    large = {"checkpoint": "x" * 400_000}
    assert api.post(f"{path}/checkpoint", json=large).json() == {"lease_id": given["lease_id"], "version": 1}
    assert api.post(f"{path}/checkpoint", json={"checkpoint": 2, "version": 0}).json()["code"] == "version_conflict"
    assert api.post(f"{path}/checkpoint", json={"checkpoint": "a\x00"}).json()["code"] == "bad_checkpoint"
    charge = {"call": "one", "usage": {"input_tokens": 3}}
    assert [api.post(f"{path}/charge", json=charge).json()["added"] for _ in range(2)] == [True, False]
    for what, body in (("checkpoint", {"checkpoint": 3}), ("charge", charge)):
        theirs = rival.post(f"{path}/{what}", json=body)
        assert (theirs.status_code, theirs.json()["code"]) == (409, "stale_lease")
    finish(api, [given])
    for what, body in (("checkpoint", {"checkpoint": 3}), ("charge", charge)):
        late = api.post(f"{path}/{what}", json=body)
        assert (late.status_code, late.json()["code"]) == (409, "stale_lease")
    assert api.get(f"/runs/{run}/checkpoint").json()["version"] == 1


def test_a_worker_goes_on_with_the_trace_of_the_submitter(api: Api) -> None:
    worker = register(api)
    trace = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
    body = {"pool": "remote", "payload": 1, "key": "traced"}
    first = api.post("/tasks", json=body, headers={"traceparent": trace}).json()
    again = api.post("/tasks", json=body, headers={"traceparent": trace.replace("4b", "5b")}).json()
    assert (again["id"], again["duplicate"]) == (first["id"], True)
    [given] = lease(api, worker)
    assert (given["trace"], given["tags"]) == (trace, {"traceparent": trace})
    finish(api, [given])
    api.post("/tasks/batch", json={"tasks": [{"pool": "remote", "payload": 1}]}, headers={"traceparent": "no trace"})
    [given] = lease(api, worker)
    assert "trace" not in given
    finish(api, [given])


def test_failures_are_retried_or_final_as_they_say(api: Api) -> None:
    worker = register(api)
    tasks = submit(api, 4, retry={"initial_backoff": 0.0})
    given = {each["task"]: each["lease_id"] for each in lease(api, worker)}
    while len(given) < 4:
        given |= {each["task"]: each["lease_id"] for each in lease(api, worker)}
    says = [("fail", {"class": "permanent", "message": "no such file"}), ("fail", {"class": "cancelled"})]
    says += [("fail", {"message": "broke"}), ("release", {})]
    states = [
        api.post(f"/leases/{given[task]}/{what}", json=body).json()["state"]
        for task, (what, body) in zip(tasks, says, strict=True)
    ]
    assert states == ["failed", "cancelled", "retrying", "ready"]
    again = lease(api, worker)
    while len(again) < 2:
        again += lease(api, worker)
    assert {each["task"]: each["attempt"] for each in again} == {tasks[2]: 2, tasks[3]: 1}
    finish(api, again)


def test_a_tenants_worker_gets_that_tenants_work_alone(api: Api, rival: Api, admin: Api) -> None:
    [mine], [theirs] = submit(api), submit(rival)
    worker = register(api)
    assert [each["task"] for each in lease(api, worker)] == [mine]
    assert lease(api, worker, **AT_ONCE) == []
    assert state(rival, theirs) == "ready"
    everybodys = register(admin)
    [given] = lease(admin, everybodys)
    assert (given["task"], given["tenant"]) == (theirs, "globex")
    # Neither tenant speaks for a lease of a worker that is not its own.
    for client in (api, rival):
        assert client.post(f"/leases/{given['lease_id']}/complete", json={}).json()["code"] == "stale_lease"
        assert client.post(f"/leases/{given['lease_id']}/heartbeat", json={}).json()["code"] == "stale_lease"
        assert client.post(f"/workers/{everybodys}/lease", params=AT_ONCE, json={}).json()["code"] == "unknown_worker"
    finish(admin, [given])
    assert state(rival, theirs) == "succeeded"


def test_labels_choose_the_worker_and_why_says_that_there_is_none(api: Api) -> None:
    plain = register(api)
    [task] = submit(api, labels={"gpu": "yes"})
    assert lease(api, plain, **AT_ONCE) == []
    reasons = [reason["code"] for reason in api.get(f"/tasks/{task}/why").json()["reasons"]]
    assert "no_matching_worker" in reasons
    labelled = register(api, labels={"gpu": "yes", "zone": "eu"})
    given = lease(api, labelled)
    assert [each["task"] for each in given] == [task]
    finish(api, given)


def test_slots_bound_what_a_worker_holds(api: Api) -> None:
    worker = register(api, slots=2)
    submit(api, 3)
    given = lease(api, worker)
    while len(given) < 2:
        given += lease(api, worker)
    assert len(given) == 2
    assert lease(api, worker, **AT_ONCE) == []
    finish(api, given)
    finish(api, lease(api, worker))


def test_a_cancelled_attempt_is_told_with_poll_and_heartbeat(api: Api) -> None:
    worker = register(api)
    [task] = submit(api)
    [given] = lease(api, worker)
    assert api.post(f"/leases/{given['lease_id']}/heartbeat", json={}).json()["cancel"] is False
    assert api.post(f"/tasks/{task}/cancel", json={}).json()["requested"] is True
    answer = api.post(f"/workers/{worker}/lease", params=SOON).json()
    assert answer == {"leases": [], "cancel": {str(given["lease_id"]): "cancelled"}, "drain": False}
    beat = api.post(f"/leases/{given['lease_id']}/heartbeat", json={}).json()
    assert (beat["cancel"], beat["reason"]) == (True, "cancelled")
    several = api.post(f"/workers/{worker}/heartbeat", json={"leases": [given["lease_id"], 5]}).json()
    assert several == {"kept": [given["lease_id"]], "cancel": {str(given["lease_id"]): "cancelled"}, "lost": [5]}
    assert api.post(f"/leases/{given['lease_id']}/release", json={}).json()["state"] == "cancelled"


def test_a_worker_that_does_not_know_a_lease_gives_it_back(api: Api) -> None:
    worker = register(api)
    [task] = submit(api)
    [lost] = lease(api, worker)

    def again() -> list[dict[str, Any]]:
        answer = api.post(f"/workers/{worker}/lease", params=AT_ONCE, json={"held": []}).json()
        return [each for each in answer["leases"] if each["lease_id"] != lost["lease_id"]]

    [given] = wait_until(again, what="the lease to be handed back and out again")
    assert (given["task"], given["attempt"]) == (task, 1)
    assert api.post(f"/leases/{given['lease_id']}/complete", json={}).json()["state"] == "succeeded"


def test_a_worker_that_registers_again_keeps_what_it_names_and_gives_back_the_rest(api: Api, rival: Api) -> None:
    worker = register(api)
    tasks = submit(api, 2)
    held: list[dict[str, Any]] = []

    def take() -> bool:
        held.extend(lease(api, worker, **AT_ONCE))
        return len(held) == len(tasks)

    wait_until(take, what="both leases")
    mine, lost = (each["lease_id"] for each in held)
    body = {"owner": "test", "pools": ["remote"], "slots": 10, "worker": worker, "held": [mine, 5]}
    answer = api.post("/workers", json=body).json()
    assert answer["id"] == worker
    assert (answer["kept"], answer["cancel"], answer["lost"]) == ([mine], {}, [5])
    other = rival.post("/workers", json=body).json()
    assert (other["id"] != worker, other["kept"], other["lost"]) == (True, [], [mine, 5])

    def again() -> list[dict[str, Any]]:
        return [each for each in lease(api, worker, **AT_ONCE) if each["lease_id"] != lost]

    [given] = wait_until(again, what="the lease that was not named to be handed out again")
    assert (given["task"], given["attempt"]) == (held[1]["task"], 1)
    for each in (mine, given["lease_id"]):
        assert api.post(f"/leases/{each}/complete", json={}).json()["state"] == "succeeded"


def test_what_a_worker_may_not_say_is_told_by_its_field(api: Api, site: Site, admin: Api) -> None:
    def refused(body: dict[str, Any]) -> tuple[int, str]:
        answer = api.post("/workers", json={"owner": "test", "pools": ["remote"]} | body)
        return answer.status_code, answer.json()["code"]

    assert refused({"pools": ["llm"]}) == (422, "pool_not_remote")
    assert refused({"pools": ["nowhere"]}) == (422, "unknown_pool")
    assert refused({"protocol": 7}) == (422, "unsupported_protocol")
    assert refused({"slots": 0}) == (422, "invalid")
    assert refused({"labels": {"a=b": "c"}}) == (422, "bad_label")
    bound = create_token(scopes=["work"], tenant="acme", pools=["llm"], actor="test").text
    with site.client(bound) as client:
        answer = client.post("/workers", json={"owner": "test", "pools": ["remote"]})
        assert (answer.status_code, answer.json()["code"]) == (403, "pool_not_allowed")
    assert api.post("/workers/nobody/lease", params=AT_ONCE, json={}).status_code == 404


def test_results_are_bounded_and_the_lease_stays_for_another_report(api: Api) -> None:
    worker = register(api)
    submit(api)
    [given] = lease(api, worker)
    path = f"/leases/{given['lease_id']}"
    large = api.post(f"{path}/complete", json={"result": "x" * (2**20 + 10)})
    assert (large.status_code, large.json()["code"]) == (422, "result_too_large")
    huge = api.post(f"{path}/complete", json={"result": "x" * (2**20 + 10**5)})
    assert (huge.status_code, huge.json()["code"]) == (413, "body_too_large")
    broken = api.post(
        f"{path}/complete", content=b'{"result": "\\u0000"}', headers={"content-type": "application/json"}
    )
    assert (broken.status_code, broken.json()["code"]) == (422, "bad_result")
    assert api.post(f"{path}/fail", json={"class": "permanent", "message": "too large"}).json()["state"] == "failed"


def test_workers_are_listed_and_drained_within_their_tenant(api: Api, rival: Api, admin: Api) -> None:
    worker = register(api, slots=3, labels={"gpu": "yes"})
    [mine] = [each for each in api.get("/workers").json()["workers"] if each["id"] == worker]
    assert (mine["owner"], mine["pools"], mine["labels"], mine["tenant"]) == (
        "test",
        {"remote": 3},
        {"gpu": "yes"},
        "acme",
    )
    assert worker not in [each["id"] for each in rival.get("/workers").json()["workers"]]
    assert rival.post(f"/workers/{worker}/drain", json={}).status_code == 404
    lease(api, worker, **AT_ONCE)
    assert api.post(f"/workers/{worker}/drain", json={"reason": "upgrade"}).status_code == 204

    def told() -> bool:
        return bool(api.post(f"/workers/{worker}/lease", params=AT_ONCE, json={}).json()["drain"])

    wait_until(told, what="the worker to be told")
    [task] = submit(api)
    assert lease(api, worker, **AT_ONCE) == []
    finish(api, lease(api, register(api)))
    assert state(api, task) == "succeeded"


def test_reports_come_with_the_next_poll_and_each_is_answered_by_itself(api: Api) -> None:
    # Nobody else may be given any of them, such as the worker of the test before.
    worker = register(api, labels={"reports": "polled"})
    tasks = submit(api, 4, labels={"reports": "polled"})
    first, second, third, fourth = lease(api, worker, max=4)
    reports = [
        {"type": "complete", "lease_id": first["lease_id"], "result": {"n": 1}},
        {"type": "fail", "lease_id": second["lease_id"], "class": "permanent", "message": "no"},
        {"type": "complete", "lease_id": third["lease_id"], "result": "\u0000"},
        {"type": "release", "lease_id": fourth["lease_id"], "retry_after": 60},
        {"type": "complete", "lease_id": 10**9},
    ]
    # An acknowledgement does not wait for work: this would be answered after the client has hung up.
    long = {"max": 10, "wait_s": 60}
    polled = api.post(
        f"/workers/{worker}/lease", params=long, timeout=30, json={"reports": reports, "held": [third["lease_id"]]}
    )
    assert polled.status_code == 200, polled.text
    said = {each.pop("lease_id"): each for each in polled.json()["settled"]}
    assert said[first["lease_id"]] == {"state": "succeeded"}
    assert said[second["lease_id"]] == {"state": "failed"}
    assert said[third["lease_id"]]["code"] == "bad_result"
    assert said[fourth["lease_id"]]["state"] in ("ready", "scheduled", "retrying")
    assert said[10**9] == {"stale": True, "code": "stale_lease"}
    assert api.get(f"/tasks/{tasks[0]}").json()["state"] == "succeeded"
    again = api.post(f"/workers/{worker}/lease", params=AT_ONCE, json={"reports": reports[:1]}).json()
    assert again["settled"] == [{"lease_id": first["lease_id"], "state": "succeeded"}]
    end = [{"type": "complete", "lease_id": third["lease_id"]}]
    assert api.post(f"/workers/{worker}/lease", params=AT_ONCE, json={"reports": end}).json()["settled"][0]["state"]


@pytest.mark.parametrize("report", [{"type": "hello"}, {"type": "complete"}, {"type": "fail", "lease_id": 1}])
def test_a_report_that_makes_no_sense_is_told_with_its_place_and_nothing_is_settled(
    api: Api, report: dict[str, Any]
) -> None:
    worker = register(api, labels={"reports": "odd"})
    submit(api, labels={"reports": "odd"})
    (leased,) = lease(api, worker, max=1)
    good = {"type": "complete", "lease_id": leased["lease_id"]}
    polled = api.post(f"/workers/{worker}/lease", params=AT_ONCE, json={"reports": [good, report]})
    assert (polled.status_code, polled.json()["code"]) == (422, "bad_report")
    assert polled.json()["errors"][0]["loc"][:2] == ["reports", "1"]
    assert api.post(f"/leases/{leased['lease_id']}/complete", json={"result": None}).status_code == 200
