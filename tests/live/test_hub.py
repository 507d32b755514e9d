"""The hub and the feed: newest wins, and cost does not follow the number of viewers."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest
from websockets.frames import Frame as WireFrame
from websockets.frames import Opcode
from websockets.protocol import Protocol, Side, State

from scheduler.live import hub as hub_module
from scheduler.live.board import read_board
from scheduler.live.feed import Feed
from scheduler.live.frames import Frame, Key
from scheduler.live.hub import AT_ONCE, KEYS_MAX, Hub
from scheduler.live.newest import Newest
from scheduler.live.pages import draw_page
from scheduler.live.viewers import Message, Viewer
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


class Wire:
    """A line that notes what is written to it, and takes nothing while it is busy."""

    def __init__(self) -> None:
        self.written: list[Message] = []
        self.busy = self.ended = False
        self.asked = 0

    def write(self, message: Message) -> bool:
        self.asked += 1
        if not self.busy:
            self.written.append(message)
        return not self.busy

    def end(self) -> None:
        self.ended = True

    def seqs(self) -> list[int]:
        return [int(message.text.split('data-seq="')[1].split('"')[0]) for message in self.written]


def watching(hub: Hub, key: Key = OVERVIEW, *, shown: Frame | None = None) -> tuple[Viewer, Wire]:
    wire = Wire()
    viewer = Viewer(key, wire, wire.end)
    assert hub.join(viewer)
    if shown is not None:
        hub.begin(viewer, shown)
    return viewer, wire


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(10):
        while not condition():  # noqa: ASYNC110 - a line has no event to wait for
            await asyncio.sleep(0.001)


@pytest.fixture(autouse=True)
def brisk(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hub_module, "PASS_EVERY_S", 0.01)


def test_a_slow_viewer_is_told_the_newest_and_no_backlog_and_delays_nobody() -> None:
    async def scenario() -> None:
        hub, frames = Hub(lambda: 0.0), [drawn(seq) for seq in (1, 2, 3, 4)]
        slow, other = (watching(hub, shown=frames[0])[1] for _ in range(2))
        slow.busy = True
        for frame in frames[1:]:
            hub.publish([frame])
            await until(lambda seq=frame.seq: other.seqs()[-1:] == [seq])  # type: ignore[misc]  # a default is typed by none
        slow.busy = False
        await until(lambda: bool(slow.written))
        assert (slow.seqs(), other.seqs()) == ([4], [2, 3, 4])
        assert slow.written[0].text.endswith(frames[3].since(frames[0]))

    run(scenario)


def test_what_is_said_to_many_is_made_once() -> None:
    async def scenario() -> None:
        hub, before, after = Hub(lambda: 0.0), drawn(1), drawn(2)
        wires = [watching(hub, shown=before)[1] for _ in range(AT_ONCE + 1)]
        hub.publish([after])
        await until(lambda: all(wire.written for wire in wires))
        assert len({id(message) for wire in wires for message in wire.written}) == 1

    run(scenario)


def test_a_line_that_stays_busy_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hub_module, "STUCK_S", 0.05)

    async def scenario() -> None:
        hub = Hub(lambda: 0.0)
        _, wire = watching(hub, shown=drawn(1))
        wire.busy = True
        hub.publish([drawn(2)])
        await until(lambda: wire.ended)
        assert hub.viewers() == 0
        assert wire.asked > 1

    run(scenario)


def test_a_line_that_fails_ends_alone(caplog: pytest.LogCaptureFixture) -> None:
    class Broken(Wire):
        def write(self, message: Message) -> bool:
            raise OSError(message.text)

    async def scenario() -> None:
        hub, before = Hub(lambda: 0.0), drawn(1)
        broken = Broken()
        viewer = Viewer(OVERVIEW, broken, broken.end)
        hub.join(viewer)
        hub.begin(viewer, before)
        _, other = watching(hub, shown=before)
        hub.publish([drawn(2)])
        await until(lambda: bool(other.written) and broken.ended)

    run(scenario)
    assert "could not be told" in caplog.text


def test_who_is_paused_hears_beats_and_nothing_new(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hub_module, "BEAT_EVERY_S", 0.02)

    async def scenario() -> None:
        hub, before = Hub(lambda: 0.0), drawn(1)
        viewer, wire = watching(hub, shown=before)
        _, other = watching(hub, shown=before)
        hub.pause(viewer)
        hub.publish([drawn(2)])
        await until(lambda: len(wire.written) > 1 and len(other.written) > 1)
        assert set(wire.seqs()) == {1}
        assert all(len(message.text) <= 200 for message in wire.written)
        assert other.seqs()[-1] == 2

    run(scenario)


def test_who_watches_is_told_at_once_that_the_database_went_and_that_it_came_back() -> None:
    async def scenario() -> None:
        lost = [False]
        hub = Hub(lambda: 0.0, lambda: lost[0])
        _, wire = watching(hub, shown=drawn(1))
        for says in ("yes", ""):
            lost[0] = bool(says)
            await until(lambda said=f'data-lost="{says}"': any(said in each.text for each in wire.written))  # type: ignore[misc]  # as above
            assert len(wire.written) == 1, "once, and not with every pass"
            wire.written.clear()

    run(scenario)


def test_who_joined_with_something_newer_is_not_taken_back() -> None:
    async def scenario() -> None:
        hub = Hub(lambda: 0.0)
        _, first = watching(hub, shown=drawn(1))
        hub.publish([drawn(2)])
        _, late = watching(hub, shown=drawn(3))
        await until(lambda: first.seqs()[-1:] == [3])
        assert late.written == []

    run(scenario)


def test_a_viewer_that_left_gets_nothing() -> None:
    async def scenario() -> None:
        hub, before = Hub(lambda: 0.0), drawn(1)
        viewer, wire = watching(hub, shown=before)
        _, other = watching(hub, shown=before)
        hub.leave(viewer)
        hub.leave(viewer)
        hub.publish([drawn(2)])
        await until(lambda: bool(other.written))
        assert wire.written == []
        assert (hub.watched(), hub.viewers()) == ([OVERVIEW], 1)

    run(scenario)


def test_the_number_of_watched_pages_is_bounded() -> None:
    async def scenario() -> None:
        hub = Hub(lambda: 0.0)
        for n in range(KEYS_MAX):
            watching(hub, Key("pool", f"p{n}"))
        wire = Wire()
        assert not hub.join(Viewer(Key("pool", "one more"), wire, wire.end))
        watching(hub, Key("pool", "p0"))

    run(scenario)


@pytest.mark.parametrize("length", [0, 125, 126, 65_535, 65_536])
def test_a_message_is_framed_as_a_websocket_server_frames_it(length: int) -> None:
    client = Protocol(Side.CLIENT, state=State.OPEN, max_size=None)
    client.receive_data(Message("x" * length).wire)
    (frame,) = client.events_received()
    assert isinstance(frame, WireFrame)
    assert (frame.opcode, frame.fin, frame.data) == (Opcode.TEXT, True, b"x" * length)


async def joined(feed: Feed) -> tuple[Viewer, Wire]:
    wire = Wire()
    viewer = Viewer(OVERVIEW, wire, wire.end)
    frame = await feed.join(viewer)
    assert frame
    feed.hub.begin(viewer, frame)
    return viewer, wire


def test_five_hundred_viewers_cost_what_one_costs() -> None:
    async def reads_with(viewers: int) -> int:
        source = Source()
        feed = Feed(source.newest)
        crowd = [await joined(feed) for _ in range(viewers)]
        for _ in range(5):
            source.move()
            await feed.step()
        await until(lambda: all(wire.seqs()[-1:] == [6] for _, wire in crowd))
        for viewer, _ in crowd:
            feed.leave(viewer)
        return source.reads

    async def scenario() -> None:
        assert await reads_with(1) == await reads_with(500)

    run(scenario)


def test_a_step_without_a_newer_snapshot_publishes_nothing() -> None:
    async def scenario() -> None:
        source = Source()
        feed = Feed(source.newest)
        viewer, wire = await joined(feed)
        await feed.step()
        assert feed.hub._newest == {}
        source.move()
        await feed.step()
        await feed.step()
        await until(lambda: wire.seqs() == [2])
        feed.leave(viewer)

    run(scenario)


def test_nobody_watching_ends_the_task() -> None:
    async def scenario() -> None:
        feed = Feed(Source().newest)
        viewer, _ = await joined(feed)
        tasks = feed._task, feed.hub._task
        feed.leave(viewer)
        for task in tasks:
            assert task
            await asyncio.wait_for(task, 5)

    run(scenario)
