"""Keeps what tenants have used in virtual time: fairness counters, tasks in flight, what is left of start rates.

Where tasks move in groups, a tenant's own limits are counted in groups too.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import replace

from scheduler.policy.fairness import correction
from scheduler.policy.grain import width_max
from scheduler.policy.scene import Job
from scheduler.policy.types import FairCounter, Plan, PriorityClass, TenantId, TenantView


class Standing:
    """All tenants of a run; `any_limited`: one has limits of its own, `takes_turns`: there is more than one.

    Counters are changed in place: the views that plans see share them.
    """

    def __init__(self, tenants: Iterable[TenantView]) -> None:
        self._counters: dict[TenantId, dict[PriorityClass, FairCounter]] = {t.id: dict(t.counters) for t in tenants}
        self._tenants = {t.id: replace(t, counters=self._counters[t.id], in_flight=0) for t in tenants}
        self._running: Counter[TenantId] = Counter()
        self.takes_turns = len(self._tenants) > 1
        self.any_limited = any(t.limited for t in self._tenants.values())

    def view(self, tenant: TenantId, size: int) -> TenantView:
        """The tenant as a plan sees it when so many tasks move as one."""
        view = self._tenants[tenant]
        if not view.limited:
            return view
        running = self._running[tenant]
        if size == 1:
            return replace(view, in_flight=running)
        together = width_max(view.max_in_flight, size)
        return replace(
            view,
            start_rate=None if view.start_rate is None else view.start_rate / size,
            start_burst=max(1.0, view.start_burst / size),
            start_level=view.start_level / size,
            max_in_flight=None if view.max_in_flight is None else view.max_in_flight // together,
            in_flight=-(-running // together),
        )

    def store(self, plan: Plan, size: int) -> None:
        """Keep what a plan leaves behind."""
        for (tenant, priority), value in plan.counters.items():
            self._counters[tenant][priority] = FairCounter(value, plan.now)
        for tenant, level in plan.start_levels.items():
            self._tenants[tenant] = replace(self._tenants[tenant], start_level=level * size, start_level_at=plan.now)

    def begin(self, job: Job) -> None:
        """Count what starts to run."""
        self._running[job.lane.tenant] += job.width

    def end(self, job: Job, *, took_s: float) -> bool:
        """Count what ended, and correct the counter by what it took; whether a limit of the tenant's own may open."""
        tenant, priority = job.lane.tenant, job.lane.priority
        view = self._tenants[tenant]
        counter = self._counters[tenant].get(priority)
        if counter is not None:
            beyond = correction(expected=job.expected_s, actual=took_s * job.count, weight=view.weight)
            self._counters[tenant][priority] = counter._replace(value=counter.value + beyond)
        self._running[tenant] -= job.width
        return view.max_in_flight is not None

    def views(self) -> dict[TenantId, TenantView]:
        """All tenants as they stand now."""
        return {
            t.id: replace(t, counters=dict(t.counters), in_flight=self._running[t.id]) for t in self._tenants.values()
        }
