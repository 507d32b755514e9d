"""Cases that a worker in any language must pass. Outcomes are tried together; faults one after the other."""

from __future__ import annotations

import os
import signal
import time
from contextlib import ExitStack
from typing import Any, NamedTuple

import pytest

from scheduler.models import Attempt, Pool, Worker
from tests.conformance.conftest import FAULTY, TTL_S, Site, port_of
from tests.support.line import Line
from tests.support.server import running_server
from tests.support.waiting import wait_until

pytestmark = pytest.mark.acceptance

RETRY = {"max_attempts": 3, "initial_backoff": 0.0}


class Case(NamedTuple):
    """A task, and what it must come to."""

    payload: dict[str, Any]
    state: str = "succeeded"
    result: Any = None
    attempts: int = 1
    message: str = ""
    fields: dict[str, Any] = {}


def echo(value: Any) -> Case:
    return Case({"do": "echo", "value": value}, result=value)


CASES: dict[str, Case] = {
    "null": echo(None),
    "false": echo(value=False),
    "zero": echo(0),
    "an empty text": echo(""),
    "an empty list": echo([]),
    "an empty object": echo({}),
    "a nested value": echo({"a": [{"b": [1, 2.5, None, True]}], "ü": "Grüße, 世界 🙂"}),
    "a whole number of 53 bits": echo(2**53 - 1),
    "a negative fraction": echo(-0.125),
    "control characters": echo('a\tb\nc\u2028"\\'),
    "two hundred kilobytes": echo("x" * 200_000),
    "an error is tried again": Case({"do": "flaky", "times": 1}, result=2, attempts=2),
    "twice too": Case({"do": "flaky", "times": 2}, result=3, attempts=3),
    "attempts are spent": Case({"do": "flaky", "times": 9}, "dead_lettered", attempts=3, message="not yet"),
    "a permanent error": Case({"do": "permanent"}, "failed", message="no use"),
    "a time to come back": Case({"do": "retry_after", "seconds": 0.3}, result=2, attempts=2),
    "a handler cancels": Case({"do": "cancel"}, "cancelled"),
    "a rejection does not count": Case({"do": "reject"}, result=1),
    "a timeout": Case({"do": "sleep", "seconds": 30}, "dead_lettered", message="no result", fields={
        "timeout": 0.3, "retry": {"max_attempts": 1}}),
    "a result that is too large": Case({"do": "large", "bytes": 1_048_600}, "failed", message="large"),
    "a result that cannot be stored": Case({"do": "nul"}, "failed", message="cannot be kept"),
    "a report that comes twice": Case({"do": "twice"}, result=1),
    "longer than a lease": Case({"do": "sleep", "seconds": TTL_S + 1.0}, result=1),
    "an unknown wish": Case({"do": "fly"}, "failed", message="unknown"),
}  # fmt: skip


def is_lost(task: int) -> bool:
    """Whether an attempt was given up. The state does not tell: the next attempt may begin within milliseconds."""
    return Attempt.objects.filter(task_id=task, outcome="lost").exists()


@pytest.fixture(scope="module")
def outcomes(site: Site, kind: str) -> dict[str, dict[str, Any]]:
    """What all cases came to, tried together."""
    tasks = [{"pool": "remote", "payload": c.payload, "retry": RETRY, **c.fields} for c in CASES.values()]
    with site.worker(kind, slots=30):
        answer = site.api.post("/tasks/batch", json={"tasks": tasks}).json()
        # Faults are tried without this worker.
        return {name: site.ended(task["id"]) for name, task in zip(CASES, answer["tasks"], strict=True)}


@pytest.mark.parametrize("name", CASES)
def test_an_outcome(name: str, outcomes: dict[str, dict[str, Any]]) -> None:
    case, found = CASES[name], outcomes[name]
    assert (found["state"], found["result"], found["attempts"]) == (case.state, case.result, case.attempts)
    assert case.message in (found["history"][0]["message"] or "")


def test_what_a_worker_is_told(site: Site, kind: str) -> None:
    with site.worker(kind):
        [parent] = site.submit({"do": "echo", "value": 7}, key=f"parent {kind}")
        [task] = site.submit({"do": "seen"}, kind="look", key=f"seen {kind}", tags={"a": "b"})
        [child] = site.submit({"do": "upstream"}, after=[{"key": f"parent {kind}"}])
        seen = site.ended(task)["result"]
        assert seen == {
            "task": task, "attempt": 1, "kind": "look", "key": f"seen {kind}", "pool": "remote", "tenant": "acme",
            "degraded": False, "tags": {"a": "b"},
        }  # fmt: skip
        assert site.ended(child)["result"] == {f"parent {kind}": {"state": "succeeded", "result": 7}}
        assert site.task(parent)["state"] == "succeeded"


