"""The newest board: one read per second however many ask, and the last one kept when the database is away."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

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
    assert (sight.lost, sight.board.seq) == (True, 1)
    assert newest.age_s() == 30.5
    clock.away, clock.now_s = False, clock.now_s + 1
    assert not newest.look().lost


def test_no_snapshot_is_an_empty_board() -> None:
    clock = Clock()
    clock.seq = 0
    newest = clock.newest()
    assert not newest.look().board.exists
    assert "There is no snapshot yet" in newest.frame(Key("overview")).html
