"""What becomes of due occurrences: catching up, overlapping, waiting."""

from __future__ import annotations

import pytest

from scheduler.policy.schedules import (
    CATCH_UP_MAX,
    QUEUED_MAX,
    Before,
    CatchUp,
    Fate,
    Overlap,
    decide_due,
    decide_overlap,
    decide_queued,
)
from scheduler.policy.states import TaskState

RUNNING = Before(task=7, state=TaskState.RUNNING)
FAILED = Before(task=7, state=TaskState.FAILED)
DONE = Before(task=7, state=TaskState.SUCCEEDED)
NOTHING = Before()


def to_run(nominals: list[float], catch_up: CatchUp, now: float) -> list[float]:
    return [due.nominal for due in decide_due(nominals, catch_up, now=now) if due.missed is None]


@pytest.mark.parametrize(
    ("catch_up", "expected"), [(CatchUp.NONE, []), (CatchUp.LAST, [180.0]), (CatchUp.ALL, [60.0, 120.0, 180.0])]
)
def test_down_over_three_occurrences(catch_up: CatchUp, expected: list[float]) -> None:
    assert to_run([60.0, 120.0, 180.0], catch_up, now=230.0) == expected


@pytest.mark.parametrize("catch_up", list(CatchUp))
def test_what_is_on_time_runs_whatever_the_policy(catch_up: CatchUp) -> None:
    assert to_run([60.0], catch_up, now=60.05) == [60.0]
    assert to_run([60.0], catch_up, now=69.0) == [60.0]
    assert to_run([58.5, 59.0, 59.5, 60.0], catch_up, now=60.2) == [58.5, 59.0, 59.5, 60.0]


def test_one_on_time_stands_for_the_late_ones_before_it() -> None:
    assert to_run([60.0, 120.0, 180.0], CatchUp.LAST, now=180.1) == [180.0]


def test_at_most_a_hundred_are_made_up_for_and_the_rest_says_why() -> None:
    nominals = [60.0 * n for n in range(150)]
    due = decide_due(nominals, CatchUp.ALL, now=60.0 * 200)
    assert [d.nominal for d in due if d.missed is None] == nominals[-CATCH_UP_MAX:]
    assert "at most 100" in (due[0].missed or "")


@pytest.mark.parametrize(
    ("overlap", "before", "fate"),
    [
        (Overlap.SKIP, RUNNING, Fate.SKIPPED),
        (Overlap.SKIP, FAILED, Fate.SUBMITTED),
        (Overlap.SKIP, NOTHING, Fate.SUBMITTED),
        (Overlap.ALLOW, RUNNING, Fate.SUBMITTED),
        (Overlap.QUEUE, RUNNING, Fate.QUEUED),
        (Overlap.QUEUE, FAILED, Fate.SUBMITTED),
        (Overlap.QUEUE, Before(queued=1, task=7, state=TaskState.SUCCEEDED), Fate.QUEUED),
        (Overlap.QUEUE, Before(queued=QUEUED_MAX, task=7, state=TaskState.RUNNING), Fate.SKIPPED),
        (Overlap.QUEUE_ON_SUCCESS, RUNNING, Fate.QUEUED),
        (Overlap.QUEUE_ON_SUCCESS, FAILED, Fate.SKIPPED),
        (Overlap.QUEUE_ON_SUCCESS, DONE, Fate.SUBMITTED),
        (Overlap.QUEUE_ON_SUCCESS, NOTHING, Fate.SUBMITTED),
    ],
)
def test_overlap(overlap: Overlap, before: Before, fate: Fate) -> None:
    verdict = decide_overlap(overlap, before)
    assert verdict.fate is fate
    assert bool(verdict.reason) == (fate is not Fate.SUBMITTED)


@pytest.mark.parametrize(
    ("overlap", "before", "fate"),
    [
        (Overlap.QUEUE, RUNNING, Fate.QUEUED),
        (Overlap.QUEUE, FAILED, Fate.SUBMITTED),
        (Overlap.QUEUE_ON_SUCCESS, FAILED, Fate.SKIPPED),
        (Overlap.QUEUE_ON_SUCCESS, NOTHING, Fate.SUBMITTED),
        (Overlap.ALLOW, RUNNING, Fate.SUBMITTED),
    ],
)
def test_the_one_that_waits_in_front(overlap: Overlap, before: Before, fate: Fate) -> None:
    assert decide_queued(overlap, before).fate is fate
