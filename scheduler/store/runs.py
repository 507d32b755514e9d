"""Runs as their owners see and move them, and their checkpoints."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from scheduler.policy.explain_runs import RunAround
from scheduler.policy.runs import Cap, Caps, RunState
from scheduler.policy.states import TaskState
from scheduler.policy.types import LeaseId, RunId, TaskId, TenantId
from scheduler.store import queries
from scheduler.store.asking import Question, asked

_SQL: Final = queries.load("runs.sql")


@dataclass(frozen=True, slots=True)
class NewRun:
    """A run to store. `goal` is JSON text; `fingerprint` the hash of what was asked for, for one with a key."""

    tenant: TenantId
    name: str
    key: str | None
    fingerprint: bytes | None
    goal: str
    caps: Caps


@dataclass(frozen=True, slots=True)
class RunRow:
    """A run with what it has used. Times are Unix seconds."""

    id: RunId
    tenant_id: TenantId
    tenant: str
    name: str
    key: str | None
    state: RunState
    reason: str
    epoch: int
    caps: Caps
    deadline_at: float | None
    closing: bool
    version: int
    created_at: float
    finished_at: float | None
    steps: int
    tokens: int
    attempts: int
    spent_nano: int
    checkpoint_version: int | None


class CheckpointRow(NamedTuple):
    """Where a run can be taken up: JSON text, its version, the step that wrote it and when (Unix seconds)."""

    text: str
    version: int
    task: TaskId
    saved_at: float


class AlertRow(NamedTuple):
    """A cap that the run came near: `used` of `most` at that time (Unix seconds)."""

    cap: Cap
    used: float
    most: float
    at: float


class OfStep(NamedTuple):
    """What the attempt of a step is handed of its run."""

    run: RunId
    checkpoint: str | None


def add(new: NewRun, *, heed_s: float | None) -> RunId | None:
    """Store an active run that is to be looked at in `heed_s`; None when its key was used before."""
    caps = new.caps
    params = {
        "tenant": new.tenant,
        "name": new.name,
        "key": new.key,
        "fingerprint": new.fingerprint,
        "goal": new.goal,
        "max_steps": caps.max_steps,
        "max_width": caps.max_width,
        "max_tokens": caps.max_tokens,
        "max_cost_nano": caps.max_cost_nano,
        "wall_s": caps.wall_s,
        "heed_s": heed_s,
    }
    row = queries.fetch_one(_SQL["add_run"], params)
    return None if row is None else RunId(row[0])


def find_by_key(tenant: TenantId, key: str) -> tuple[RunId, bytes] | None:
    """The tenant's run of that key, with the fingerprint it was made by."""
    row = queries.fetch_one(_SQL["find_run_by_key"], {"tenant": tenant, "key": key})
    return None if row is None else (RunId(row[0]), bytes(row[1]))


def load(runs: Sequence[RunId], *, tenant: TenantId | None) -> list[RunRow]:
    """These runs, newest first, as far as they belong to `tenant` (None: any)."""
    return [_row(row) for row in queries.fetch(_SQL["read_runs"], {"runs": list(runs), "tenant": tenant})]


def _row(row: queries.Row) -> RunRow:
    run, tenant_id, tenant, name, key, state, reason, epoch, *caps, deadline_at, closing, version, created_at = row[:16]
    wall_s = None if deadline_at is None else deadline_at - created_at
    head = (RunId(run), TenantId(tenant_id), tenant, name, key, RunState(state), reason, epoch)
    return RunRow(*head, _caps(caps, wall_s), deadline_at, closing, version, created_at, *row[16:])


def _caps(caps: Sequence[int], wall_s: float | None) -> Caps:
    max_steps, max_width, max_tokens, max_cost_nano = caps
    return Caps(max_steps, max_width, max_tokens, max_cost_nano, wall_s)


