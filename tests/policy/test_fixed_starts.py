"""Promising starts: never more slots than may be promised, and a true word about when there is room."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scheduler.errors import Refused
from scheduler.policy.admission import PoolTerms, Submission, admit
from scheduler.policy.fixed_starts import Booking, OnMiss, first_room, fix, has_room, reservable_slots, slots_spoken_for
from scheduler.policy.states import TaskState
from scheduler.policy.types import PoolId

BOOKINGS = st.builds(
    lambda start, length: Booking(float(start), float(start + length)), st.integers(0, 60), st.integers(1, 20)
)
POOL = PoolTerms(PoolId(1), max_attempts=3, duration_default_s=4.0)


def taken_at(moment: float, booked: list[Booking]) -> int:
    return sum(b.starts_at <= moment < b.ends_at for b in booked)


@given(wanted=BOOKINGS, booked=st.lists(BOOKINGS, max_size=12), slots=st.integers(1, 4))
def test_room_is_a_slot_throughout(wanted: Booking, booked: list[Booking], slots: int) -> None:
    fullest = max(taken_at(m + 0.5, booked) for m in range(int(wanted.starts_at), int(wanted.ends_at)))
    assert has_room(wanted, booked, slots=slots) == (fullest < slots)


@given(wanted=BOOKINGS, booked=st.lists(BOOKINGS, max_size=12), slots=st.integers(1, 4))
def test_the_time_that_is_named_has_room_and_no_earlier_one_has(
    wanted: Booking, booked: list[Booking], slots: int
) -> None:
    length = wanted.ends_at - wanted.starts_at
    at = first_room(wanted, booked, slots=slots)
    assert has_room(Booking(at, at + length), booked, slots=slots)
    for earlier in range(int(wanted.starts_at), int(at)):
        assert not has_room(Booking(earlier, earlier + length), booked, slots=slots)


@given(booked=st.lists(BOOKINGS, max_size=12))
def test_as_many_slots_are_spoken_for_as_bookings_meet_at_their_fullest(booked: list[Booking]) -> None:
    fullest = max((taken_at(moment + 0.5, booked) for moment in range(80)), default=0)
    assert slots_spoken_for(booked, now=-1.0) == fullest


def test_a_fixed_start_whose_time_has_come_needs_its_whole_time_from_now() -> None:
    late, next_one = Booking(90.0, 95.0), Booking(103.0, 104.0)
    assert slots_spoken_for([late, next_one], now=100.0) == 2
    assert slots_spoken_for([late, next_one], now=98.0) == 1
    assert slots_spoken_for([Booking(5.0, 5.0)], now=0.0) == 1, "also one that is expected to take no time"


def test_at_least_one_slot_may_be_promised() -> None:
    assert [reservable_slots(n, 0.5) for n in (0, 1, 2, 3, 10)] == [1, 1, 1, 1, 5]
    assert reservable_slots(10, 0.0) == 1


def test_a_slot_is_held_for_about_two_tasks_ahead_within_bounds() -> None:
    def held(duration_s: float) -> float:
        fixed = fix(1000.0, expected_s=1.0, pool_duration_s=duration_s, tolerance_s=None, on_miss=None)
        return 1000.0 - fixed.held_from

    assert [held(d) for d in (1.0, 10.0, 1000.0)] == [5.0, 20.0, 60.0]


def asked(**fields: object) -> Submission:
    return Submission(payload="{}", **fields)  # type: ignore[arg-type]  # a test names its own fields


def test_a_delay_promises_nothing() -> None:
    row = admit(asked(start_in_s=60.0), pool=POOL, resources={}, now=100.0)
    assert (row.state, row.due_at, row.fixed, row.latest_start) == (TaskState.SCHEDULED, 160.0, None, None)


def test_a_tolerance_or_what_to_do_on_a_miss_makes_it_a_fixed_start() -> None:
    late = admit(asked(start_in_s=60.0, tolerance_s=3.0), pool=POOL, resources={}, now=100.0)
    assert (late.latest_start, late.start_by) == (163.0, None)
    assert late.fixed is not None
    assert late.fixed.on_miss is OnMiss.RUN_LATE
    skip = admit(asked(start_at=160.0, on_miss=OnMiss.SKIP, deadline_at=162.0), pool=POOL, resources={}, now=100.0)
    assert (skip.latest_start, skip.start_by) == (158.0, 161.0)


def test_the_earlier_of_tolerance_and_expiry_ends_it() -> None:
    row = admit(asked(start_in_s=60.0, on_miss=OnMiss.FAIL, expires_in_s=60.5), pool=POOL, resources={}, now=100.0)
    assert (row.start_by, row.expires_at) == (160.5, 160.5)
    plain = admit(asked(expires_in_s=5.0), pool=POOL, resources={}, now=100.0)
    assert (plain.state, plain.start_by) == (TaskState.READY, 105.0)


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({"tolerance_s": 1.0}, "no_start"),
        ({"on_miss": OnMiss.SKIP}, "no_start"),
        ({"start_in_s": 10.0, "expires_in_s": 9.0}, "expires_before_start"),
    ],
)
def test_what_makes_no_sense_is_refused(fields: dict[str, object], code: str) -> None:
    with pytest.raises(Refused) as refused:
        admit(asked(**fields), pool=POOL, resources={}, now=100.0)
    assert refused.value.code == code