def test_what_a_step_writes_is_kept(site: Site, kind: str) -> None:
    with site.worker(kind):
        run = site.api.post("/runs", json={"goal": 1, "key": f"writes {kind}"}).json()["id"]
        of_run = {"run": run, "retry": RETRY}
        [checkpoint] = site.submit({"do": "checkpoint"}, **of_run)
        [effect] = site.submit({"do": "effect"}, **of_run)
        [charge] = site.submit({"do": "charge"}, **of_run)
        [outside] = site.submit({"do": "outside"})
        assert site.ended(checkpoint)["result"] == {"by": 1}
        assert site.ended(effect)["result"] == ["done", "new", {"made by": 1}]
        assert site.ended(charge)["result"] == [True, False, True]
        assert site.task(charge)["history"][0]["usage"] == {"model": "sim-small", "input_uncached": 20}
        assert site.ended(outside)["result"] == "not_a_step"


def test_a_running_attempt_is_cancelled(site: Site, kind: str) -> None:
    with site.worker(kind):
        [task] = site.submit({"do": "hold"})
        site.wait_for(task, "running")
        assert site.api.post(f"/tasks/{task}/cancel", json={}).json()["requested"] is True
        assert site.ended(task, within_s=8.0)["state"] == "cancelled"


def test_slots_are_never_exceeded_and_every_task_runs_once(site: Site, kind: str) -> None:
    with site.worker(kind, slots=4):
        tasks = site.submit(*({"do": "echo", "value": n} for n in range(60)), *({"do": "sleep", "seconds": 0.1},) * 8)
        assert {site.ended(task)["state"] for task in tasks} == {"succeeded"}
        attempts = Attempt.objects.filter(task_id__in=tasks, outcome="succeeded")
        assert attempts.count() == len(tasks)
        starts = [(a.started_at, 1) for a in attempts] + [(a.finished_at, -1) for a in attempts]
        running = most = 0
        for _, step in sorted(starts):
            running += step
            most = max(most, running)
        assert most <= 4


def test_labels_and_tenants_choose_the_worker(site: Site, kind: str) -> None:
    headers = {"Authorization": f"Bearer {site.rival}"}
    with site.worker(kind), site.worker(kind, labels="gpu=yes zone=eu") as gpu:
        [task] = site.submit({"do": "echo", "value": 1}, labels={"gpu": "yes"})
        [nowhere] = site.submit({"do": "echo", "value": 1}, labels={"gpu": "no"})
        body = {"pool": "remote", "payload": {"do": "echo", "value": 1}}
        rivals = site.api.post("/tasks", json=body, headers=headers).json()["id"]
        assert site.ended(task)["state"] == "succeeded"
        worker = Worker.objects.get(pk=site.task(task)["history"][0]["worker"])
        assert str(gpu.process.pid) in worker.name
        assert site.task(nowhere)["state"] == "ready"
        assert site.api.get(f"/tasks/{rivals}", headers=headers).json()["state"] == "ready"
        assert site.api.post(f"/tasks/{rivals}/cancel", json={}, headers=headers).status_code == 200
        assert site.api.post(f"/tasks/{nowhere}/cancel", json={}).status_code == 200


@FAULTY
def test_nothing_starts_while_the_pool_is_paused(site: Site, kind: str, pool: Pool) -> None:
    with site.worker(kind):
        Pool.objects.filter(pk=pool.pk).update(paused_at="2026-01-01T00:00:00Z", paused_by="test")
        [task] = site.submit({"do": "echo", "value": 1})
        assert site.ended(task, within_s=0.5)["state"] == "ready"
        Pool.objects.filter(pk=pool.pk).update(paused_at=None, paused_by="")
        assert site.ended(task)["state"] == "succeeded"


@FAULTY
def test_a_connection_that_breaks_costs_no_attempt(site: Site, kind: str, line: Line) -> None:
    with site.worker(kind, url=line.url):
        line.cut()
        [first] = site.submit({"do": "echo", "value": 1})
        assert site.ended(first)["attempts"] == 1
        told = site.signal()
        [second] = site.submit({"do": "await", "file": str(told)})
        site.wait_for_renewal(second)
        line.cut()
        site.wait_for_next_renewal(second)
        told.touch()
        ended = site.ended(second)
        assert (ended["state"], ended["attempts"], ended["result"]) == ("succeeded", 1, 1)


@FAULTY
def test_a_report_that_comes_too_late_changes_nothing(site: Site, kind: str, line: Line) -> None:
    with site.worker(kind, url=line.url, slots=2):
        [task] = site.submit({"do": "flaky", "times": 0, "wait": 0}, retry=RETRY)
        assert site.ended(task)["result"] == 1
        told = site.signal()
        [held] = site.submit({"do": "await", "file": str(told)}, retry=RETRY)
        site.wait_for_renewal(held)
        with line.stalled():
            told.touch()
            wait_until(lambda: is_lost(held), what="the lease to expire")
        ended = site.ended(held)
        assert (ended["state"], ended["result"]) == ("succeeded", 2)
        assert [each["outcome"] for each in ended["history"]] == ["succeeded", "lost"]


