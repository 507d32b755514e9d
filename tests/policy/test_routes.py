"""A route gives the first model that is up and whose wait fits, and lets one task try what may be back."""

from __future__ import annotations

from dataclasses import replace

import pytest

from scheduler.policy.limits import limit_at
from scheduler.policy.routes import Option, Prospect, Queued, choose, faults_in_route, to_try, wait_s
from tests.policy.build import bucket, semaphore

NOW = 100.0
UP, DOWN, PAUSED = Prospect(open=True), Prospect(open=False), Prospect(open=True, paused=True)
TRIED = Prospect(open=False, half_open=True)
TO_TRY = Prospect(open=False, half_open=True, trial=True)


def slow(wait: float) -> Prospect:
    return Prospect(open=True, wait_s=wait)


@pytest.mark.parametrize(
    ("prospects", "latest_start", "chosen"),
    [
        ([UP, UP], None, 0),
        ([DOWN, UP], None, 1),
        ([PAUSED, UP], None, 1),
        ([TO_TRY, DOWN, UP], None, 2),
        ([slow(50.0), UP], None, 0),
        ([slow(50.0), UP], NOW + 50.0, 0),
        ([slow(50.0), UP], NOW + 49.0, 1),
        ([slow(50.0), slow(40.0), slow(40.0)], NOW + 1.0, 1),
        ([DOWN, DOWN], None, 0),
        ([PAUSED, DOWN], None, 1),
        ([PAUSED, PAUSED], None, 0),
    ],
)
def test_the_first_that_is_up_and_fits(prospects: list[Prospect], latest_start: float | None, chosen: int) -> None:
    assert choose(prospects, latest_start=latest_start, now=NOW) == chosen


@pytest.mark.parametrize(
    ("prospects", "chosen", "tried"),
    [([TO_TRY, UP], 1, 0), ([TRIED, UP], 1, None), ([UP, TO_TRY], 0, None), ([DOWN, TO_TRY, UP], 2, 1)],
)
def test_one_task_tries_a_better_model_that_may_be_back(
    prospects: list[Prospect], chosen: int, tried: int | None
) -> None:
    assert to_try(prospects, chosen) == tried


def test_a_paused_model_is_not_tried() -> None:
    assert to_try([TO_TRY._replace(paused=True), UP], 1) is None


def test_a_wait_is_what_is_ahead_by_how_fast_it_comes_back() -> None:
    api = limit_at(bucket(rate=10.0, burst=10.0, level=5.0, at=NOW), now=NOW)
    assert wait_s([], expected_s=1.0, now=NOW) == 0.0
    assert wait_s([Queued(api, 1.0, 0.0)], expected_s=1.0, now=NOW) == 0.0
    assert wait_s([Queued(api, 5.0, 100.0)], expected_s=1.0, now=NOW) == pytest.approx(10.0)
    permits = limit_at(replace(semaphore(permits=4, held=4.0)), now=NOW)
    assert wait_s([Queued(api, 5.0, 100.0), Queued(permits, 1.0, 7.0)], expected_s=20.0, now=NOW) == pytest.approx(40.0)


def test_a_limit_that_is_closed_or_gives_nothing_makes_the_wait_longer() -> None:
    closed = limit_at(bucket(at=NOW, blocked_until=NOW + 30.0), now=NOW)
    assert wait_s([Queued(closed, 1.0, 0.0)], expected_s=1.0, now=NOW) == pytest.approx(30.0)
    dry = limit_at(bucket(rate=0.0, level=0.0, at=NOW), now=NOW)
    assert wait_s([Queued(dry, 1.0, 0.0)], expected_s=1.0, now=NOW) == float("inf")


def test_faults_of_a_route_are_named_with_their_place() -> None:
    assert faults_in_route([Option("a", {}), Option("b", {})], "c") == ()
    said = faults_in_route([Option("a", {}), Option("a", {}), Option("", {})], "")
    assert [fault.loc for fault in said] == [("models", 1, "model"), ("models", 2, "model"), ("degraded_model",)]
    assert [fault.loc for fault in faults_in_route([], None)] == [("models",)]
    assert faults_in_route([Option(f"m{n}", {}) for n in range(9)], None)[0].loc == ("models",)
