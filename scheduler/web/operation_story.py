"""Decides how an operation on many tasks reads: its state, how far it is, and why tasks were skipped. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from scheduler.live import wording
from scheduler.policy.operations import CHANGES, SKIPS, Change, OperationKind, OperationState
from scheduler.reads.operations import ItemRow, OperationDetail, OperationRow
from scheduler.web.task_story import Chip, Figure, When, when

VERBS: Final = {
    OperationKind.REPLAY: "Replay",
    OperationKind.CANCEL: "Cancel",
    OperationKind.DISCARD: "Discard",
    OperationKind.RESTORE: "Restore",
}
DONE: Final = {
    OperationKind.REPLAY: "replayed",
    OperationKind.CANCEL: "cancelled or told to stop",
    OperationKind.DISCARD: "discarded",
    OperationKind.RESTORE: "restored",
}
SAYS: Final = {
    OperationKind.REPLAY: "Each task runs afresh under its own id and key, in its usual place in the order. "
    "Its own handlers must bear being run again.",
    OperationKind.CANCEL: "What waits is cancelled at once, what runs is told to stop. This cannot be undone.",
    OperationKind.DISCARD: "They are taken out of sight, can be restored for 7 days, and are then deleted for good by "
    "the daily prune.",
    OperationKind.RESTORE: "They are dead letters again, as they were before they were discarded.",
}
_CHIPS: Final = {
    OperationState.STARTING: ("stale", "Starting", "warn"),
    OperationState.RUNNING: ("ok", "Running", "ok"),
    OperationState.PAUSED: ("pause", "Paused", "warn"),
    OperationState.ABORTED: ("close", "Aborted", "quiet"),
    OperationState.DONE: ("ok", "Done", "quiet"),
}
_OVER: Final = frozenset({OperationState.ABORTED, OperationState.DONE})
_DEEDS: Final = (
    (Change.PAUSE, "Pause", sorted(CHANGES[Change.PAUSE][0])),
    (Change.RESUME, "Resume", sorted(CHANGES[Change.RESUME][0])),
    (Change.ABORT, "Take back", [OperationState.STARTING]),
    (Change.ABORT, "Abort", sorted(CHANGES[Change.ABORT][0] - {OperationState.STARTING})),
)


@dataclass(frozen=True, slots=True)
class OperationLine:
    """One row of the list of operations."""

    id: int
    says: str
    chip: Chip
    done: str
    percent: int
    filter: str
    actor: str
    reason: str
    made: When
    ago: str


@dataclass(frozen=True, slots=True)
class Deed:
    """A button, and the states (names with a space between) in which it is there."""

    change: str
    label: str
    states: str


@dataclass(frozen=True, slots=True)
class ItemLine:
    """What became of one task of it."""

    place: int
    task: int
    says: str
    tone: str
    at: When | None


def chip_of(state: OperationState) -> Chip:
    """The state as it is shown."""
    return Chip(*_CHIPS[state])


def title_of(row: OperationRow) -> str:
    """``Replay 12,431 tasks``."""
    return f"{VERBS[row.kind]} {wording.plural(row.total, 'task')}"


def line_of(row: OperationRow, *, now: float) -> OperationLine:
    """The row in the list."""
    did = row.applied + row.skipped
    return OperationLine(
        row.id,
        title_of(row),
        chip_of(row.state),
        f"{wording.count(did)} of {wording.count(row.total)}",
        100 * did // max(1, row.total),
        row.filter,
        row.actor,
        row.reason,
        when(row.created_at),
        wording.glance(max(0.0, now - row.created_at)),
    )


def headline(found: OperationDetail) -> str:
    """What it does just now, in a sentence."""
    row = found.row
    left = wording.plural(row.left, "task")
    match row.state:
        case OperationState.STARTING:
            ahead = row.starts_at - found.now
            starts = f"Starts in {wording.duration(ahead)}" if ahead > 0 else "Starts as soon as an engine is there"
            return f"{starts}; until then it can be taken back without any effect."
        case OperationState.RUNNING:
            eta = wording.duration(row.left / row.rate)
            return f"{left} left, about {eta} at {row.rate:g} per second."
        case OperationState.PAUSED:
            return f"Nothing is done while it is paused; {left} left."
        case OperationState.ABORTED:
            if not row.applied + row.skipped:
                return "Taken back before it did anything."
            return f"Stopped with {left} untouched. It can go on where it stands."
        case OperationState.DONE:
            return f"All {wording.plural(row.total, 'task')} are done."


def figures_of(found: OperationDetail) -> list[Figure]:
    """The numbers at the top."""
    row = found.row
    return [
        Figure("Tasks", wording.count(row.total), "in the frozen set"),
        Figure("Done", wording.count(row.applied), DONE[row.kind]),
        Figure("Skipped", wording.count(row.skipped), "see why below" if row.skipped else "none so far"),
        Figure("Left", wording.count(row.left), "not looked at yet"),
        Figure("Rate", f"{row.rate:g} / s", "at most"),
        Figure("By", row.actor, f"“{row.reason}”"),
    ]


def skips_of(found: OperationDetail) -> list[tuple[str, str]]:
    """How many were skipped for which reason."""
    return [(wording.plural(n, "task"), SKIPS[why]) for why, n in found.skips.items()]


def item_lines(rows: Sequence[ItemRow]) -> list[ItemLine]:
    """What became of tasks."""
    return [
        ItemLine(
            row.place,
            row.task,
            "not yet" if row.outcome is None else "done" if row.why is None else f"skipped: {SKIPS[row.why]}",
            "" if row.outcome is None else "ok" if row.why is None else "quiet",
            None if row.done_at is None else when(row.done_at),
        )
        for row in rows
    ]


def deeds_of(state: OperationState) -> list[Deed]:
    """What can be done with it now or later; nothing once it is done."""
    if state is OperationState.DONE:
        return []
    return [Deed(change.value, label, " ".join(states)) for change, label, states in _DEEDS]


def is_over(state: OperationState) -> bool:
    """Whether it moves no more unless somebody resumes it."""
    return state in _OVER