@FAULTY
def test_what_is_written_too_late_changes_nothing(site: Site, kind: str, line: Line) -> None:
    run = site.api.post("/runs", json={"goal": 1, "key": f"late {kind}"}).json()["id"]

    def kept() -> tuple[int, Any]:
        found = site.api.get(f"/runs/{run}/checkpoint").json()
        return found["version"], found["checkpoint"]

    with site.worker(kind, url=line.url, slots=2):
        told = site.signal()
        [task] = site.submit({"do": "late", "file": str(told)}, run=run, retry=RETRY)
        site.wait_for_renewal(task)
        with line.stalled():
            told.touch()
            wait_until(lambda: is_lost(task), what="the lease to expire")
            before, _ = kept()
        assert site.ended(task)["result"] == 2
        assert kept() == (before + 1, {"by": 2})


@FAULTY
def test_a_suspended_worker_is_fenced_and_works_on_afterwards(site: Site, kind: str) -> None:
    with site.worker(kind) as program:
        [task] = site.submit({"do": "once", "seconds": 60.0}, retry=RETRY)
        site.wait_for_renewal(task)
        os.kill(program.process.pid, signal.SIGSTOP)
        try:
            wait_until(lambda: is_lost(task), what="the lease to expire")
        finally:
            os.kill(program.process.pid, signal.SIGCONT)
        ended = site.ended(task)
        assert (ended["state"], ended["result"], ended["attempts"]) == ("succeeded", 2, 2)
        [after] = site.submit({"do": "echo", "value": "well"})
        assert site.ended(after)["result"] == "well"


@FAULTY
def test_a_killed_workers_work_is_elsewhere_soon(site: Site, kind: str) -> None:
    with site.worker(kind) as first:
        tasks = site.submit(*({"do": "sleep", "seconds": 3600},) * 4, retry=RETRY)
        for task in tasks:
            site.wait_for_renewal(task)
        with site.worker(kind, slots=20) as second:
            first.process.kill()
            killed_at = time.monotonic()
            for task in tasks:
                wait_until(lambda t=task: site.task(t)["attempts"] == 2, timeout_s=TTL_S + 5.0)  # type: ignore[misc]  # mypy cannot infer a lambda with a default
            assert time.monotonic() - killed_at <= TTL_S + 5.0
            worker = Worker.objects.get(pk=site.task(tasks[0])["history"][0]["worker"])
            assert str(second.process.pid) in worker.name
        for task in tasks:
            site.api.post(f"/tasks/{task}/cancel", json={})


@FAULTY
def test_a_worker_told_to_stop_finishes_and_goes(site: Site, kind: str) -> None:
    with site.worker(kind) as program:
        # Longer than a poll may be open when it is told: what the server answered to one that has gone would be lost.
        [task] = site.submit({"do": "sleep", "seconds": 3.0})
        site.wait_for_renewal(task)
        program.process.send_signal(signal.SIGTERM)
        assert program.wait(20) == 0, program.text()
        ended = site.ended(task)
        assert (ended["state"], ended["attempts"]) == ("succeeded", 1)
        [left] = site.submit({"do": "echo", "value": 1})
        assert site.ended(left, within_s=0.3)["state"] == "ready"
        site.api.post(f"/tasks/{left}/cancel", json={})


@FAULTY
def test_a_worker_that_an_operator_drains_finishes_and_goes(site: Site, kind: str) -> None:
    with site.worker(kind) as program:
        told = site.signal()
        [task] = site.submit({"do": "await", "file": str(told)})
        worker = site.wait_for_renewal(task)["history"][0]["worker"]
        assert site.api.post(f"/workers/{worker}/drain", json={"reason": "upgrade"}).status_code == 204
        site.wait_for_next_renewal(task)
        told.touch()
        assert site.ended(task)["attempts"] == 1
        assert program.wait(20) == 0, program.text()


@FAULTY
def test_a_server_that_is_restarted_costs_no_attempt(site: Site, kind: str, line: Line) -> None:
    with ExitStack() as server, ExitStack() as workers:
        line.targets = [port_of(server.enter_context(running_server(site.database_url)))]
        workers.enter_context(site.worker(kind, url=line.url))
        told = site.signal()
        [task] = site.submit({"do": "await", "file": str(told)})
        site.wait_for_renewal(task)
        line.targets = [port_of(site.url)]
        server.close()
        site.wait_for_next_renewal(task)
        told.touch()
        ended = site.ended(task)
        assert (ended["state"], ended["attempts"]) == ("succeeded", 1)


@FAULTY
def test_a_clock_that_is_wrong_does_no_harm(site: Site, kind: str) -> None:
    with site.worker(kind, skew_s="-86400" if kind.startswith("python") else "86400"):
        tasks = site.submit({"do": "sleep", "seconds": TTL_S + 0.5}, {"do": "echo", "value": 1}, deadline_in=60)
        assert [site.ended(task)["attempts"] for task in tasks] == [1, 1]


@pytest.mark.parametrize(("token", "pool"), [("cq_unknown_0123456789abcdef", "remote"), (None, "nowhere")])
def test_a_worker_that_may_not_work_says_so_and_ends(site: Site, kind: str, token: str | None, pool: str) -> None:
    with site.worker_coming_up(kind, token=token, pool=pool) as program:
        assert program.wait(30) == 1, program.text()
