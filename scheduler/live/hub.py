"""Hands the newest frame of each page to every socket that watches it. One hub per event loop, no locks, no queues.

A slot holds one frame: a socket that is slow finds the newest frame when it comes back, never a backlog. The hub must
never wait for a socket.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Final

from scheduler.live.frames import Frame, Key

KEYS_MAX: Final = 200


class Slot:
    """One socket's place for the newest frame."""

    def __init__(self, key: Key) -> None:
        self.key = key
        self._frame: Frame | None = None
        self._filled = asyncio.Event()

    def clear(self) -> None:
        """Drop a frame that was not taken."""
        self._frame = None
        self._filled.clear()

    def put(self, frame: Frame) -> None:
        """Replace whatever was not taken yet."""
        self._frame = frame
        self._filled.set()

    async def take(self, timeout_s: float) -> Frame | None:
        """The newest frame once there is one; nothing after `timeout_s` seconds without."""
        try:
            await asyncio.wait_for(self._filled.wait(), timeout_s)
        except TimeoutError:
            return None
        frame = self._frame
        self.clear()
        return frame


class Hub:
    """The slots of this event loop by what they watch."""

    def __init__(self) -> None:
        self._slots: dict[Key, set[Slot]] = {}

    def join(self, slot: Slot) -> bool:
        """Watch, or watch again; false when too many different pages are watched already. Joining twice is harmless."""
        if slot.key not in self._slots and len(self._slots) >= KEYS_MAX:
            return False
        self._slots.setdefault(slot.key, set()).add(slot)
        return True

    def leave(self, slot: Slot) -> None:
        """Forget a slot; leaving twice is harmless."""
        slot.clear()
        slots = self._slots.get(slot.key)
        if slots is None:
            return
        slots.discard(slot)
        if not slots:
            del self._slots[slot.key]

    def publish(self, frames: Iterable[Frame]) -> None:
        """Put each frame into the slot of everyone who watches its page."""
        for frame in frames:
            for slot in self._slots.get(frame.key, ()):
                slot.put(frame)

    def watched(self) -> list[Key]:
        """The pages that somebody watches now."""
        return list(self._slots)

    def viewers(self) -> int:
        """How many sockets watch."""
        return sum(len(slots) for slots in self._slots.values())
