"""Holds the newest board of this process and decides when to look for a newer one: when one is to be expected.

Boards come a second apart. After one was found it looks a little sooner than that, and again soon where that was in
vain: so its looks draw near to the moment at which boards are written, whatever the clocks of two machines say. It is
shared by the feed (sockets) and by plain page requests (first paint, polling): the database sees two small reads
per second and process, however many people look. It must never block longer than one read takes, and it keeps the last
board when the database does not answer.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Final

from django.db import Error as DatabaseError

from scheduler.live.board import EMPTY, Board, read_board
from scheduler.live.frames import Frame, Key
from scheduler.live.pages import OF_A_TENANT, draw_page
from scheduler.reads.snapshot import SnapshotRow, latest_snapshot
from scheduler.reads.standings import TenantStanding, tenant_standings

log = logging.getLogger(__name__)

REST_S: Final = 0.9
"""After a look that found a board, and after many in vain."""
AGAIN_S: Final = 0.25
AGAIN_TIMES: Final = 4
"""After one in vain, so often in a row: no engine may lead."""
FRAMES_KEPT_MAX: Final = 256


@dataclass(frozen=True, slots=True)
class Sight:
    """A board, how old it was when this process first saw it, and whether the last look for a newer one failed."""

    board: Board
    age_at_sight_s: float
    seen_at_s: float
    lost: bool = False

    def age_s(self, now_s: float) -> float:
        """Seconds since the snapshot was taken, by this process's monotonic clock."""
        return self.age_at_sight_s + now_s - self.seen_at_s


class Newest:
    """The newest board and the frames drawn from it. Safe to use from any thread."""

    def __init__(
        self,
        read: Callable[[], SnapshotRow | None] = latest_snapshot,
        monotonic: Callable[[], float] = time.monotonic,
        wall: Callable[[], float] = time.time,
        read_tenants: Callable[[Collection[str]], Mapping[str, TenantStanding]] = tenant_standings,
    ) -> None:
        self._read, self._monotonic, self._wall, self._read_tenants = read, monotonic, wall, read_tenants
        self._lock = threading.Lock()
        self._sight = Sight(EMPTY, 0.0, monotonic())
        self._due_at_s = float("-inf")
        self._in_vain = 0
        self._frames: dict[Key, Frame] = {}
        self._tenants: dict[str, TenantStanding] = {}

    def look(self) -> Sight:
        """The newest board, read again if a newer one is to be expected."""
        with self._lock:
            now_s = self._monotonic()
            if now_s >= self._due_at_s:
                known = self._sight.board.seq
                self._sight = self._look_again(now_s)
                self._in_vain = self._in_vain + 1 if self._sight.board.seq == known else 0
                soon = 0 < self._in_vain <= AGAIN_TIMES and not self._sight.lost
                # A look that waits for a database in vain takes long; who queued behind it need not wait as long again.
                self._due_at_s = (self._monotonic() if self._sight.lost else now_s) + (AGAIN_S if soon else REST_S)
            return self._sight

    def due_in_s(self) -> float:
        """Seconds until it is worth looking."""
        return max(0.0, self._due_at_s - self._monotonic())

    def age_s(self) -> float:
        """The age of the newest board in seconds, without looking for a newer one."""
        return self._sight.age_s(self._monotonic())

    def lost(self) -> bool:
        """Whether the database did not answer the last look."""
        return self._sight.lost

    def frame(self, key: Key) -> Frame:
        """The page drawn from the newest board; drawn once per board, whoever asks. `KeyError` for an unknown page."""
        return self.frames([key])[0]

    def frames(self, keys: Iterable[Key]) -> list[Frame]:
        """The same for many pages; the tenants that some of them are about are read together."""
        wanted, board = list(keys), self.look().board
        kept = {key: frame for key in wanted if (frame := self._frames.get(key)) and frame.seq == board.seq}
        kept |= self._drawn([key for key in wanted if key not in kept], board)
        return [kept[key] for key in wanted]

    def draw_anew(self, key: Key) -> Frame:
        """The page as things stand now, also when the board is the same: for whoever has just changed something."""
        return self._drawn([key], self.look().board)[key]

    def _drawn(self, keys: Collection[Key], board: Board) -> dict[Key, Frame]:
        tenants = self._tenants_of(keys)
        drawn = {key: draw_page(key, replace(board, tenant=tenants.get(key.scope))) for key in keys}
        if len(self._frames) + len(drawn) > FRAMES_KEPT_MAX:
            self._frames.clear()
        self._frames.update(drawn)
        return drawn

    def _tenants_of(self, keys: Iterable[Key]) -> Mapping[str, TenantStanding]:
        slugs = {key.scope for key in keys if key.page in OF_A_TENANT}
        if not slugs:
            return {}
        try:
            self._tenants = dict(self._read_tenants(slugs))
        except DatabaseError as error:
            log.warning("Tenants could not be read: %s", error)
        return self._tenants

    def forget(self) -> None:
        """Start over, as in a new process."""
        with self._lock:
            self._sight = Sight(EMPTY, 0.0, self._monotonic())
            self._due_at_s, self._in_vain = float("-inf"), 0
            self._frames.clear()

    def _look_again(self, now_s: float) -> Sight:
        before = self._sight
        try:
            row = self._read()
        except DatabaseError as error:
            log.warning("The snapshot could not be read: %s", error)
            return Sight(before.board, before.age_at_sight_s, before.seen_at_s, lost=True)
        if row is None:
            return Sight(EMPTY, 0.0, now_s)
        if row.seq == before.board.seq:
            return Sight(before.board, before.age_at_sight_s, before.seen_at_s)
        # A board that replaces one this process watched is as old as the last look at most, whatever the clocks of
        # two machines say; the first one can only be judged by them.
        age_s = 0.0 if before.board.exists else max(self._wall() - row.as_of, 0.0)
        return Sight(read_board(row.seq, row.as_of, row.body), age_s, now_s)


newest = Newest()
