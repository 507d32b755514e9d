"""The hub and the feed: newest wins, and cost does not follow the number of viewers."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

from scheduler.live.board import read_board
from scheduler.live.feed import Feed
from scheduler.live.frames import Frame, Key
from scheduler.live.hub import KEYS_MAX, Hub, Slot
from scheduler.live.newest import Newest
from scheduler.live.pages import draw_page
from scheduler.reads.snapshot import SnapshotRow
from tests.live import sample

OVERVIEW = Key("overview")


def drawn(seq: int) -> Frame:
    return draw_page(OVERVIEW, read_board(seq, 0.0, sample.body(seq)))


def run(scenario: Callable[[], Coroutine[Any, Any, None]]) -> None:
    asyncio.run(scenario())


class Source:
    """A snapshot table that can be told to move on, and that counts reads and how often a page is drawn."""

    def __init__(self) -> None:
        self.seq, self.reads, self.now_s = 1, 0, 0.0
        self.newest = Newest(self._read, lambda: self.now_s, lambda: 0.0)

    def _read(self) -> SnapshotRow:
        self.reads += 1
        return SnapshotRow(self.seq, float(self.seq), sample.body(self.seq))

    def move(self) -> None:
        self.seq += 1
        self.now_s += 1


def test_a_slow_viewer_finds_the_newest_frame_and_no_backlog() -> None:
    async def scenario() -> None:
        hub, slot = Hub(), Slot(OVERVIEW)
        assert hub.join(slot)
        frames = [drawn(seq) for seq in (1, 2, 3)]
        hub.publish(frames)
        assert await slot.take(1) is frames[-1]
        assert await slot.take(0) is None

    run(scenario)


def test_a_viewer_that_left_gets_nothing() -> None:
    async def scenario() -> None:
        hub, slot = Hub(), Slot(OVERVIEW)
        hub.join(slot)
        hub.leave(slot)
        hub.leave(slot)
        hub.publish([drawn(1)])
        assert await slot.take(0) is None
        assert (hub.watched(), hub.viewers()) == ([], 0)

    run(scenario)


def test_the_number_of_watched_pages_is_bounded() -> None:
    async def scenario() -> None:
        hub = Hub()
        slots = [Slot(Key("pool", f"p{n}")) for n in range(KEYS_MAX)]
        assert all(hub.join(slot) for slot in slots)
        assert not hub.join(Slot(Key("pool", "one more")))
        assert hub.join(Slot(Key("pool", "p0")))

    run(scenario)


def test_five_hundred_viewers_cost_what_one_costs() -> None:
    async def reads_with(viewers: int) -> int:
        source = Source()
        feed = Feed(source.newest)
        slots = [Slot(OVERVIEW) for _ in range(viewers)]
        for slot in slots:
            assert await feed.join(slot)
        for _ in range(5):
            source.move()
            await feed.step()
        frames = [await slot.take(0.1) for slot in slots]
        assert {frame.seq for frame in frames if frame} == {6}
        assert len({id(frame) for frame in frames}) == 1
        for slot in slots:
            feed.leave(slot)
        return source.reads

    async def scenario() -> None:
        assert await reads_with(1) == await reads_with(500)

    run(scenario)


def test_a_step_without_a_newer_snapshot_publishes_nothing() -> None:
    async def scenario() -> None:
        source = Source()
        feed, slot = Feed(source.newest), Slot(OVERVIEW)
        await feed.join(slot)
        await feed.step()
        assert await slot.take(0) is None
        source.move()
        await feed.step()
        await feed.step()
        frame = await slot.take(0.1)
        assert frame
        assert frame.seq == 2
        feed.leave(slot)

    run(scenario)


def test_nobody_watching_ends_the_task() -> None:
    async def scenario() -> None:
        feed, slot = Feed(Source().newest), Slot(OVERVIEW)
        await feed.join(slot)
        task = feed._task
        assert task
        feed.leave(slot)
        await asyncio.wait_for(task, 5)

    run(scenario)
