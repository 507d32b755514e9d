"""Kills and runs in words."""

from __future__ import annotations

from dataclasses import replace

from scheduler.policy.explain_runs import InForce, RunAround, held_by_run, killed
from scheduler.policy.runs import KillScope, RunState
from scheduler.policy.types import RunId, TaskId

RUN = RunAround(RunId(7), RunState.ACTIVE, "", 8, 1, writing=False, turn=TaskId(3), capped=False)


def codes(run: RunAround, *, writes: bool = False) -> list[str]:
    return [reason.code for reason in held_by_run(run, TaskId(3), writes=writes)]


def test_kills_that_reach_a_task_are_told_with_who_and_why() -> None:
    kills = [
        InForce(KillScope.EVERYTHING, "", "ada", "fire."),
        InForce(KillScope.TENANT, "acme", "bob", ""),
        InForce(KillScope.POOL, "other", "eve", "x"),
    ]
    found = killed(kills, tenant="acme", pool="llm")
    assert [reason.text for reason in found] == [
        "Everything was killed by ada: fire. Nothing starts until it is resumed.",
        "The tenant acme was killed by bob. Nothing starts until it is resumed.",
    ]


def test_a_run_says_what_keeps_its_step_back() -> None:
    assert codes(RUN) == codes(RUN, writes=True) == []
    assert codes(replace(RUN, state=RunState.PAUSED)) == ["run_not_active"]
    assert codes(replace(RUN, state=RunState.KILLED, reason="it loops")) == ["killed"]
    assert codes(replace(RUN, running=8, writing=True, capped=True), writes=True) == [
        "run_width",
        "run_write_lock",
        "run_budget",
    ]
    (turn,) = held_by_run(replace(RUN, turn=TaskId(2)), TaskId(3), writes=True)
    assert turn.text == "Writing steps go one at a time, and it is the turn of task 2."
