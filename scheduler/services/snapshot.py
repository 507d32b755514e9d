"""Writes the picture that the console shows: once per second, by the leader, in one consistent read.

Rates are differences between the counts of two pictures, so they are exact and survive any restart of the viewer.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from django.db import transaction

from scheduler.policy.breaker import state_of
from scheduler.policy.calibration import HORIZON_S
from scheduler.policy.limits import Limit, limit_at, shortage
from scheduler.policy.overload import Pace
from scheduler.policy.pace import state_of as budget_state
from scheduler.policy.states import TaskState
from scheduler.policy.types import (
    DemandId,
    DemandView,
    Hold,
    PoolId,
    PriorityClass,
    ResourceId,
    ResourceKind,
    WaitReason,
)
from scheduler.services.overload import Queue, judge_pools
from scheduler.store import autoscale as scale_store
from scheduler.store import bounds as bounds_store
from scheduler.store import dispatch as dispatch_store
from scheduler.store import forecast as forecast_store
from scheduler.store import overview as store
from scheduler.store import resources as resource_store
from scheduler.store import troubles as trouble_store
from scheduler.store.spending import load_top_burns

HISTORY_POINTS: Final = 60
BURNS_SHOWN: Final = 5
PACE: Final = Pace()
FAILED_STATES: Final = (TaskState.FAILED.value, TaskState.DEAD_LETTERED.value)
_TOTALS: Final = ("started", "succeeded", "failed")

Counts = Mapping[tuple[PoolId, PriorityClass, str], int]


@dataclass(frozen=True, slots=True)
class Counted:
    """The cumulative counts of one picture, to take the next one's rates from."""

    at: float
    by_pool: Mapping[PoolId, Mapping[str, int]]
    resources_taken: Mapping[ResourceId, float]


def take_snapshot(
    previous: Counted | None, holds: Mapping[PoolId, Hold], *, interval_s: float, pace: Pace = PACE
) -> Counted:
    """Fold the counts, judge how overloaded the pools are (at this pace), and write one picture.

    `holds` is what bounds each pool, from the newest plan. `previous` None (a new leader) shows rates of zero once.
    History goes on from the picture before.
    """
    with transaction.atomic():
        store.fold_counts()
        picture = _Picture(previous, holds)
        picture.judge(pace)
        before = store.load_latest_snapshot()
        store.add_snapshot(picture.body(before, interval_s=interval_s))
    return picture.counted()