def list_ids(
    tenant: TenantId | None, *, before: RunId | None, states: Sequence[RunState] | None, rows_max: int
) -> list[RunId]:
    """Ids of runs below `before`, newest first."""
    params = {
        "tenant": tenant,
        "before": before,
        "states": None if states is None else [state.value for state in states],
        "rows_max": rows_max,
    }
    return [RunId(row[0]) for row in queries.fetch(_SQL["list_runs"], params)]


@asked
def load_texts(run: RunId) -> Question[tuple[str, str | None]]:
    """What a run was made for, and what came of it."""
    # Runs are not deleted while anybody looks at them.
    return Question(_SQL["read_run_texts"], {"run": run}, lambda rows: (rows[0][0], rows[0][1]))


@asked
def load_around(run: RunId) -> Question[RunAround | None]:
    """The run as one of its waiting steps meets it."""
    return Question(_SQL["read_run_around"], {"run": run}, _around)


def _around(rows: list[queries.Row]) -> RunAround | None:
    return RunAround(RunId(rows[0][0]), RunState(rows[0][1]), *rows[0][2:]) if rows else None


@asked
def load_alerts(run: RunId) -> Question[list[AlertRow]]:
    """The caps that the run came near, as it came."""
    return Question(_SQL["read_alerts"], {"run": run}, lambda rows: [AlertRow(Cap(row[0]), *row[1:]) for row in rows])


@asked
def count_steps(run: RunId) -> Question[dict[TaskState, int]]:
    """The run's steps by state."""
    return Question(_SQL["count_steps"], {"run": run}, lambda rows: {TaskState(state): n for state, n in rows})


def lock(run: RunId, *, tenant: TenantId | None) -> tuple[RunState, int] | None:
    """Lock a run of `tenant` (None: of anyone); its state and version."""
    row = queries.fetch_one(_SQL["lock_run"], {"run": run, "tenant": tenant})
    return None if row is None else (RunState(row[0]), row[1])


def move(run: RunId, *, seen: RunState, state: RunState, reason: str, result: str | None = None) -> None:
    """Let a locked run go from the state it was seen in to another."""
    params = {"run": run, "seen": seen.value, "state": state.value, "reason": reason, "result": result}
    queries.run(_SQL["move_run"], params)


def edit_caps(run: RunId, caps: Caps, *, heed_at: float | None) -> None:
    """Give a locked run new caps."""
    params = {
        "run": run,
        "max_steps": caps.max_steps,
        "max_width": caps.max_width,
        "max_tokens": caps.max_tokens,
        "max_cost_nano": caps.max_cost_nano,
        "wall_s": caps.wall_s,
        "heed_at": heed_at,
    }
    queries.run(_SQL["edit_caps"], params)
    queries.run(_SQL["edit_money"], {"run": run, "max_cost_nano": caps.max_cost_nano})
    queries.run(_SQL["is_solvent"], {"run": run})


def tell_planner(run: RunId) -> None:
    """Let plans forget what they remember of a run. The caller has the turn to plan."""
    queries.run(_SQL["tell_planner"], {"run": run})


@asked
def load_checkpoint(run: RunId) -> Question[CheckpointRow | None]:
    """Where the run can be taken up."""
    return Question(_SQL["read_checkpoint"], {"run": run}, lambda rows: CheckpointRow(*rows[0]) if rows else None)


def save_checkpoint(run: RunId, text: str, *, task: TaskId, after: int | None) -> int | None:
    """Write the run's checkpoint; its version, or None when `after` was given and is not the current one."""
    row = queries.fetch_one(_SQL["save_checkpoint"], {"run": run, "checkpoint": text, "task": task, "after": after})
    return None if row is None else int(row[0])


def load_of_steps(leases: Sequence[LeaseId]) -> dict[LeaseId, OfStep]:
    """For attempts that are steps of runs: the run and its checkpoint."""
    rows = queries.fetch(_SQL["read_of_steps"], {"leases": list(leases)})
    return {LeaseId(lease): OfStep(RunId(run), checkpoint) for lease, run, checkpoint in rows}
