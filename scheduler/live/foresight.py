"""Holds the newest forecast of this process, so that an acknowledgement can carry it without asking the database.

Looked for at most once a second and process. Counts what this process has taken in since, for those tasks stand before
the next; what others took in meanwhile is not known here, and makes the forecast of a second ago a little too short.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import Counter
from collections.abc import Callable
from typing import Final

from django.db import Error as DatabaseError

from scheduler.policy.calibration import Band
from scheduler.policy.types import LaneKey, PriorityClass, TenantId
from scheduler.reads.forecast import Said, published_forecast

log = logging.getLogger(__name__)

LOOK_EVERY_S: Final = 1.0


class Foresight:
    """The newest forecast. Safe to use from any thread; `look` asks the database, nothing else does."""

    def __init__(
        self,
        read: Callable[[], Said | None] = published_forecast,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._read, self._monotonic = read, monotonic
        self._lock = threading.Lock()
        self._said: Said | None = None
        self._made_at_s = 0.0
        self._looked_at_s = float("-inf")
        self._joined: Counter[LaneKey] = Counter()

    def is_stale(self) -> bool:
        """Whether it is time to look. True for one caller only, who should."""
        with self._lock:
            now_s = self._monotonic()
            if now_s - self._looked_at_s < LOOK_EVERY_S:
                return False
            self._looked_at_s = now_s
            return True

    def look(self) -> None:
        """Read the newest forecast. A database that does not answer leaves the last one."""
        try:
            said = self._read()
        except DatabaseError as error:
            log.warning("The forecast could not be read: %s", error)
            return
        with self._lock:
            if said is None or self._said is None or said.as_of != self._said.as_of:
                self._joined.clear()
                self._made_at_s = self._monotonic() - (0.0 if said is None else said.age_s)
            self._said = said

    def of_new(self, pool: str, priority: PriorityClass, tenant: TenantId, resources: tuple[str, ...]) -> Band | None:
        """How long a task may wait that was just taken in; None while too little is known. `resources` are sorted."""
        with self._lock:
            said = self._said
            if said is None:
                return None
            lane = said.names.get((pool, priority, tenant, resources))
            if lane is None:
                found = next((p["id"] for p in said.pools if p["name"] == pool), None)
                return None if found is None else said.of_newcomer(found, priority)
            curve = said.lanes[lane]
            self._joined[lane] += 1
            raw = curve.raw_at(curve.waiting + self._joined[lane])
            gone_s = self._monotonic() - self._made_at_s
            return curve.track.corrected(Band(max(0.0, raw.p50_s - gone_s), max(0.0, raw.p90_s - gone_s)))

    def forget(self) -> None:
        """Start over, as in a new process."""
        with self._lock:
            self._said = None
            self._looked_at_s = float("-inf")
            self._joined.clear()


FORESIGHT: Final = Foresight()
