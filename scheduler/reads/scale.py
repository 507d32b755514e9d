"""How many slots a pool should have, as the autoscaler decided last, and why."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from scheduler.errors import NotFound
from scheduler.policy.declarations import PoolSettings
from scheduler.store import autoscale, control


@dataclass(frozen=True, slots=True)
class PoolScale:
    """A pool's newest decision. `view` and `as_of` are None while none was made: `desired` is what the pool has."""

    pool: str
    settings: PoolSettings
    desired: int
    view: Mapping[str, Any] | None
    as_of: float | None

    @property
    def says(self) -> tuple[str, ...]:
        """The arithmetic in sentences."""
        if self.settings.autoscale is None:
            return (f"The pool is not autoscaled: it has the {self.settings.slots} slots that were set.",)
        if self.view is None:
            return ("Nothing was decided yet: an engine decides within seconds of its start.",)
        return tuple(self.view.get("says", ()))


def pool_scale(name: str) -> PoolScale:
    """The newest decision for the pool of that name. Raises NotFound."""
    rows = control.load_pools([name]) if "\x00" not in name else []
    if not rows:
        raise NotFound(f"There is no pool named {name!r}.", code="unknown_pool")
    settings, row = rows[0].settings, autoscale.load().get(rows[0].id)
    if row is None:
        return PoolScale(name, settings, settings.slots, None, None)
    desired = min(max(row.desired, settings.slots_min), settings.slots_max)
    return PoolScale(name, settings, desired, row.view, row.as_of)
