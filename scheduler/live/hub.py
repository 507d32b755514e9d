"""Tells every socket what changed on the page that it watches: one hub per event loop, one task for all of its sockets.

What moves a page from the frame that it shows to the newest is made once for all that show the same. A viewer whose
line is busy is passed over: later it is told the newest, never a backlog, and one whose line stays busy is ended. Who
hears nothing for five seconds gets a beat. The hub must never wait for a socket.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Final

from scheduler.live.frames import Frame, Key
from scheduler.live.viewers import Messages, Viewer

log = logging.getLogger(__name__)

KEYS_MAX: Final = 200
PASS_EVERY_S = 1.0
BEAT_EVERY_S = 5.0
STUCK_S = 5.0
AT_ONCE: Final = 100
"""Viewers that are told in one go before others on this loop have a turn."""


class Hub:
    """The viewers of this event loop. `age_s` says how old the newest snapshot is, `lost` whether nobody can know."""

    def __init__(self, age_s: Callable[[], float], lost: Callable[[], bool] = lambda: False) -> None:
        self._age_s, self._lost = age_s, lost
        self._said_lost = False
        self._open: set[Viewer] = set()
        self._watching: dict[Key, set[Viewer]] = {}
        self._newest: dict[Key, Frame] = {}
        self._news = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    def join(self, viewer: Viewer) -> bool:
        """Watch, or watch again; false when too many different pages are watched already. Joining twice is harmless."""
        if viewer.key not in self._watching and len(self._watching) >= KEYS_MAX:
            return False
        self._watching.setdefault(viewer.key, set()).add(viewer)
        return True

    def begin(self, viewer: Viewer, shown: Frame) -> None:
        """Tell a viewer that shows this what changes, and that nothing does."""
        viewer.shown, viewer.told_at_s = shown, _now_s()
        self._open.add(viewer)
        published = self._newest.get(viewer.key)
        if published is not None and published.seq < shown.seq:
            # Drawn for this viewer since then. Nobody may be taken back.
            self._newest[viewer.key] = shown
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._run(), name="live hub")

    def pause(self, viewer: Viewer) -> None:
        """Watch no more; if it has begun it is told that it is connected, but no changes. Twice is harmless."""
        watching = self._watching.get(viewer.key, set())
        watching.discard(viewer)
        if not watching:
            self._watching.pop(viewer.key, None)
            self._newest.pop(viewer.key, None)

    def leave(self, viewer: Viewer) -> None:
        """Forget a viewer; leaving twice is harmless."""
        self.pause(viewer)
        self._open.discard(viewer)
        if not self._open:
            self._news.set()

    def watched(self) -> list[Key]:
        """The pages that somebody watches now."""
        return list(self._watching)

    def viewers(self) -> int:
        """How many sockets watch."""
        return sum(len(viewers) for viewers in self._watching.values())

    def publish(self, frames: Iterable[Frame]) -> None:
        """These are newer than what was published; whoever shows something else is told."""
        self._newest.update((frame.key, frame) for frame in frames if frame.key in self._watching)
        self._news.set()

    async def _run(self) -> None:
        while self._open:
            with suppress(TimeoutError):
                await asyncio.wait_for(self._news.wait(), PASS_EVERY_S)
            self._news.clear()
            await self._tell_all()

    async def _tell_all(self) -> None:
        lost = self._lost()
        messages, turned = Messages(self._age_s(), lost=lost), lost != self._said_lost
        self._said_lost = lost
        for number, viewer in enumerate(list(self._open), 1):
            if viewer in self._open:
                try:
                    self._tell(viewer, messages, at_once=turned)
                except Exception:
                    log.exception("A viewer could not be told what changed; its socket is ended")
                    self._end(viewer)
            if number % AT_ONCE == 0:
                await asyncio.sleep(0)

    def _tell(self, viewer: Viewer, messages: Messages, *, at_once: bool) -> None:
        """Say what changed, or, after a silence or `at_once`, that nothing did."""
        now_s, shown = _now_s(), viewer.shown
        if shown is None:
            return
        watches = viewer in self._watching.get(viewer.key, ())
        newest = self._newest.get(viewer.key, shown) if watches else shown
        message = messages.change(shown, newest)
        if message is None:
            viewer.shown = newest
            if not at_once and now_s - viewer.told_at_s < BEAT_EVERY_S:
                return
            message = messages.beat(newest)
        if viewer.line.write(message):
            viewer.shown, viewer.told_at_s, viewer.busy_since_s = newest, now_s, None
        elif viewer.busy_since_s is None:
            viewer.busy_since_s = now_s
        elif now_s - viewer.busy_since_s >= STUCK_S:
            self._end(viewer)

    def _end(self, viewer: Viewer) -> None:
        self.leave(viewer)
        viewer.end()


def _now_s() -> float:
    return asyncio.get_running_loop().time()
