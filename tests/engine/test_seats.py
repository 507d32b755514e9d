"""What a seat makes of leases that its worker has and that were not handed out here."""

from __future__ import annotations

from scheduler.engine.remote.seats import Seat
from scheduler.policy.remote import RemoteWorker
from scheduler.policy.types import LeaseId, PoolId, WorkerId

KNOWN, UNKNOWN = LeaseId(1), LeaseId(2)
WORKER = RemoteWorker(WorkerId("w"), None, {PoolId(1): 2}, draining=False)


def test_a_socket_never_got_what_it_neither_named_nor_was_given_here() -> None:
    seat = Seat(WORKER, socket=True, now=0.0, named=[KNOWN])
    assert seat.never_got(UNKNOWN, age_s=2.5, now=3.0)
    assert not seat.never_got(UNKNOWN, age_s=1.5, now=3.0)
    assert not seat.never_got(KNOWN, age_s=60.0, now=60.0)
    seat.held[UNKNOWN] = (PoolId(1), 1.0)
    assert not seat.never_got(UNKNOWN, age_s=60.0, now=60.0)


def test_what_came_after_the_last_poll_was_said_may_have_reached_the_worker_elsewhere() -> None:
    seat = Seat(WORKER, socket=False, now=0.0)
    assert not seat.never_got(UNKNOWN, age_s=60.0, now=60.0)
    seat.name([KNOWN], now=60.0)
    assert not seat.never_got(KNOWN, age_s=60.0, now=70.0)
    assert not seat.never_got(UNKNOWN, age_s=10.5, now=70.0)
    assert seat.never_got(UNKNOWN, age_s=11.5, now=70.0)


def test_a_worker_whose_polls_are_slow_to_come_is_waited_for_and_one_that_is_busy_is_not() -> None:
    seat = Seat(WORKER, socket=False, now=0.0)
    seat.came(now=1.0)
    assert seat.patience_s == 1.5
    seat.polls, seat.quiet_since = 0, 2.0
    seat.came(now=2.1)
    assert 0.5 < seat.patience_s < 1.5
    seat.polls, seat.quiet_since = 0, 3.0
    seat.came(now=9.0)
    assert seat.patience_s == 0


def test_a_poll_offers_as_many_slots_as_it_asks_for_beside_what_it_has_wherever_that_was_handed_out() -> None:
    seat = Seat(RemoteWorker(WorkerId("w"), None, {PoolId(1): 5}, draining=False), socket=False, now=0.0)
    seat.held[KNOWN] = (PoolId(1), 0.0)
    assert seat.wanted(2) == {PoolId(1): 3}
    assert seat.wanted(2, [KNOWN, UNKNOWN]) == {PoolId(1): 4}
    assert seat.wanted(5, [KNOWN, UNKNOWN]) == {PoolId(1): 5}
