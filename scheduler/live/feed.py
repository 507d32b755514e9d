"""Turns each new snapshot into frames, for the pages that somebody watches, and only then.

One feed per event loop. It must never run while nobody watches, and a failure of one tick must never end it.
"""

from __future__ import annotations

import asyncio
import logging
from typing import Final
from weakref import WeakKeyDictionary

from channels.db import database_sync_to_async

from scheduler.live.frames import Frame, Key
from scheduler.live.hub import Hub
from scheduler.live.newest import Newest, newest
from scheduler.live.viewers import Viewer

log = logging.getLogger(__name__)

SLOWEST_LOOK_S: Final = 5.0
TICK_SHARE_MAX: Final = 0.7  # of the interval; a tick that takes longer makes the next ones rarer
REST_MIN_S: Final = 0.05


class Feed:
    """The live view of one event loop."""

    def __init__(self, source: Newest = newest) -> None:
        self.hub = Hub(source.age_s, source.lost)
        self._source = source
        self._task: asyncio.Task[None] | None = None
        self._seqs: dict[Key, int] = {}

    async def join(self, viewer: Viewer) -> Frame | None:
        """Watch, or watch again: the frame to begin with, or nothing when too many pages are watched.

        Who watched before is told what changed meanwhile.
        """
        if not self.hub.join(viewer):
            return None
        try:
            frame = await self.frame(viewer.key)
        except BaseException:
            self.hub.leave(viewer)
            raise
        self._seqs.setdefault(viewer.key, frame.seq)
        if viewer.shown is not None:
            self.hub.publish([frame])
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._run(), name="live feed")
        return frame

    def leave(self, viewer: Viewer) -> None:
        """End a watch."""
        self.hub.leave(viewer)

    async def frame(self, key: Key) -> Frame:
        """The newest frame of a page; drawn in a thread, at most once per snapshot."""
        frame: Frame = await database_sync_to_async(self._source.frame)(key)
        return frame

    def age_s(self) -> float:
        """The age of the newest snapshot in seconds."""
        return self._source.age_s()

    def lost(self) -> bool:
        """Whether the database did not answer the last look for a newer snapshot."""
        return self._source.lost()

    async def step(self) -> None:
        """Look once and publish what is newer than what was published before."""
        keys = self.hub.watched()
        frames = await database_sync_to_async(self._draw)(keys)
        fresh = [frame for frame in frames if self._seqs.get(frame.key) != frame.seq]
        self._seqs = {frame.key: frame.seq for frame in frames}
        self.hub.publish(fresh)

    def _draw(self, keys: list[Key]) -> list[Frame]:
        return self._source.frames(keys)

    async def _run(self) -> None:
        loop = asyncio.get_running_loop()
        while self.hub.watched():
            started_s = loop.time()
            try:
                await self.step()
            except Exception:
                log.exception("A tick of the live view failed; the next one tries again")
            took_s = loop.time() - started_s
            await asyncio.sleep(_rest_s(took_s, self._source.due_in_s()))


def _rest_s(took_s: float, due_in_s: float) -> float:
    """How long to rest after a tick: until the next look is due, or for its part of the time if that is longer."""
    return max(min(took_s / TICK_SHARE_MAX, SLOWEST_LOOK_S) - took_s, due_in_s, REST_MIN_S)


_feeds: WeakKeyDictionary[asyncio.AbstractEventLoop, Feed] = WeakKeyDictionary()


def feed() -> Feed:
    """The feed of the running event loop."""
    return _feeds.setdefault(asyncio.get_running_loop(), Feed())
