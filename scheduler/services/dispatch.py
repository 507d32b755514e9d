"""Starts tasks: lock, bounded snapshot, plan, guarded writes, in one short transaction.

Safe from any number of processes at once: the plan is serialised by a lock, tasks are claimed only while they are
ready, and every lease is a fresh fence.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final, Protocol

from django.db import transaction

from scheduler.policy.lanebook import LaneBook, Look, Read
from scheduler.policy.limits import less_held
from scheduler.policy.plan import STARTS_MAX, make_plan
from scheduler.policy.run_gates import Kills
from scheduler.policy.types import (
    WORKER_FRESH_S,
    DemandId,
    DemandView,
    Hold,
    Lane,
    LeasedTask,
    Plan,
    PoolId,
    PoolView,
    ResourceId,
    ResourceView,
    Snapshot,
    Start,
    TenantId,
    TenantView,
    WaitReason,
    WorkerId,
    WorkerView,
)
from scheduler.services.budgets import open_periods
from scheduler.services.missing import end_overdue
from scheduler.store import dispatch as store
from scheduler.store.lanes import rewrite
from scheduler.store.run_steps import mark_broke
from scheduler.store.run_views import run_views
from scheduler.store.starts import commit_soon, start_tasks

PROMOTE_MAX: Final = 1_000
_OF_LIMITS: Final = (WaitReason.BREAKER_OPEN, WaitReason.RESOURCE)


@dataclass(frozen=True, slots=True)
class Dispatched:
    """What one dispatch did. `look_again_at`, `next_due_at`, `next_miss_at`: when next the clock alone matters.

    `holds` has one entry per pool: what kept it from starting more. `again` asks for another dispatch at once.
    `waiting` is False when every ready task was started: a slot that frees then is no reason to look again.
    """

    now: float
    leased: tuple[LeasedTask, ...]
    look_again_at: float | None
    next_due_at: float | None
    next_miss_at: float | None
    again: bool
    waiting: bool
    holds: dict[PoolId, Hold]

    def wake_at(self) -> float | None:
        """The earliest of these times."""
        times = [t for t in (self.look_again_at, self.next_due_at, self.next_miss_at) if t is not None]
        return min(times, default=None)


class Planner(Protocol):
    """What decides who starts: `make_plan`, or it and a clock."""

    def __call__(self, snapshot: Snapshot, *, starts_max: int) -> Plan:
        """A plan of at most so many starts."""


def dispatch(
    *, me: WorkerId, starts_max: int = STARTS_MAX, book: LaneBook | None = None, planner: Planner = make_plan
) -> Dispatched:
    """Plan once and start what the plan says. `book` is what the last dispatch, if it went well, knew of lanes.

    1. take the turn and lock the shared limits;
    2. read what runs, where there is room and what came to the lanes; first end what may not start
       any more and make due tasks ready, if there are any;
    3. read the fronts of the lanes that may matter, and who stands in them;
    4. plan;
    5. start the tasks under leases, store levels and fairness. Nothing waits for the disk where nothing starts: what
       was written besides can be found again, and even a lock that was taken alone is a line of the log.
    """
    with transaction.atomic(savepoint=False):
        resources = store.lock()
        book = book or LaneBook()
        control, promoted = _control(book)
        _bring_up_to_date(book, control)
        snapshot, look, field = _snapshot(control, book, resources, starts_max)
        plan = planner(snapshot, starts_max=starts_max)
        leased: list[LeasedTask] = []
        if plan.starts or plan.levels or plan.set_asides:
            taken = _taken(plan, snapshot.demands)
            leased = start_tasks(
                plan, me=me, pools=control.pools, resources=resources, taken=taken, tenants=snapshot.tenants
            )
        if plan.broke:
            mark_broke(plan.broke)
        if not leased:
            commit_soon()
        if look is not None:
            read = Read(field.lanes, field.tenants, snapshot.runs, field.demands, control.steps)
            book.learn(look, read, plan)
    again = plan.truncated or promoted >= PROMOTE_MAX or len(leased) < len(plan.starts)
    return Dispatched(
        now=snapshot.now,
        leased=tuple(leased),
        look_again_at=plan.look_again_at,
        next_due_at=control.next_due_at,
        next_miss_at=control.next_miss_at,
        again=again,
        waiting=again or bool(plan.holds) or _unread(book, snapshot, plan),
        holds=_by_pool(plan),
    )


def _unread(book: LaneBook, snapshot: Snapshot, plan: Plan) -> bool:
    """Whether work may wait where the plan did not look: in pools that are full, or that nobody has a slot for."""
    looked = {lane.key.pool for lane in snapshot.lanes}
    if any(pool not in looked and lanes for pool, lanes in book.in_pool.items()):
        return True
    started = Counter(start.lane.pool for start in plan.starts)
    return any(
        view.running + started[view.id] + view.reserved >= view.slots
        for view in snapshot.pools.values()
        if not view.paused
    )


def _control(book: LaneBook) -> tuple[store.Control, int]:
    """What there is to plan with, after what the clock did to tasks; and how many at most one statement moved."""
    control = store.load_control(fresh_s=WORKER_FRESH_S, mark=book.mark, folds=book.folds)
    is_due = control.next_due_at is not None and control.next_due_at <= control.now
    is_late = control.next_miss_at is not None and control.next_miss_at <= control.now
    if not is_due and not is_late:
        return control, 0
    missed = end_overdue(PROMOTE_MAX) if is_late else 0
    promoted = store.promote_due(PROMOTE_MAX) if is_due else 0
    return store.load_control(fresh_s=WORKER_FRESH_S, mark=book.mark, folds=book.folds), max(missed, promoted)


def _bring_up_to_date(book: LaneBook, control: store.Control) -> None:
    """Tell the book what came since, also what was folded away. It is written anew at times, and if some is lost."""
    came = []
    if book.is_outdated(control.folds, told=len(control.folded)):
        rewrite(book, control)
    else:
        came += book.heard(control.folded, control.bases, now=control.now)
    came += book.arrived(control.arrivals, control.bases, now=control.now)
    book.always = [*came, *control.always]
    book.heed(control.steps, control.changed, mark=control.mark)


def _snapshot(
    control: store.Control, book: LaneBook, resources: dict[ResourceId, ResourceView], starts_max: int
) -> tuple[Snapshot, Look | None, store.Field]:
    pools = store.pool_views(control)
    offers = store.worker_views(control.workers, control.in_flight)
    look = book.look(*_rooms(pools, offers, starts_max, control.kills))
    field = store.EMPTY_FIELD
    if look is not None:
        demands = {entry.demand for entry in control.in_flight} | {lane.key.demand for lane in look.unread}
        field = store.load_field(look.keys, width=look.width, demands=demands, fixed=control.near_starts)
    lanes = _with_known_limits(field, resources)
    tenants = field.tenants | open_periods(_without_budget(field), control.now)
    snapshot = Snapshot(
        now=control.now,
        pools=pools,
        tenants=tenants if look is None else tenants | look.strangers,
        resources=_as_used(resources, field.demands, control) if field.lanes else resources,
        demands=field.demands,
        workers=offers,
        lanes=lanes if look is None else (*lanes, *look.unread),
        clocks=field.clocks,
        credits=field.credits,
        set_asides=field.set_asides,
        runs=run_views(field.runs, control.steps) if field.runs else {},
        kills=control.kills,
    )
    return snapshot, look, field


def _with_known_limits(field: store.Field, resources: Mapping[ResourceId, ResourceView]) -> tuple[Lane, ...]:
    """The lanes, less those that need what is not there: a limit added a moment ago, or something removed by hand.

    So a row that points nowhere, as after a restore under a running service, stops itself and nobody else.
    """
    known = {demand.id for demand in field.demands.values() if resources.keys() >= set(demand.resources)}
    return tuple(lane for lane in field.lanes if lane.key.demand in known)


def _without_budget(field: store.Field) -> list[TenantView]:
    """Tenants whose lanes cost money and whose present period has not begun for us yet."""
    needs = {demand.id for demand in field.demands.values() if demand.priced}
    priced = {lane.key.tenant for lane in field.lanes if lane.key.demand in needs}
    return [field.tenants[tenant] for tenant in sorted(priced) if field.tenants[tenant].budget is None]


def _rooms(
    pools: Mapping[PoolId, PoolView], offers: tuple[WorkerView, ...], starts_max: int, kills: Kills
) -> tuple[dict[PoolId, int], dict[PoolId, dict[TenantId, int]]]:
    """Free slots by pool: those that workers offer to anybody's work, and those that they offer to one tenant's.

    None where everything is killed.
    """
    left = {
        view.id: min(view.slots - view.running - view.reserved, starts_max)
        for view in pools.values()
        if not view.paused and not kills.everything and view.id not in kills.pools
    }
    offered: dict[PoolId, int] = defaultdict(int)
    own: dict[PoolId, dict[TenantId, int]] = {}
    for offer in offers:
        if offer.tenant is None:
            offered[offer.pool] += offer.free_slots
        elif offer.free_slots > 0 and left.get(offer.pool, 0) > 0:
            mine = own.setdefault(offer.pool, {})
            mine[offer.tenant] = min(mine.get(offer.tenant, 0) + offer.free_slots, left[offer.pool])
    rooms = {pool: min(room, offered[pool] - pools[pool].reserved) for pool, room in left.items()}
    return {pool: room for pool, room in rooms.items() if room > 0}, own


def _as_used(
    resources: dict[ResourceId, ResourceView], demands: dict[DemandId, DemandView], control: store.Control
) -> dict[ResourceId, ResourceView]:
    """Semaphores less what live leases hold of them, and half-open breakers with the probes that are under way."""
    for resource in control.probing:
        resources[resource] = replace(resources[resource], probing=True)
    held: dict[ResourceId, float] = defaultdict(float)
    for entry in control.in_flight:
        for resource, amount in zip(demands[entry.demand].resources, entry.held, strict=True):
            held[resource] += amount
    return {r.id: less_held(r, held[r.id]) if r.id in held else r for r in resources.values()}


def _taken(plan: Plan, demands: Mapping[DemandId, DemandView]) -> dict[ResourceId, float]:
    taken: dict[ResourceId, float] = defaultdict(float)
    for start in plan.starts:
        _add_amounts(taken, start, demands[start.lane.demand])
    return taken


def _add_amounts(taken: dict[ResourceId, float], start: Start, demand: DemandView) -> None:
    for resource, amount in zip(demand.resources, start.amounts, strict=True):
        taken[resource] += amount


def _by_pool(plan: Plan) -> dict[PoolId, Hold]:
    """What keeps each pool from starting more: a limit before a full pool, for the limit is the cause to act on."""
    holds: dict[PoolId, Hold] = {}
    for hold in plan.holds:
        known = holds.get(hold.lane.pool)
        if known is None or (hold.reason in _OF_LIMITS and known.reason not in _OF_LIMITS):
            holds[hold.lane.pool] = hold
    return holds
