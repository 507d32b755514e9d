"""How much is on its way to a listener that may not be reading."""

from __future__ import annotations

from scheduler.policy.flow import BEHIND_MAX_S, PACE_BYTES_PER_S, WINDOW_BYTES, Flow

EVENT = WINDOW_BYTES // 4


def filled() -> Flow:
    """Four events on their way: as much as may be."""
    flow = Flow(since=0.0)
    for seq in range(1, 5):
        assert flow.room(now=0.0)
        flow.sent(seq, EVENT, now=0.0)
    return flow


def test_no_more_than_the_window_is_on_its_way() -> None:
    flow = filled()
    assert not flow.room(now=0.0)
    assert flow.bytes_on_way == WINDOW_BYTES


def test_what_is_acknowledged_has_arrived() -> None:
    flow = filled()
    flow.acknowledged(2, now=0.0)
    assert flow.bytes_on_way == 2 * EVENT
    assert flow.room(now=0.0)
    flow.acknowledged(2, now=0.0)
    assert flow.bytes_on_way == 2 * EVENT
    flow.acknowledged(99, now=0.0)
    assert flow.bytes_on_way == 0


def test_without_a_word_it_is_taken_to_arrive_at_a_slow_pace() -> None:
    flow = filled()
    assert not flow.room(now=EVENT / PACE_BYTES_PER_S * 0.9)
    assert flow.room(now=EVENT / PACE_BYTES_PER_S)
    assert flow.bytes_on_way == 3 * EVENT


def test_time_in_which_nothing_was_sent_earns_nothing() -> None:
    flow = Flow(since=0.0)
    assert flow.room(now=1000.0)
    for seq in range(4):
        flow.sent(seq, EVENT, now=1000.0)
    assert not flow.room(now=1000.0)


def test_who_neither_acknowledges_nor_keeps_up_is_given_up() -> None:
    flow = filled()
    assert not flow.room(now=0.0)
    assert not flow.is_given_up(now=BEHIND_MAX_S)
    # Room that time made, and filled again, is no sign of life.
    assert flow.room(now=BEHIND_MAX_S)
    for seq in range(5, 9):
        flow.sent(seq, EVENT, now=BEHIND_MAX_S)
    assert not flow.room(now=BEHIND_MAX_S + 0.5)
    assert flow.is_given_up(now=BEHIND_MAX_S + 0.5)


def test_an_acknowledgement_begins_the_wait_anew() -> None:
    flow = filled()
    assert not flow.room(now=0.0)
    flow.acknowledged(1, now=50.0)
    assert not flow.is_given_up(now=BEHIND_MAX_S + 1.0)


def test_having_caught_up_begins_the_wait_anew() -> None:
    flow = filled()
    assert not flow.room(now=0.0)
    flow.caught_up()
    assert not flow.is_given_up(now=BEHIND_MAX_S + 1.0)
