"""Who is let in near a bound, who makes room, and what the others are told."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scheduler.policy.bounds import (
    RETRY_AFTER_MAX_S,
    Candidate,
    Depths,
    Newcomer,
    Overflow,
    PoolBounds,
    TenantBounds,
    allot,
    crowded,
    is_near,
    retry_after_s,
    room_wanted,
    turn_away,
)
from scheduler.policy.types import PoolId, PriorityClass, TaskId, TenantId

CRITICAL, HIGH, NORMAL, LOW = PriorityClass
POOL = PoolId(1)
ACME = TenantId(1)
BOUNDS = PoolBounds(POOL, "llm", 10, Overflow.REJECT, at_most=10)
TENANTS = {ACME: TenantBounds(ACME, "acme", 5, at_most=5)}


def newcomers(*classes: PriorityClass, tenant: TenantId = ACME) -> list[Newcomer]:
    return [Newcomer(place, POOL, tenant, priority) for place, priority in enumerate(classes)]


def candidates(*classes: PriorityClass) -> list[Candidate]:
    return [Candidate(TaskId(100 + n), POOL, priority) for n, priority in enumerate(classes)]


@pytest.mark.parametrize(
    ("at_most", "more", "bound", "near"),
    [(0, 1, 100_000, False), (89_000, 1_000, 100_000, False), (89_001, 1_000, 100_000, True), (0, 1, 1_000, True)],
)
def test_only_near_a_bound_is_counting_worth_it(at_most: int, more: int, bound: int, *, near: bool) -> None:
    assert is_near(at_most, more, bound) is near


def test_crowded_are_those_near_their_bound_alone() -> None:
    far = replace(BOUNDS, id=PoolId(2), max_pending=100_000, at_most=0)
    coming = [*newcomers(LOW), Newcomer(1, PoolId(2), TenantId(2), LOW)]
    assert crowded(coming, {POOL: BOUNDS, PoolId(2): far}, TENANTS) == ([POOL], [ACME])


def test_a_full_pool_refuses_by_name_and_depth_and_spreads_the_returns() -> None:
    pool = replace(BOUNDS, started_per_s=0.5)
    found = allot(newcomers(HIGH, HIGH, HIGH), {POOL: pool}, {}, Depths({POOL: 9}, {}), [])
    assert sorted(found.refusals) == [1, 2]
    one, two = found.refusals[1], found.refusals[2]
    assert "'llm' is full: 9 tasks wait, and max_pending is 10" in one.detail
    assert (one.code, one.errors[0].loc, one.retry_after_s, two.retry_after_s) == ("overloaded", ("pool",), 2.0, 4.0)


def test_a_tenant_at_its_bound_is_refused_and_takes_nobodys_place() -> None:
    pool = replace(BOUNDS, overflow=Overflow.SHED_LOWEST)
    depths = Depths({POOL: 10}, {ACME: 5})
    coming = [*newcomers(HIGH), Newcomer(1, POOL, TenantId(2), HIGH)]
    found = allot(coming, {POOL: pool}, TENANTS, depths, candidates(LOW, LOW))
    assert sorted(found.refusals) == [0]
    assert "'acme' has 5 tasks waiting, and max_queued is 5" in found.refusals[0].detail
    assert found.shed == (100,)


def test_shed_lowest_ends_only_those_strictly_below_the_newcomer() -> None:
    pool = replace(BOUNDS, overflow=Overflow.SHED_LOWEST)
    depths = Depths({POOL: 10}, {})
    found = allot(newcomers(LOW, NORMAL, NORMAL, HIGH), {POOL: pool}, {}, depths, candidates(LOW, NORMAL, NORMAL))
    assert sorted(found.refusals) == [0, 2]
    assert found.shed == (100, 101)


def test_shed_oldest_ends_low_ones_for_anybody_and_nobody_else() -> None:
    pool = replace(BOUNDS, overflow=Overflow.SHED_OLDEST)
    found = allot(newcomers(LOW, HIGH), {POOL: pool}, {}, Depths({POOL: 10}, {}), candidates(LOW, NORMAL))
    assert (sorted(found.refusals), found.shed) == ([1], (100,))


def test_a_pool_far_from_its_bound_is_not_held() -> None:
    assert allot(newcomers(LOW), {POOL: BOUNDS}, TENANTS, Depths({}, {ACME: 0}), []).refusals == {}


def test_room_is_wanted_where_a_pool_sheds_and_for_newcomers_only() -> None:
    shedding = replace(BOUNDS, overflow=Overflow.SHED_OLDEST)
    coming = newcomers(LOW, LOW)
    assert room_wanted(coming, {POOL: BOUNDS}, Depths({POOL: 10}, {})) == {}
    assert room_wanted(coming, {POOL: shedding}, Depths({POOL: 7}, {})) == {}
    assert room_wanted(coming, {POOL: shedding}, Depths({POOL: 9}, {})) == {POOL: 1}
    assert room_wanted(coming, {POOL: shedding}, Depths({POOL: 50}, {})) == {POOL: 2}


def test_an_overloaded_pool_turns_classes_away_and_says_when() -> None:
    pool = replace(BOUNDS, level=1, predicted_s=12.34)
    refusals = turn_away(newcomers(HIGH, LOW), {POOL: pool})
    assert list(refusals) == [1]
    assert refusals[1].retry_after_s == 12.3
    assert "overloaded (level 1) and takes no new work of class low" in refusals[1].detail
    assert turn_away(newcomers(NORMAL), {POOL: replace(pool, level=3, predicted_s=None)})[0].retry_after_s == 60.0


def test_nobody_is_sent_away_for_more_than_a_minute_or_less_than_a_second() -> None:
    assert retry_after_s(replace(BOUNDS, started_per_s=0.001), 5) == RETRY_AFTER_MAX_S
    assert retry_after_s(replace(BOUNDS, started_per_s=900.0), 5) == 1.0
    assert retry_after_s(BOUNDS, 5) == RETRY_AFTER_MAX_S
    assert retry_after_s(replace(BOUNDS, predicted_s=8.0), 5) == 8.0


@given(
    st.lists(st.sampled_from(PriorityClass), max_size=12),
    st.lists(st.sampled_from(PriorityClass), max_size=12),
    st.integers(0, 15),
    st.integers(0, 8),
    st.sampled_from(Overflow),
)
def test_no_bound_is_passed_whoever_comes(
    coming: list[PriorityClass], waiting: list[PriorityClass], depth: int, of_tenant: int, overflow: Overflow
) -> None:
    pool = replace(BOUNDS, overflow=overflow)
    there = candidates(*sorted(waiting, reverse=True)) if overflow is not Overflow.REJECT else []
    found = allot(newcomers(*coming), {POOL: pool}, TENANTS, Depths({POOL: depth}, {ACME: of_tenant}), there)
    admitted = len(coming) - len(found.refusals)
    assert len(set(found.shed)) == len(found.shed)
    assert depth + admitted - len(found.shed) <= max(depth, pool.max_pending)
    assert of_tenant + admitted <= max(of_tenant, TENANTS[ACME].max_queued)
    if found.refusals and of_tenant + len(coming) <= TENANTS[ACME].max_queued:
        assert depth + len(coming) > pool.max_pending, "refused with room left"
