"""The simulated world's breakers: what calls say of their providers, and what that lets through."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from scheduler.policy.breaker import Breaker, Call, after_calls
from scheduler.policy.types import LeaseId, ResourceId, TaskId
from tests.policy.backlog import Backlog


@dataclass(slots=True)
class Breakers:
    """One for each limit."""

    backlog: Backlog
    known: dict[ResourceId, Breaker] = field(default_factory=dict)

    def began(self, probes: Mapping[ResourceId, TaskId], task: TaskId, lease: LeaseId) -> None:
        """An attempt began, perhaps as the probe of some."""
        for resource, probe in probes.items():
            if probe == task:
                self._keep(resource, replace(self.known[resource], probe=lease))

    def ended(self, resources: Iterable[ResourceId], call: Call, *, now: float) -> dict[ResourceId, float]:
        """An attempt that called these ended; which of them opened, and for how long."""
        opened = {}
        for resource in resources:
            before = self.known.get(resource, Breaker())
            after = after_calls(before, [call], now=now)
            if after == before:
                continue
            self._keep(resource, after)
            if after.open_until is not None and after.open_until != before.open_until:
                opened[resource] = after.open_until - now
        return opened

    def _keep(self, resource: ResourceId, breaker: Breaker) -> None:
        self.known[resource] = breaker
        view = self.backlog.resources[resource]
        probing = breaker.probe is not None
        if (view.open_until, view.probing) != (breaker.open_until, probing):
            self.backlog.resources[resource] = replace(view, open_until=breaker.open_until, probing=probing)