class _Picture:
    """The figures of one picture, read at one moment."""

    def __init__(self, previous: Counted | None, holds: Mapping[PoolId, Hold]) -> None:
        self.previous = previous
        self.holds = holds
        self.now = dispatch_store.load_now()
        self.pools = store.load_pools()
        self.counts = store.load_counts()
        self.running = store.load_running()
        self.oldest = store.load_oldest_waiting()
        self.workers = store.load_workers()
        self.burns = load_top_burns(BURNS_SHOWN)
        self.resources = resource_store.load()
        self.held = resource_store.load_held()
        self.foreseen = _foreseen()
        self.waiting = store.load_waiting_by_demand()
        self.demands = dispatch_store.load_demands(sorted(self.waiting))
        self.scales = scale_store.load()
        self.by_pool = {pool.id: self._totals(pool.id) for pool in self.pools}
        self.states: Mapping[PoolId, bounds_store.PoolStateRow] = {}

    def judge(self, pace: Pace) -> None:
        """Decide the overload levels from what this picture shows."""
        self.states = judge_pools({p.id: self._queue(p.id) for p in self.pools}, pace=pace, now=self.now)

    def _queue(self, pool: PoolId) -> Queue:
        return Queue(
            ready={p: self.counts.get((pool, p, "ready"), 0) for p in PriorityClass},
            oldest_s={p: self.now - at for (owner, p), at in self.oldest.items() if owner == pool},
            started_per_s=self._rate(pool, "started"),
            forecast_s=_typical_s(self.foreseen.get(pool, {})),
        )

    def counted(self) -> Counted:
        taken = {row.view.id: row.taken_total for row in self.resources}
        return Counted(self.now, self.by_pool, taken)

    def _count(self, pool: PoolId, *counters: str) -> int:
        return sum(self.counts.get((pool, p, counter), 0) for p in PriorityClass for counter in counters)

    def _totals(self, pool: PoolId) -> dict[str, int]:
        return {
            "started": self._count(pool, "started"),
            "succeeded": self._count(pool, "succeeded", "pruned_ok"),
            "failed": self._count(pool, *FAILED_STATES, "pruned_failed"),
        }

    def _rate(self, pool: PoolId, total: str) -> float:
        if self.previous is None or pool not in self.previous.by_pool or self.now <= self.previous.at:
            return 0.0
        gained = self.by_pool[pool][total] - self.previous.by_pool[pool][total]
        return max(0.0, gained / (self.now - self.previous.at))

    def body(self, before: store.SnapshotRow | None, *, interval_s: float) -> dict[str, object]:
        pools = [self._pool(pool) for pool in self.pools]
        totals = self._overall()
        seq = 1 if before is None else before.seq + 1
        return {
            "seq": seq,
            "as_of": self.now,
            "interval_s": interval_s,
            "totals": totals,
            "history": _history(before, totals),
            "pools": pools,
            "resources": [self._resource(row) for row in self.resources],
            "failures": [self._failure(row) for row in store.load_recent_failures()],
            "workers": [self._worker(row) for row in self.workers],
            "budgets": [row._asdict() for row in trouble_store.load_spent_budgets()],
            "deaths": [{**row._asdict(), "class": row.failure_class} for row in trouble_store.load_recent_deaths()],
            "spending": self._spending(),
            "tally": trouble_store.load_tally()._asdict(),
        }

    def _spending(self) -> dict[str, object]:
        """What all tenants burn per hour, and those who burn most, in nano-dollars."""
        tenants = [
            {
                "tenant": row.slug,
                "burn": int(row.burn),
                "spent": row.spent,
                "limit": row.limit,
                "state": budget_state(row.limit, spent=row.spent, reserved=row.reserved, alert_at=row.alert_at).value,
            }
            for row in self.burns
        ]
        return {"burn": int(self.burns[0].all_burn) if self.burns else 0, "tenants": tenants}

    def _overall(self) -> dict[str, object]:
        oldest = [self.now - at for at in self.oldest.values()]
        rates = {total: sum(self._rate(pool.id, total) for pool in self.pools) for total in _TOTALS}
        return {
            "waiting": sum(self._count(pool.id, "ready") for pool in self.pools),
            "scheduled": sum(self._count(pool.id, "scheduled", "retrying", "blocked") for pool in self.pools),
            "running": sum(self.running.get(pool.id, 0) for pool in self.pools),
            "started_per_s": round(rates["started"], 2),
            "succeeded_per_s": round(rates["succeeded"], 2),
            "failed_per_s": round(rates["failed"], 2),
            "failed_per_min": round(60 * rates["failed"], 1),
            "oldest_waiting_s": round(max(oldest), 1) if oldest else None,
        }

    def _pool(self, pool: store.PoolRow) -> dict[str, object]:
        oldest = {p.label: self.now - at for (owner, p), at in self.oldest.items() if owner == pool.id}
        return {
            "name": pool.name,
            "executor": pool.executor,
            "state": "running" if pool.paused_at is None else "paused",
            "pause": _pause(pool),
            "waiting": {p.label: self.counts.get((pool.id, p, "ready"), 0) for p in PriorityClass},
            "scheduled": self._count(pool.id, "scheduled", "blocked"),
            "retrying": self._count(pool.id, "retrying"),
            "running": self.running.get(pool.id, 0),
            "slots": pool.slots,
            **self._scale(pool),
            **self._overload(pool.id),
            "workers": sum(1 for w in self.workers if pool.id in w.slots and not w.draining),
            "started_per_s": round(self._rate(pool.id, "started"), 2),
            "succeeded_per_s": round(self._rate(pool.id, "succeeded"), 2),
            "failed_per_s": round(self._rate(pool.id, "failed"), 2),
            "oldest_waiting_s": round(max(oldest.values()), 1) if oldest else None,
            "oldest_by_class": {label: round(seconds, 1) for label, seconds in oldest.items()},
            "slo": pool.slo,
            "bound_by": self._bound_by(pool),
            "forecast": self.foreseen.get(pool.id),
        }

    def _scale(self, pool: store.PoolRow) -> dict[str, object]:
        """`scale` is None for a pool whose slots are fixed."""
        row = self.scales.get(pool.id)
        desired = pool.slots if row is None else row.desired
        return {"desired": desired, "scale": None if row is None else {**row.view, "as_of": row.as_of}}

    def _overload(self, pool: PoolId) -> dict[str, object]:
        state = self.states.get(pool)
        if state is None:
            return {"overload_level": 0, "overload_since": None, "predicted_wait_s": None}
        wait_s = None if state.predicted_s is None else round(state.predicted_s, 2)
        return {
            "overload_level": state.overload.level,
            "overload_since": state.overload.since,
            "predicted_wait_s": wait_s,
        }

    def _bound_by(self, pool: store.PoolRow) -> dict[str, object] | None:
        waiting = self._count(pool.id, "ready")
        if waiting == 0:
            return None
        if pool.paused_at is not None:
            return _bound(WaitReason.POOL_PAUSED, None, f"Paused by {pool.paused_by}.")
        if not any(pool.id in w.slots and not w.draining for w in self.workers):
            return _bound(WaitReason.NO_WORKER, None, "No worker is connected.")
        hold = self.holds.get(pool.id)
        if hold is not None and hold.resource is not None:
            row = next((row for row in self.resources if row.view.id == hold.resource), None)
            if row is not None:
                return _bound(hold.reason, row.name, _resource_text(row, hold, self.now))
        if self.running.get(pool.id, 0) >= pool.slots:
            text = f"All {pool.slots} slots are busy." if pool.slots else "It has no slots at the moment."
            return _bound(WaitReason.NO_FREE_SLOT, None, text)
        return None

    def _resource(self, row: resource_store.ResourceRow) -> dict[str, object]:
        limit = limit_at(row.view, now=self.now)
        bucket = row.view.kind is ResourceKind.TOKEN_BUCKET
        held = self.held.get(row.view.id, 0.0)
        available = limit.available if bucket else limit.capacity - held
        taken_per_s = self._taken_per_s(row)
        in_use = taken_per_s if bucket else held
        of = limit.refill_per_s if bucket else limit.capacity
        return {
            "name": row.name,
            "kind": row.view.kind.value,
            "rate": row.view.rate if bucket else None,
            "burst": row.view.burst if bucket else None,
            "permits": None if bucket else row.view.permits,
            "available": round(available, 2),
            "capacity": round(limit.capacity, 2),
            "in_use": round(in_use, 2),
            "used_fraction": round(min(1.0, max(0.0, in_use / of)), 3) if of > 0 else 0.0,
            "blocked_until": limit.closed_until,
            "next_at": _next_at(limit, available, self.now),
            "paused": limit.paused or limit.capacity <= 0.0,
            "pause": None if row.pause is None else row.pause._asdict(),
            "breaker": state_of(row.view.open_until, now=self.now).value,
            "open_until": row.view.open_until,
            "factor": round(row.view.factor, 3),
            "waiting": _waiting_for(row.view.id, self.waiting, self.demands),
        }

    def _taken_per_s(self, row: resource_store.ResourceRow) -> float:
        if self.previous is None or self.now <= self.previous.at:
            return 0.0
        before = self.previous.resources_taken.get(row.view.id)
        return 0.0 if before is None else max(0.0, (row.taken_total - before) / (self.now - self.previous.at))

    def _failure(self, row: store.FailureRow) -> dict[str, object]:
        return {
            "task": row.task,
            "pool": row.pool,
            "tenant": row.tenant,
            "kind": row.kind,
            "class": row.failure_class,
            "message": (row.message or "")[:300],
            "attempt": row.attempt,
            "at": row.at,
        }

    def _worker(self, row: store.WorkerRow) -> dict[str, object]:
        names = {pool.id: pool.name for pool in self.pools}
        return {
            "id": row.id,
            "name": row.name,
            "pools": sorted(names[p] for p in row.slots if p in names),
            "slots": sum(row.slots.values()),
            "busy": row.busy,
            "seen_at": row.seen_at,
            "leader": row.leader,
            "draining": row.draining,
        }


