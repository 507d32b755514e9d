"""Decides what becomes of the occurrences of a schedule that are due: run, wait, skip or missed, and why.

Nominal times come from the expression alone. Time passes for the decision only in how late an occurrence is; so a clock
that steps back repeats nothing, and one that steps forward makes occurrences late, which is what `catch_up` is about.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, assert_never

from scheduler.policy.states import TERMINAL, TaskState

CATCH_UP_MAX: Final = 100
"""Late occurrences that `all` makes up for; older ones are missed."""

QUEUED_MAX: Final = 100
"""Occurrences of one schedule that wait for the one before them."""

ON_TIME_S: Final = 2.0
"""An occurrence decided this late is on time."""

ON_TIME_NEWEST_S: Final = 10.0
"""The same for one that no later one has overtaken: long enough for another engine to take the lead."""


class Overlap(StrEnum):
    """What happens to an occurrence while the task of the one before it has not ended."""

    SKIP = "skip"
    ALLOW = "allow"
    QUEUE = "queue"
    QUEUE_ON_SUCCESS = "queue_on_success"


class CatchUp(StrEnum):
    """Which of the occurrences that nobody was there for are made up for."""

    NONE = "none"
    LAST = "last"
    ALL = "all"


class Fate(StrEnum):
    """What became of an occurrence. `submitted` has a task; `queued` waits for the one before it; the rest is final."""

    SUBMITTED = "submitted"
    QUEUED = "queued"
    SKIPPED = "skipped"
    MISSED = "missed"
    REFUSED = "refused"


@dataclass(frozen=True, slots=True)
class Due:
    """A due occurrence: whether it is to run, else why not. `nominal` is Unix seconds."""

    nominal: float
    missed: str | None = None


def decide_due(nominals: Sequence[float], catch_up: CatchUp, *, now: float) -> list[Due]:
    """Which of these occurrences, ascending and all due, are to run. Those on time run whatever the policy is."""
    newest = len(nominals) - 1
    late = [n for n, nominal in enumerate(nominals) if not _on_time(now - nominal, newest=n == newest)]
    made_up = set(late[-_made_up_max(catch_up) :]) if catch_up is not CatchUp.NONE else set()
    if catch_up is CatchUp.LAST:
        # Only if nothing on time runs in its place.
        made_up &= {newest}
    return [
        Due(nominal, _missed(now - nominal, catch_up) if n in late and n not in made_up else None)
        for n, nominal in enumerate(nominals)
    ]


def _on_time(late_s: float, *, newest: bool) -> bool:
    return late_s <= (ON_TIME_NEWEST_S if newest else ON_TIME_S)


def _made_up_max(catch_up: CatchUp) -> int:
    return CATCH_UP_MAX if catch_up is CatchUp.ALL else 1


def _missed(late_s: float, catch_up: CatchUp) -> str:
    said = {
        CatchUp.NONE: "the schedule does not catch up",
        CatchUp.LAST: "only the last one is made up for",
        CatchUp.ALL: f"at most {CATCH_UP_MAX} are made up for",
    }
    return f"Nobody was there at its time; {late_s:.0f} s later {said[catch_up]}."


@dataclass(frozen=True, slots=True)
class Before:
    """What an occurrence comes after: how many wait in front of it, and the last task that was submitted, if any."""

    queued: int = 0
    task: int | None = None
    state: TaskState | None = None


@dataclass(frozen=True, slots=True)
class Verdict:
    """What becomes of an occurrence now, and why if it does not run."""

    fate: Fate
    reason: str = ""


def decide_overlap(overlap: Overlap, before: Before) -> Verdict:
    """Whether an occurrence runs now, waits or is skipped. A task that is gone has ended well."""
    busy = before.state is not None and before.state not in TERMINAL
    match overlap:
        case Overlap.ALLOW:
            return Verdict(Fate.SUBMITTED)
        case Overlap.SKIP:
            said = f"Task {before.task} of the occurrence before it has not ended: it is {before.state}."
            return Verdict(Fate.SKIPPED, said) if busy else Verdict(Fate.SUBMITTED)
        case Overlap.QUEUE | Overlap.QUEUE_ON_SUCCESS:
            if busy or before.queued:
                return _queued(before)
            return _after_the_end(overlap, before)
        case _ as never:
            assert_never(never)


def decide_queued(overlap: Overlap, before: Before) -> Verdict:
    """The same for the occurrence that waits in front."""
    if overlap in (Overlap.ALLOW, Overlap.SKIP) or before.state is None or before.state in TERMINAL:
        return _after_the_end(overlap, before)
    return Verdict(Fate.QUEUED, f"It waits for the end of task {before.task}.")


def _queued(before: Before) -> Verdict:
    if before.queued >= QUEUED_MAX:
        return Verdict(Fate.SKIPPED, f"{QUEUED_MAX} occurrences wait before it already.")
    return Verdict(Fate.QUEUED, f"It waits for the end of task {before.task}.")


def _after_the_end(overlap: Overlap, before: Before) -> Verdict:
    if overlap is Overlap.QUEUE_ON_SUCCESS and before.state not in (None, TaskState.SUCCEEDED):
        said = f"Task {before.task} of the occurrence before it is {before.state}."
        return Verdict(Fate.SKIPPED, f"{said} Replay it, or pause and resume the schedule.")
    return Verdict(Fate.SUBMITTED)
