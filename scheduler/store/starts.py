"""Writes what a plan says, in one statement: leases, levels, reservations and fairness."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

from scheduler.policy.types import (
    BudgetId,
    LeasedTask,
    Plan,
    ResourceId,
    ResourceKind,
    ResourceView,
    Start,
    TenantId,
    TenantView,
    WorkerId,
)
from scheduler.store import queries
from scheduler.store.dispatch import PoolRow
from scheduler.store.money import pricing_of

_SQL: Final = queries.load("dispatch.sql")


def start_tasks(
    plan: Plan,
    *,
    me: WorkerId,
    pools: Sequence[PoolRow],
    resources: dict[ResourceId, ResourceView],
    taken: dict[ResourceId, float],
    tenants: Mapping[TenantId, TenantView],
) -> list[LeasedTask]:
    """Start the plan's tasks under fresh leases; store what it left in the buckets, and the fairness that goes with it.

    Tasks missing from the answer moved meanwhile.
    """
    kept = [(key, aside) for key, aside in plan.set_asides.items() if aside is not None]
    served = [key for key, aside in plan.set_asides.items() if aside is None]
    drawn = [r for r in plan.levels if resources[r].kind is ResourceKind.TOKEN_BUCKET]
    drawn.extend(r for r in plan.probes if r not in plan.levels)
    wanted = _wanted(plan)
    rows = queries.fetch(
        _SQL["start_tasks"],
        {
            "now": plan.now,
            "tasks": queries.array(s.task for s in plan.starts),
            "workers": queries.array(s.worker for s in plan.starts),
            "reserves": queries.array(None if s.reservation is None else s.reservation.amount for s in plan.starts),
            "held": queries.text_array(_held(plan.starts)),
            "capped": queries.array(s.reservation is not None and s.reservation.capped for s in plan.starts),
            "budgets": queries.array(wanted),
            "wanted": queries.array(wanted.values()),
            "me": me,
            "pools": queries.array(p.id for p in pools),
            "ttls_s": queries.array(p.lease_ttl_s for p in pools),
            "timeouts_s": queries.array(p.timeout_s for p in pools),
            "resources": queries.array(drawn),
            "levels": queries.array(plan.levels.get(r) for r in drawn),
            "taken": queries.array(taken.get(r, 0.0) for r in drawn),
            "probes": queries.array(plan.probes.get(r) for r in drawn),
            "tenants": queries.array(tenant for tenant, _ in plan.counters),
            "tenant_classes": queries.array(int(priority) for _, priority in plan.counters),
            "values": queries.array(_added(plan, tenants)),
            "quota_tenants": queries.array(plan.start_levels),
            "quota_levels": queries.array(plan.start_levels.values()),
            "aside_resources": queries.array(resource for (resource, _), _ in kept),
            "aside_classes": queries.array(int(priority) for (_, priority), _ in kept),
            "aside_tasks": queries.array(aside.task for _, aside in kept),
            "aside_amounts": queries.array(aside.amount for _, aside in kept),
            "served_resources": queries.array(resource for resource, _ in served),
            "served_classes": queries.array(int(priority) for _, priority in served),
            "clock_classes": queries.array(int(priority) for priority in plan.clocks),
            "clocks": queries.array(plan.clocks.values()),
            "credit_pools": queries.array(pool for pool, _ in plan.credits),
            "credit_classes": queries.array(int(priority) for _, priority in plan.credits),
            "credits": queries.array(plan.credits.values()),
        },
    )
    return [leased_task(row) for row in rows]


def commit_soon() -> None:
    """Do not wait for the disk when this transaction commits."""
    queries.fetch_one(_SQL["commit_soon"])


def leased_task(row: queries.Row) -> LeasedTask:
    """An attempt to run; the last two columns are what it has reserved and how its task was priced, if it has a cap."""
    *fields, reserved, pricing = row
    if pricing is None:
        return LeasedTask(*fields)
    return LeasedTask(*fields)._replace(max_output_tokens=pricing_of(pricing).max_output_tokens(reserved))


def _held(starts: Iterable[Start]) -> Iterator[str | None]:
    """The budgets on which each start reserves, as arrays; those of most are the same."""
    texts: dict[tuple[BudgetId, ...], str] = {}
    for start in starts:
        if start.reservation is None:
            yield None
            continue
        budgets = start.reservation.budgets
        text = texts.get(budgets)
        if text is None:
            text = texts[budgets] = queries.array(budgets)
        yield text


def _wanted(plan: Plan) -> dict[BudgetId, int]:
    """What the plan reserves on each budget, in id order."""
    wanted: Counter[BudgetId] = Counter()
    for start in plan.starts:
        if start.reservation is not None:
            wanted.update(dict.fromkeys(start.reservation.budgets, start.reservation.amount))
    return dict(sorted(wanted.items()))


def _added(plan: Plan, tenants: Mapping[TenantId, TenantView]) -> Iterator[float]:
    """What the plan added to each counter; all of a counter that is not stored yet."""
    for (tenant, priority), value in plan.counters.items():
        stored = tenants[tenant].counters.get(priority)
        yield value if stored is None else value - stored.value
