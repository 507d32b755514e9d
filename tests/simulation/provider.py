"""A provider that enforces exactly the declared limits, and counts what arrives over them."""

from __future__ import annotations

from dataclasses import dataclass

from scheduler.policy.types import ResourceView
from tests.simulation.promises import promise

DUST = 1e-4
"""Tokens or seconds that are lost in the rounding of a clock that counts from 1970."""


@dataclass(slots=True)
class Meter:
    """One quota in true time. A bucket never below zero is the same as: every window is within rate × t + burst."""

    rate: float
    burst: float
    level: float
    at: float
    closed_until: float = 0.0

    @classmethod
    def of(cls, view: ResourceView, *, at: float) -> Meter:
        return cls(view.rate, view.burst, view.burst, at)

    def refill(self, now: float) -> None:
        self.level = min(self.burst, self.level + self.rate * (now - self.at))
        self.at = now

    def arrive(self, amount: float, *, now: float, what: str) -> None:
        self.refill(now)
        promise(now >= self.closed_until - DUST, f"{what} reached a provider that had asked to be left alone")
        self.level -= amount
        promise(self.level >= -DUST, f"{what} went over rate x t + burst by {-self.level:.6f}")

    def correct(self, delta: float, *, now: float) -> None:
        """An estimate turned out wrong: what was really used counts, here as there."""
        self.refill(now)
        self.level = min(self.burst, self.level + delta)

    def redeclare(self, view: ResourceView, *, now: float) -> None:
        """The quota changed. One that grew is granted at once."""
        self.refill(now)
        self.level = min(view.burst, max(self.level, view.level + view.margin * view.burst))
        self.rate, self.burst = view.rate, view.burst
