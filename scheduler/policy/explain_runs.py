"""Decides how to tell a person that a kill or its own run keeps a task back."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from scheduler.policy.explain import Reason
from scheduler.policy.runs import KillScope, RunState
from scheduler.policy.types import RunId, TaskId, WaitReason


@dataclass(frozen=True, slots=True)
class InForce:
    """A kill in force: of which tenant or pool by name (nothing for everything), by whom and why."""

    scope: KillScope
    name: str
    actor: str
    reason: str


@dataclass(frozen=True, slots=True)
class RunAround:
    """The run of a step: `running` of at most `max_width` steps run, one of them `writing`; `turn`: who writes next."""

    id: RunId
    state: RunState
    reason: str
    max_width: int
    running: int
    writing: bool
    turn: TaskId | None
    capped: bool


def killed(kills: Sequence[InForce], *, tenant: str, pool: str) -> tuple[Reason, ...]:
    """The kills that reach a task of this tenant in this pool."""
    mine = {KillScope.EVERYTHING: "", KillScope.TENANT: tenant, KillScope.POOL: pool}
    return tuple(
        Reason(
            WaitReason.KILLED,
            f"{_whole(kill)} was killed by {kill.actor}{_because(kill.reason)} Nothing starts until it is resumed.",
            {"scope": kill.scope.value, "name": kill.name, "actor": kill.actor, "reason": kill.reason},
        )
        for kill in kills
        if kill.name == mine[kill.scope]
    )


def held_by_run(run: RunAround, task: TaskId, *, writes: bool) -> tuple[Reason, ...]:
    """What of its run keeps a waiting step back now, in the order of the gates."""
    detail: dict[str, object] = {"run": run.id}
    if run.state is not RunState.ACTIVE:
        code = WaitReason.KILLED if run.state is RunState.KILLED else WaitReason.RUN_NOT_ACTIVE
        text = f"Its run {run.id} is {run.state}{_because(run.reason)}"
        return (Reason(code, text, detail | {"state": run.state.value, "reason": run.reason}),)
    found = []
    if run.running >= run.max_width:
        text = f"{run.running} steps of its run {run.id} run, and no more than {run.max_width} may at once."
        found.append(Reason(WaitReason.RUN_WIDTH, text, detail | {"running": run.running, "max_width": run.max_width}))
    if writes and (run.writing or run.turn != task):
        who = "another one of its run runs" if run.writing else f"it is the turn of task {run.turn}"
        text = f"Writing steps go one at a time, and {who}."
        found.append(Reason(WaitReason.RUN_WRITE_LOCK, text, detail | {"turn": run.turn}))
    if run.capped:
        text = f"Its run {run.id} has used up one of its caps, and is being ended."
        found.append(Reason(WaitReason.RUN_BUDGET, text, detail))
    return tuple(found)


def _whole(kill: InForce) -> str:
    return "Everything" if kill.scope is KillScope.EVERYTHING else f"The {kill.scope} {kill.name}"


def _because(reason: str) -> str:
    return f": {reason.rstrip('.')}." if reason else "."
