"""Decides whether a tenant's own limits let it start another task: its start rate, and how many tasks may run."""

from __future__ import annotations

from math import inf, nextafter
from typing import TYPE_CHECKING

from scheduler.policy.limits import EPSILON
from scheduler.policy.types import WaitReason

if TYPE_CHECKING:
    from scheduler.policy.types import TenantView


class Quota:
    """What a tenant's own limits still allow while the plan draws on them."""

    __slots__ = ("again_at", "burst", "level", "rate", "room")

    def __init__(self, tenant: TenantView, now: float) -> None:
        self.room = None if tenant.max_in_flight is None else tenant.max_in_flight - tenant.in_flight
        self.rate = tenant.start_rate
        self.burst = tenant.start_burst
        gained = (self.rate or 0.0) * max(0.0, now - tenant.start_level_at)
        self.level = min(self.burst, tenant.start_level + gained)

    def closed(self) -> WaitReason | None:
        """The gate that keeps the tenant's next task back, if one does."""
        if self.is_dry():
            return WaitReason.TENANT_START_RATE
        return WaitReason.TENANT_IN_FLIGHT if self.is_full() else None

    def is_dry(self) -> bool:
        """Whether the start rate does not allow another start yet; a rate of 0 never does."""
        return self.rate is not None and (self.level < 1.0 - EPSILON or self.rate <= 0.0)

    def is_full(self) -> bool:
        """Whether as many of its tasks run as may."""
        return self.room is not None and self.room <= 0

    def opens_at(self, now: float) -> float | None:
        """When the clock alone lets the next task start; None when it does not."""
        return None if self.is_full() else self.refills_at(now)

    def refills_at(self, now: float) -> float | None:
        """When the start rate allows the next start; None without one, or with a rate of 0."""
        return nextafter(now + (1.0 - self.level) / self.rate, inf) if self.rate else None

    def take(self) -> None:
        """Book one start."""
        self.level -= 1.0
        if self.room is not None:
            self.room -= 1
