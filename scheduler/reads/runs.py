"""Runs as their owners see them, and what the attempts of their steps are handed."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from scheduler.errors import FieldError, NotFound, Refused
from scheduler.policy.runs import RunState
from scheduler.policy.states import TaskState
from scheduler.policy.types import LeasedTask, RunId, TenantId
from scheduler.store import kills as kill_store
from scheduler.store import receipts as receipt_store
from scheduler.store import runs as store
from scheduler.store.asking import Together
from scheduler.store.kills import KillRow
from scheduler.store.receipts import ListedReceipt
from scheduler.store.runs import AlertRow, CheckpointRow, RunRow

__all__ = ["AlertRow", "CheckpointRow", "KillRow", "ListedReceipt", "RunDetail", "RunPage", "RunRow"]

PAGE_MAX: Final = 200
RECEIPTS_MAX: Final = 1_000


@dataclass(frozen=True, slots=True)
class RunDetail:
    """A run with its goal and result (JSON text) and its steps by state."""

    run: RunRow
    goal: str
    result: str | None
    steps: Mapping[TaskState, int]
    alerts: Sequence[AlertRow]


@dataclass(frozen=True, slots=True)
class RunPage:
    """Runs, newest first; `next_cursor` leads on."""

    runs: list[RunRow]
    next_cursor: str | None


def run_row(run: RunId, tenant: TenantId | None) -> RunRow:
    """A run of `tenant` (None: of anyone). Raises NotFound."""
    rows = store.load([run], tenant=tenant)
    if not rows:
        raise NotFound(f"There is no run {run}.", code="unknown_run")
    return rows[0]


def run_detail(run: RunId, tenant: TenantId | None) -> RunDetail:
    """A run of `tenant` (None: of anyone) with what belongs to it. Raises NotFound."""
    return detailing_run(run_row(run, tenant), Together())()


def detailing_run(row: RunRow, asking: Together) -> Callable[[], RunDetail]:
    """Ask beside what else is asked for what belongs to a run; what comes back gives the whole."""
    texts = asking.add(store.load_texts.question(row.id))
    steps = asking.add(store.count_steps.question(row.id))
    alerts = asking.add(store.load_alerts.question(row.id))
    return lambda: RunDetail(row, *texts.value, steps.value, alerts.value)


def list_runs(
    tenant: TenantId | None, *, states: Sequence[RunState] | None, cursor: str | None, rows_max: int
) -> RunPage:
    """A page of the tenant's runs (None: of everybody's). Raises Refused for a cursor that is not ours."""
    ids = store.list_ids(tenant, before=_before(cursor), states=states, rows_max=rows_max + 1)
    page = ids[:rows_max]
    return RunPage(store.load(page, tenant=tenant), str(page[-1]) if len(ids) > rows_max else None)


def _before(cursor: str | None) -> RunId | None:
    if cursor is None:
        return None
    if not (cursor.isascii() and cursor.isdigit() and len(cursor) < 19):  # noqa: PLR2004 - fewer digits than 2**63 has
        detail = "This cursor is not one that was handed out; begin without one."
        raise Refused(detail, code="bad_cursor", errors=(FieldError(("cursor",), detail),))
    return RunId(int(cursor))


def run_checkpoint(run: RunId, tenant: TenantId | None) -> CheckpointRow | None:
    """Where a run can be taken up; None when nothing was written yet. Raises NotFound."""
    run_row(run, tenant)
    return store.load_checkpoint(run)


def run_receipts(run: RunId, tenant: TenantId | None) -> list[ListedReceipt]:
    """The effects of a run. Raises NotFound."""
    run_row(run, tenant)
    return receipt_store.load(run, rows_max=RECEIPTS_MAX)


def kills_in_force() -> list[KillRow]:
    """What is killed beside single runs."""
    return kill_store.load()


def with_runs(leased: Sequence[LeasedTask]) -> list[LeasedTask]:
    """The same attempts with the run and checkpoint of those that are steps. Asks nothing when none is."""
    steps = [each.lease for each in leased if each.of_run]
    if not steps:
        return list(leased)
    found = store.load_of_steps(steps)
    return [
        each._replace(run=found[each.lease].run, checkpoint=found[each.lease].checkpoint)
        if each.lease in found
        else each
        for each in leased
    ]
