"""The newest board: few reads however many ask, soon after it is written, and kept when the database is away."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest
from django.db import OperationalError

from scheduler.live.frames import Key
from scheduler.live.newest import Newest
from scheduler.reads.snapshot import SnapshotRow
from tests.live import sample


class Clock:
    """Time that moves when told to, and a database that counts how often it is asked."""

    def __init__(self) -> None:
        self.now_s = 100.0
        self.seq = 1
        self.reads = 0
        self.away = False

    def read(self) -> SnapshotRow | None:
        self.reads += 1
        if self.away:
            raise OperationalError("the server closed the connection")
        return SnapshotRow(self.seq, 1_000.0 + self.seq, sample.body(self.seq)) if self.seq else None

    def newest(self, wall_s: float = 1_001.5) -> Newest:
        return Newest(self.read, lambda: self.now_s, lambda: wall_s)


def test_many_readers_cost_one_read_per_second() -> None:
    clock = Clock()
    newest = clock.newest()
    with ThreadPoolExecutor(16) as threads:
        list(threads.map(lambda _: newest.frame(Key("overview")), range(200)))
    assert clock.reads == 1
    clock.now_s += 1
    newest.frame(Key("pools"))
    assert clock.reads == 2


def test_a_frame_is_drawn_once_per_board() -> None:
    clock = Clock()
    newest = clock.newest()
    first = newest.frame(Key("overview"))
    clock.now_s += 1
    assert newest.frame(Key("overview")) is first
    clock.now_s, clock.seq = clock.now_s + 1, 2
    assert newest.frame(Key("overview")) is not first


def test_the_age_counts_from_when_it_was_taken_and_not_from_when_it_was_read() -> None:
    clock = Clock()
    newest = clock.newest(wall_s=1_031.0)
    newest.look()
    clock.now_s += 2
    assert newest.age_s() == 32.0


def test_after_the_first_board_skewed_clocks_do_not_matter() -> None:
    clock = Clock()
    newest = clock.newest(wall_s=5_000.0)
    newest.look()
    clock.now_s, clock.seq = clock.now_s + 1, 2
    newest.look()
    assert newest.age_s() == 0.0


def test_a_database_that_is_away_keeps_the_last_board_and_says_so() -> None:
    clock = Clock()
    newest = clock.newest()
    newest.look()
    clock.away, clock.now_s = True, clock.now_s + 30
    sight = newest.look()
    assert (sight.lost, sight.board.seq, newest.lost()) == (True, 1, True)
    assert newest.age_s() == 30.5
    clock.away, clock.now_s = False, clock.now_s + 1
    assert not newest.look().lost


def test_who_queued_behind_a_look_in_vain_does_not_wait_for_another() -> None:
    clock = Clock()

    def wait() -> SnapshotRow | None:
        clock.now_s += 5
        clock.away = True
        return clock.read()

    newest = Newest(wait, lambda: clock.now_s, lambda: 1_001.5)
    newest.look()
    assert newest.look().lost
    assert clock.reads == 1


def test_no_snapshot_is_an_empty_board() -> None:
    clock = Clock()
    clock.seq = 0
    newest = clock.newest()
    assert not newest.look().board.exists
    assert "There is no snapshot yet" in newest.frame(Key("overview")).html


@pytest.mark.parametrize("phase_s", [0.0, 0.3, 0.6, 0.99])
def test_looks_draw_near_to_the_moment_at_which_boards_are_written(phase_s: float) -> None:
    """A board comes each second; whoever looks when a look is due sees each within a quarter of a second."""
    clock = Clock()
    newest, seen, late = clock.newest(), 0, []
    for _ in range(200):
        clock.now_s += newest.due_in_s()
        clock.seq = int(clock.now_s + phase_s)
        if newest.look().board.seq != seen:
            seen = clock.seq
            late.append((clock.now_s + phase_s) % 1)
    assert len(late) > 100
    assert max(late[20:]) < 0.26


def test_where_no_engine_writes_it_looks_once_a_second() -> None:
    clock = Clock()
    newest, began_s = clock.newest(), clock.now_s
    while clock.now_s < began_s + 60:
        newest.look()
        clock.now_s += newest.due_in_s()
    assert clock.reads < 75