def _pause(pool: store.PoolRow) -> dict[str, object] | None:
    if pool.paused_at is None:
        return None
    return {"by": pool.paused_by, "reason": pool.pause_reason, "at": pool.paused_at, "resumes_at": pool.resume_at}


def _foreseen() -> dict[PoolId, dict[str, object]]:
    """By pool the wait of a task submitted now, by class; a pool of which too little is known is not there."""
    found = forecast_store.load_published()
    pools = [] if found is None else found[0]["pools"]
    return {PoolId(pool["id"]): pool["classes"] for pool in pools if pool["enough"]}


def _typical_s(classes: Mapping[str, object]) -> dict[PriorityClass, float]:
    """The median of each class; one beyond the horizon of the forecast counts as the horizon."""
    bands = {p: classes[p.label] for p in PriorityClass if p.label in classes}
    medians = {p: band.get("p50_s") for p, band in bands.items() if isinstance(band, Mapping)}
    return {p: HORIZON_S if s is None else float(s) for p, s in medians.items()}


def _bound(reason: WaitReason, resource: str | None, text: str) -> dict[str, object]:
    return {"code": reason.value, "resource": resource, "text": text}


def _resource_text(row: resource_store.ResourceRow, hold: Hold, now: float) -> str:
    name = row.name
    if row.pause is not None:
        return f"{name} is paused by {row.pause.by}."
    if hold.reason is WaitReason.BREAKER_OPEN:
        again = hold.look_again_at
        tried = "one task tries it now" if again is None else f"tried again in {max(0.0, again - now):.1f} s"
        return f"{name} has a provider that fails: {tried}."
    if hold.look_again_at is None:
        return f"{name} has {max(0.0, hold.available):g} of the {hold.needed:g} that the next task needs."
    return f"{name} is short: the next task can start in {max(0.0, hold.look_again_at - now):.1f} s."


def _next_at(limit: Limit, available: float, now: float) -> float | None:
    short = shortage(limit, available, 1.0, now=now)
    return None if short is None else short.look_again_at


def _waiting_for(resource: ResourceId, waiting: Mapping[DemandId, int], demands: Mapping[DemandId, DemandView]) -> int:
    return sum(n for demand, n in waiting.items() if resource in demands[demand].resources)


def _history(before: store.SnapshotRow | None, totals: Mapping[str, object]) -> dict[str, list[object]]:
    kept = before.body.get("history", {}) if before is not None else {}
    assert isinstance(kept, dict)  # noqa: S101 - we wrote it
    names = ("started_per_s", "succeeded_per_s", "failed_per_s", "waiting", "running")
    return {name: [*kept.get(name, []), totals[name]][-HISTORY_POINTS:] for name in names}
