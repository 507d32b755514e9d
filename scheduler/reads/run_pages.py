"""What the console shows of runs: how they all stand, a page of them, and one of them over time.

Every page costs a number of statements that does not depend on how many runs or steps there are.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from scheduler.policy.runs import RunState
from scheduler.policy.types import RunId, TaskId
from scheduler.reads.audit import AuditRow, events_of
from scheduler.reads.runs import RunDetail, detailing_run, run_detail, run_row
from scheduler.reads.tenants import tenant_to_show
from scheduler.reads.turning import turn
from scheduler.reads.why import Explanation, why
from scheduler.store import dispatch as dispatch_store
from scheduler.store import kills as kill_store
from scheduler.store import receipts as receipt_store
from scheduler.store import run_pages as store
from scheduler.store import runs as run_store
from scheduler.store.asking import Together
from scheduler.store.kills import KillRow
from scheduler.store.receipts import ListedReceipt
from scheduler.store.run_pages import AttemptSpan, Figures, ModelCost, Progress, Span, StepRow
from scheduler.store.runs import CheckpointRow, RunRow

__all__ = ["AttemptSpan", "Figures", "ModelCost", "Progress", "Span", "StepRow"]

ROWS: Final = 50
STEPS: Final = 30
COUNT_MAX: Final = 10_001
LATELY_S: Final = 86_400.0
DRAWN_MAX: Final = 1_000
EDGES_MAX: Final = 1_000
ATTEMPTS_EACH_MAX: Final = 10
MODELS_MAX: Final = 20
RECEIPTS_MAX: Final = 50


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which runs: in these states (none: all), of this tenant, at least or at most so old (seconds)."""

    states: tuple[RunState, ...] = ()
    tenant: str = ""
    older_than_s: float | None = None
    younger_than_s: float | None = None


@dataclass(frozen=True, slots=True)
class Page:
    """Runs, newest first, and how far each is. `older` and `newer` are the ids to go on from, None where nothing is."""

    runs: Sequence[RunRow]
    progress: Mapping[RunId, Progress]
    older: RunId | None
    newer: RunId | None


def list_page(wanted: Wanted, *, below: int | None = None, above: int | None = None) -> Page:
    """The page below an id, or the one above it, or the newest. Raises Refused for a tenant that does not exist."""
    tenant = tenant_to_show(wanted.tenant)
    least = 0 if wanted.younger_than_s is None else store.newest_before(wanted.younger_than_s)
    most = store.ID_MAX if wanted.older_than_s is None else store.newest_before(wanted.older_than_s) + 1
    back = above is not None
    ids = store.list_ids(
        wanted.states or tuple(RunState),
        tenant=tenant,
        above=max(least, above or 0),
        below=min(most, below or store.ID_MAX),
        older=not back,
        rows_max=ROWS + 1,
    )
    page = turn(ids, rows_max=ROWS, back=back, first=below is None)
    runs = run_store.load(page.rows, tenant=None) if page.rows else []
    return Page(runs, store.load_progress(page.rows) if page.rows else {}, page.older, page.newer)


def figures() -> Figures:
    """How all runs stand; a count of `COUNT_MAX` means that many or more."""
    return store.load_figures(lately_s=LATELY_S, count_max=COUNT_MAX)


@dataclass(frozen=True, slots=True)
class Story:
    """One run at a moment: how far it is, its steps over time, and what it left behind.

    `waiting` explains the step that has waited longest. `steps` is a page, `more` whether another follows.
    """

    now: float
    detail: RunDetail
    progress: Progress
    spans: Sequence[Span]
    edges: Sequence[tuple[TaskId, TaskId]]
    steps: Sequence[StepRow]
    more: bool
    attempts: Mapping[TaskId, Sequence[AttemptSpan]]
    costs: Sequence[ModelCost]
    receipts: Sequence[ListedReceipt]
    checkpoint: CheckpointRow | None
    kills: Sequence[KillRow]
    waiting: Explanation | None
    audit: Sequence[AuditRow]


def story(run: RunId, *, steps_after: int = 0) -> Story:
    """Everything that is told of a run. Raises NotFound."""
    row, asking = run_row(run, None), Together()
    detail = detailing_run(row, asking)
    now = asking.add(dispatch_store.load_now.question())
    progress = asking.add(store.load_progress.question([run]))
    spans = asking.add(store.load_timeline.question(run, steps_max=DRAWN_MAX))
    steps = asking.add(store.load_steps.question(run, after=steps_after, rows_max=STEPS + 1))
    longest = asking.add(store.waits_longest.question(run))
    costs = asking.add(store.load_cost_by_model.question(run, rows_max=MODELS_MAX))
    receipts = asking.add(receipt_store.load.question(run, rows_max=RECEIPTS_MAX + 1))
    checkpoint = asking.add(run_store.load_checkpoint.question(run))
    kills = asking.add(kill_store.load.question())
    shown = steps.value[:STEPS]
    asking_of_steps = Together()
    drawn = [span.task for span in spans.value]
    edges = asking_of_steps.add(store.load_edges.question(drawn, edges_max=EDGES_MAX))
    attempts = asking_of_steps.add(
        store.load_attempts.question([step.task for step in shown], each_max=ATTEMPTS_EACH_MAX)
    )
    return Story(
        now=now.value,
        detail=detail(),
        progress=progress.value[run],
        spans=spans.value,
        edges=edges.value,
        steps=shown,
        more=len(steps.value) > STEPS,
        attempts=_by_step(attempts.value),
        costs=costs.value,
        receipts=receipts.value,
        checkpoint=checkpoint.value,
        kills=kills.value,
        waiting=None if longest.value is None else why(longest.value, None),
        audit=events_of(f"run:{run}"),
    )


def _by_step(attempts: Sequence[AttemptSpan]) -> dict[TaskId, list[AttemptSpan]]:
    found: dict[TaskId, list[AttemptSpan]] = {}
    for attempt in attempts:
        found.setdefault(attempt.task, []).append(attempt)
    return found


@dataclass(frozen=True, slots=True)
class Reach:
    """What a kill of a run would meet: steps that run, steps that wait, and effects that may be half made."""

    detail: RunDetail
    progress: Progress
    claims: int


def reach_of_kill(run: RunId) -> Reach:
    """What killing a run now would do. Raises NotFound."""
    detail = run_detail(run, None)
    return Reach(detail, store.load_progress([run])[run], store.count_unfinished_claims(run))
