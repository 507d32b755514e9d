"""Decides what may be done to many tasks at once: to which, how fast, and whether an operator has said it clearly.

An operation is one action on a frozen set of tasks. It never decides which tasks match (`filters` says what is asked
for, the database finds them), and has no clock.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Final, NamedTuple

from scheduler.errors import FieldError
from scheduler.policy.filters import Filter, Is, Key
from scheduler.policy.payload import fault_in_text
from scheduler.policy.states import REPLAYABLE, TERMINAL, WAITING, TaskState

START_AFTER_S: Final = 10.0
"""Between its confirmation and its first effect an operation can be taken back."""
ITEMS_MAX: Final = 500_000
TYPED_ABOVE: Final = 100
"""Above this many tasks the number is typed, so that nobody confirms a number unread."""
RATE_MAX: Final = 5_000.0
RATE_DEFAULT: Final = 100.0
BATCH_MAX: Final = 500
REASON_CHARS_MAX: Final = 200
RECOVERABLE_S: Final = 7 * 86_400.0
"""How long a discarded task can be restored."""


class OperationKind(StrEnum):
    """What is done to each task."""

    REPLAY = "replay"
    CANCEL = "cancel"
    DISCARD = "discard"
    RESTORE = "restore"


class OperationState(StrEnum):
    """Where an operation stands. `starting` can be taken back without any effect; `aborted` can be resumed."""

    STARTING = "starting"
    RUNNING = "running"
    PAUSED = "paused"
    ABORTED = "aborted"
    DONE = "done"


class Change(StrEnum):
    """What an operator does with an operation."""

    PAUSE = "pause"
    RESUME = "resume"
    ABORT = "abort"


_S = OperationState
CHANGES: Final[Mapping[Change, tuple[frozenset[OperationState], OperationState]]] = {
    Change.PAUSE: (frozenset({_S.STARTING, _S.RUNNING}), _S.PAUSED),
    Change.RESUME: (frozenset({_S.PAUSED, _S.ABORTED}), _S.RUNNING),
    Change.ABORT: (frozenset({_S.STARTING, _S.RUNNING, _S.PAUSED}), _S.ABORTED),
}
"""From which states each change is possible, and where it leads. The engine alone makes `running` and `done`."""

DIED: Final = frozenset({TaskState.DEAD_LETTERED, TaskState.FAILED})
TAKES: Final[Mapping[OperationKind, frozenset[TaskState]]] = {
    OperationKind.REPLAY: REPLAYABLE,
    OperationKind.CANCEL: WAITING | {TaskState.RUNNING},
    OperationKind.DISCARD: DIED,
    OperationKind.RESTORE: DIED,
}
"""The states of tasks that each kind works on; others are skipped."""


NARROWED: Final[Mapping[OperationKind, tuple[str, ...]]] = {
    OperationKind.REPLAY: ("dead",),
    OperationKind.CANCEL: ("waiting", "running"),
    OperationKind.DISCARD: ("dead",),
    OperationKind.RESTORE: ("discarded",),
}


def narrow(kind: OperationKind, asked: Filter) -> Filter:
    """The filter with the states that the kind is for, unless it names states itself."""
    if any(isinstance(term, Is) and term.key is Key.STATE and not term.negated for term in asked.terms):
        return asked
    return Filter((Is(Key.STATE, NARROWED[kind]), *asked.terms))


class Found(NamedTuple):
    """A task as an operation comes to it; `discarded` where it is a dead letter that was taken out of sight."""

    state: TaskState
    discarded: bool = False


class Skip(StrEnum):
    """Why nothing was done to a task."""

    GONE = "gone"
    ENDED = "ended"
    ACTIVE = "active"
    DISCARDED = "discarded"
    KEPT = "kept"
    NOT_DEAD = "not_dead"
    UNMET = "unmet"


SKIPS: Final[Mapping[Skip, str]] = {
    Skip.GONE: "it has been forgotten",
    Skip.ENDED: "it had ended already",
    Skip.ACTIVE: "it waits or runs again already",
    Skip.DISCARDED: "it was discarded; restore it first",
    Skip.KEPT: "it was not discarded",
    Skip.NOT_DEAD: "it is no dead letter",
    Skip.UNMET: "tasks that it comes after have not ended as it needs",
}
"""What each means, after “skipped: ”."""


def decide_item(kind: OperationKind, found: Found | None) -> Skip | None:
    """Whether the task is still one to act on; None: yes."""
    if found is None:
        return Skip.GONE
    if found.state not in TAKES[kind]:
        if kind is OperationKind.CANCEL:
            return Skip.ENDED
        return Skip.NOT_DEAD if found.state in TERMINAL else Skip.ACTIVE
    if kind is OperationKind.RESTORE:
        return None if found.discarded else Skip.KEPT
    return Skip.DISCARDED if found.discarded else None


class Allowance(NamedTuple):
    """How many items may be done now, and the credit that is left after them."""

    items: int
    credit: float


def allow(*, rate: float, credit: float, since_s: float) -> Allowance:
    """How many items a rate (per second) lets through after `since_s` seconds.

    What was not used is kept for a second at most: an operation that was held up does not make up for it in a burst.
    """
    full = min(credit + rate * max(0.0, since_s), max(1.0, rate))
    items = min(int(full), BATCH_MAX)
    return Allowance(items, full - items)


def may_change(change: Change, state: OperationState) -> bool:
    """Whether an operation in this state can be changed so."""
    return state in CHANGES[change][0]


class Asked(NamedTuple):
    """What somebody asks for: how fast (tasks per second), why, how many tasks they saw, and the number they typed."""

    rate: float
    reason: str
    shown: int
    typed: str


def faults_in_operation(asked: Asked) -> tuple[FieldError, ...]:
    """Everything that has to change before the operation can be made."""
    found = [
        None
        if 0 < asked.rate <= RATE_MAX
        else FieldError(("rate",), f"Tasks per second: more than 0 and at most {RATE_MAX:,.0f}."),
        _fault_in_reason(asked.reason),
        None if asked.shown else FieldError(("filter",), "No task matches; there is nothing to do."),
        None
        if asked.shown <= ITEMS_MAX
        else FieldError(("filter",), f"More than {ITEMS_MAX:,} tasks match; narrow the filter."),
        None
        if asked.shown <= TYPED_ABOVE or _number(asked.typed) == asked.shown
        else FieldError(("typed",), f"Type {asked.shown} to confirm that you mean all of them."),
    ]
    return tuple(fault for fault in found if fault is not None)


def _fault_in_reason(reason: str) -> FieldError | None:
    if not reason.strip():
        return FieldError(("reason",), "Say why, for those who look at it later.")
    if len(reason) > REASON_CHARS_MAX:
        return FieldError(("reason",), f"A reason has at most {REASON_CHARS_MAX} characters.")
    said = fault_in_text(reason)
    return None if said is None else FieldError(("reason",), f"This text {said}.")


def _number(typed: str) -> int | None:
    plain = typed.strip().replace(",", "").replace(" ", "")
    return int(plain) if plain.isascii() and plain.isdecimal() and len(plain) < 10 else None  # noqa: PLR2004 - a number
