"""Decides what starts now, in what order, on which worker; and for the rest, why it waits and when to look again.

The planner repeats, across all pools with a free slot, until no slot or no startable lane is left:

0. a fixed start whose time has come takes the slot that was kept for it;
1. class: one that is owed its share goes first, otherwise the class whose best head scores highest;
2. tenant: within the class, the lowest virtual counter;
3. lane: within the tenant, the head that scores highest (ties: ready time, then id);
4. gates: a head that lacks an amount of a resource makes that resource spoken for, and every lane whose demand needs
   it leaves this plan at once. A class that goes first only because it is owed its share does not speak for anything:
   that share of a bucket's refill is set aside for its head until it fits.

The same snapshot and time give the same plan. It never reads a clock, never writes, and never looks at payloads.
"""

from __future__ import annotations

from collections import defaultdict
from math import inf
from typing import TYPE_CHECKING, Final

from scheduler.policy.asides import Asides
from scheduler.policy.board import Demand, Group, HeadEntry, LaneQueue, Level, drawn_levels, probes
from scheduler.policy.budget import Treasury
from scheduler.policy.fairness import accrue, charged, is_owed
from scheduler.policy.gates import closed_to, hold_for, lacks, spoken_for
from scheduler.policy.order import DEFAULT_ORDER, FIXED_POINTS, OrderPolicy
from scheduler.policy.placement import PoolSlots
from scheduler.policy.precedence import is_beaten
from scheduler.policy.quotas import Quota
from scheduler.policy.run_gates import Runs
from scheduler.policy.seating import seated
from scheduler.policy.types import (
    DemandId,
    Hold,
    Lane,
    LaneKey,
    Plan,
    PoolId,
    PriorityClass,
    Snapshot,
    Start,
    TaskView,
    TenantId,
    WaitReason,
)

if TYPE_CHECKING:
    from scheduler.policy.gates import Lack
    from scheduler.policy.placement import Seats

STARTS_MAX: Final = 500
"""Starts in one plan, so that its transaction stays short."""


def make_plan(snapshot: Snapshot, *, starts_max: int = STARTS_MAX, order: OrderPolicy = DEFAULT_ORDER) -> Plan:
    """Plan at `snapshot.now`. `starts_max` bounds the plan; a bounded plan says `truncated`."""
    return _Planner(snapshot, order).run(starts_max)


class _Planner:
    """One plan in the making."""

    def __init__(self, snapshot: Snapshot, order: OrderPolicy) -> None:
        self.snapshot = snapshot
        self.now = snapshot.now
        self.order = order
        self.starts: list[Start] = []
        self.holds: list[Hold] = []
        self.wakes: list[float] = []
        self.truncated = False
        self.stopped_at: LaneKey | None = None
        self.levels = {r.id: Level(r, self.now) for r in snapshot.resources.values()}
        self.demands: dict[tuple[DemandId, PriorityClass | None], Demand] = {}
        self.has_floors = any(level.floors is not None for level in self.levels.values())
        self.fixed = any(lane.urgent and lane.urgent[0].fixed for lane in snapshot.lanes)
        self.quotas = {t.id: Quota(t, self.now) for t in snapshot.tenants.values() if t.limited}
        self.treasury = Treasury(snapshot.tenants, snapshot.runs, snapshot.demands)
        self.moneyless: set[tuple[Group, TenantId]] = set()
        self.runs = Runs(snapshot)
        self.pools: dict[PoolId, PoolSlots] = {}
        self.groups: dict[tuple[PoolId, PriorityClass], Group] = {}
        self.by_class: dict[PriorityClass, list[Group]] = {}
        self.by_pool: dict[PoolId, list[Group]] = defaultdict(list)
        self.counters: dict[PriorityClass, dict[TenantId, float]] = {p: {} for p in PriorityClass}
        self.charged: set[tuple[TenantId, PriorityClass]] = set()
        self.drawn_quotas: set[TenantId] = set()
        self.clocks = dict(snapshot.clocks)
        self.credits: dict[PoolId, dict[PriorityClass, float]] = defaultdict(dict)
        self._open_pools()
        self._admit_lanes()
        self.asides = Asides(snapshot.set_asides, self.levels, self.by_class, now=self.now, order=order)
        self._seat_tenants()
        self._recall_credits()

    # 0. What takes part in this plan

    def _open_pools(self) -> None:
        offers = defaultdict(list)
        for worker in self.snapshot.workers:
            offers[worker.pool].append(worker)
        for pool in self.snapshot.pools.values():
            self.pools[pool.id] = PoolSlots(pool.id, pool.slots - pool.running, offers[pool.id], pool.reserved)

    def _admit_lanes(self) -> None:
        for lane in self.snapshot.lanes:
            key = lane.key
            seats = self.pools[key.pool].seats(key.tenant, self.snapshot.demands[key.demand].labels)
            reason = closed_to(lane, self.snapshot, self.quotas, self.runs) or self.pools[key.pool].closed_to(seats)
            if reason is None:
                self._add(lane, seats)
            elif reason is WaitReason.TENANT_START_RATE or reason is WaitReason.TENANT_IN_FLIGHT:
                self._hold_tenant(key, reason)
            else:
                self.holds.append(Hold(key, reason))

    def _hold_tenant(self, key: LaneKey, reason: WaitReason) -> None:
        again = self.quotas[key.tenant].opens_at(self.now)
        if again is not None:
            self.wakes.append(again)
        self.holds.append(Hold(key, reason, again))

    def _add(self, lane: Lane, seats: Seats) -> None:
        key = lane.key
        of_class = key.priority if self.has_floors else None
        demand = self.demands.get((key.demand, of_class))
        if demand is None:
            needs = self.snapshot.demands[key.demand].resources
            demand = self.demands[key.demand, of_class] = Demand([self.levels[r] for r in needs], of_class)
        group = self.groups.get((key.pool, key.priority))
        if group is None:
            group = self.groups[key.pool, key.priority] = Group(self.pools[key.pool], key.priority)
            self.by_class.setdefault(key.priority, []).append(group)
            self.by_pool[key.pool].append(group)
        queue = LaneQueue(self.runs.in_turn(lane), demand, group, seats, now=self.now, order=self.order)
        group.add(queue)
        self.runs.add(queue)
        demand.lanes.append(queue)

    def _seat_tenants(self) -> None:
        limited = self.quotas.keys() | self.treasury.limited()
        for priority, groups in self.by_class.items():
            clock = self.clocks.get(priority, 0.0)
            self.counters[priority] = seated(groups, priority, self.snapshot.tenants, clock=clock, limited=limited)

    def _recall_credits(self) -> None:
        for (pool, priority), credit in self.snapshot.credits.items():
            if (pool, priority) in self.groups:
                self.credits[pool][priority] = credit

    # The loop

    def run(self, starts_max: int) -> Plan:
        while (choice := self._promised() or self._choose()) is not None:
            group, queue = choice
            head = queue.head
            assert head is not None  # noqa: S101 - a lane without a head is never chosen
            if queue.spent:
                if queue.lane.unread and self._lacks_money(queue):
                    group.drop(queue)
                    continue
                self.truncated, self.stopped_at = True, queue.key
                break
            if head.cost and self._is_kept_by_money(queue, head):
                continue
            lacking = lacks(queue.demand, head, group.priority, now=self.now)
            if lacking:
                self._hold(queue, head, lacking)
                continue
            if len(self.starts) >= starts_max:
                self.truncated = True
                break
            self._start(group, queue, head)
        return self._finish()

    # 0. Fixed starts

    def _promised(self) -> tuple[Group, LaneQueue] | None:
        """The lane of the fixed start that is the latest, while one can start."""
        if not self.fixed:
            return None
        heads = [(group.best_head(), group) for group in self.groups.values() if group.alive and group.pool.free]
        promised = [(head, group) for head, group in heads if head is not None and head[0] <= -FIXED_POINTS]
        if not promised:
            self.fixed = False
            return None
        head, group = min(promised, key=lambda entry: entry[0])
        return group, group.lanes[head[3]]

    # 1. Class

    def _choose(self) -> tuple[Group, LaneQueue] | None:
        owed = self._owed_lane()
        if owed is not None:
            return owed.group, owed
        best: HeadEntry | None = None
        leader: Group | None = None
        rivals: list[Group] = []
        runner_up = -inf
        for groups in self.by_class.values():
            top: HeadEntry | None = None
            topmost: Group | None = None
            for group in groups:
                if group.alive and group.pool.free:
                    entry = group.best_head()
                    if entry is not None and (top is None or entry < top):
                        top, topmost = entry, group
            if top is None:
                continue
            if best is None or top < best:
                runner_up = runner_up if best is None else max(runner_up, -best[0])
                best, leader, rivals = top, topmost, groups
            else:
                runner_up = max(runner_up, -top[0])
        if best is None or leader is None:
            return None
        queue = self._lane([leader] if len(rivals) == 1 else [g for g in rivals if g.alive and g.pool.free])
        if queue.head_score < runner_up and is_beaten(queue, self.by_class):
            queue = leader.lanes[best[3]]
        return queue.group, queue

    def _owed_lane(self) -> LaneQueue | None:
        """The lane that goes first because its class is owed a start; one that lacks something is passed over."""
        ripe = self.asides.next_ripe()
        if ripe is not None:
            return ripe
        while (group := self._owed_group()) is not None:
            queue = self._lane([group])
            head = queue.head
            assert head is not None  # noqa: S101 - a lane without a head is never chosen
            if head.cost and not queue.spent and self._is_kept_by_money(queue, head):
                continue
            lacking = [] if queue.spent else lacks(queue.demand, head, group.priority, now=self.now)
            if not lacking:
                return queue
            self.asides.begin(queue, head, lacking)
            self._note(queue, lacking)
            other = self._first_startable(group)
            if other is not None:
                return other
            group.passed = True
        return None

    def _first_startable(self, group: Group) -> LaneQueue | None:
        """The lane of the lowest counter, then the best head, among those that lack nothing."""
        counters = self.counters[group.priority]
        dry: set[Demand] = set()
        best: LaneQueue | None = None
        best_place: tuple[float, HeadEntry] | None = None
        for queue in group.lanes:
            head = queue.head
            if not queue.alive or head is None or queue.demand in dry:
                continue
            if queue.demand.is_dry():
                dry.add(queue.demand)
                continue
            place = (counters[queue.key.tenant], (-queue.head_score, head.ready_at, head.id, queue.index))
            if (best_place is None or place < best_place) and (
                queue.spent
                or not (self.treasury.keeps(queue.key, head) or lacks(queue.demand, head, group.priority, now=self.now))
            ):
                best, best_place = queue, place
        return best

    def _owed_group(self) -> Group | None:
        """The group with the largest credit of at least one start, most urgent class first among equals."""
        owed: Group | None = None
        owed_place = (0.0, 0, 0)
        for pool, credits_of_pool in self.credits.items():
            for priority, credit in credits_of_pool.items():
                group = self.groups[pool, priority]
                if is_owed(credit) and not group.passed and group.alive and group.pool.free:
                    place = (-credit, int(priority), int(pool))
                    if place < owed_place:
                        owed, owed_place = group, place
        return owed

    # 2. Tenant, 3. Lane

    def _lane(self, groups: list[Group]) -> LaneQueue:
        """The best lane of the tenant with the lowest counter in these groups, which have a lane alive."""
        counters = self.counters[groups[0].priority]
        if len(groups) == 1:
            return groups[0].next_lane(counters)
        tenant_id = min(g.next_tenant(counters) for g in groups)[1]
        offers = [(entry[:3], g.lanes[entry[3]]) for g in groups if (entry := g.best_lane_of(tenant_id)) is not None]
        return min(offers, key=lambda offer: offer[0])[1]

    # 4. Gates

    def _lacks_money(self, unread: LaneQueue) -> bool:
        """Whether what is not read costs money that its tenant lacks: it is looked at in its turn (see `lanebook`)."""
        return (unread.group, unread.key.tenant) in self.moneyless and self.snapshot.demands[unread.key.demand].priced

    def _is_kept_by_money(self, queue: LaneQueue, head: TaskView) -> bool:
        """Whether its budgets keep the head back, and with it its lane."""
        hold = self.treasury.keeps(queue.key, head)
        if hold is None:
            return False
        self.holds.append(hold)
        if hold.reason is WaitReason.TENANT_BUDGET:
            self.moneyless.add((queue.group, queue.key.tenant))
        queue.group.drop(queue)
        return True

    def _note(self, queue: LaneQueue, lacking: list[Lack]) -> None:
        """Say why a lane waits and until when; the plan looks again as soon as one of the limits has enough.

        From then on the head no longer speaks for that limit, and others may go.
        """
        known = [s.look_again_at for _, _, s in lacking if s.look_again_at is not None]
        self.wakes.extend(known)
        self.holds.append(hold_for(queue.key, lacking))

    def _hold(self, queue: LaneQueue, head: TaskView, lacking: list[Lack]) -> None:
        """Keep a lane back, and with it every lane whose demand needs what its head speaks for."""
        self._note(queue, lacking)
        only_kept = {level for level, amount, short in lacking if short.available >= amount}
        for level in spoken_for(queue.demand, head, lacking, now=self.now, late_after_s=self.order.late_after_s):
            for demand in level.users:
                if level in only_kept and demand.leaves(level) < queue.demand.leaves(level):
                    continue  # what is left is there for them
                for other in demand.lanes:
                    other.group.drop(other)
                demand.lanes.clear()
        queue.group.drop(queue)

    def _start(self, group: Group, queue: LaneQueue, head: TaskView) -> None:
        key = queue.key
        for level, amount in zip(queue.demand.levels, head.amounts, strict=True):
            level.draw(key.priority, head.id, amount, now=self.now)
        if len(self.by_pool[key.pool]) > 1:
            startable = [g.priority for g in self.by_pool[key.pool] if g.alive]
            accrue(self.credits[key.pool], started=key.priority, startable=startable, shares=self.order.shares)
        counters = self.counters[key.priority]
        counter = counters[key.tenant]
        if counter > self.clocks.get(key.priority, 0.0):
            self.clocks[key.priority] = counter
        counters[key.tenant] = charged(counter, cost=head.expected_s, weight=self.snapshot.tenants[key.tenant].weight)
        self.charged.add((key.tenant, key.priority))
        worker, cost = group.pool.take(queue.seats), self.treasury.reserve(key, head)
        self.starts.append(Start(head.id, key, worker, head.amounts, cost))
        queue.pop(self.now, self.order)
        if queue.head is None:
            group.drop(queue)
        else:
            group.renew(queue, queue.head)
        quota = self.quotas.get(key.tenant)
        if quota is not None:
            self._book(key.tenant, quota)
        if group.pool.has_none_left(queue.seats):
            full = (other for rival in self.by_pool[key.pool] for other in rival.drop_full())
            self.holds.extend(Hold(other, WaitReason.NO_FREE_SLOT) for other in full)
        for other, reason in self.runs.book(key.demand):
            self.holds.append(Hold(other.key, reason))

    def _book(self, tenant: TenantId, quota: Quota) -> None:
        """Count a start against the tenant's own limits; when they are used up its lanes leave the plan."""
        quota.take()
        self.drawn_quotas.add(tenant)
        reason = quota.closed()
        if reason is None:
            return
        for group in self.groups.values():
            for _, _, _, index in group.by_tenant.get(tenant, ()):
                queue = group.lanes[index]
                if queue.alive:
                    group.drop(queue)
                    self._hold_tenant(queue.key, reason)

    # What the plan leaves behind

    def _finish(self) -> Plan:
        self._hold_full_pools()
        drawn = (tenant for tenant in self.drawn_quotas if self.quotas[tenant].rate is not None)
        return Plan(
            now=self.now,
            starts=tuple(self.starts),
            holds=tuple(self.holds),
            look_again_at=min(self.wakes, default=None),
            truncated=self.truncated,
            levels=drawn_levels(self.levels.values()),
            counters={seat: self.counters[seat[1]][seat[0]] for seat in self.charged},
            clocks={p: c for p, c in self.clocks.items() if c != self.snapshot.clocks.get(p)},
            credits={(pool, p): c for pool, held in self.credits.items() for p, c in held.items()},
            start_levels={tenant: self.quotas[tenant].level for tenant in drawn},
            set_asides=self.asides.changes(),
            broke=frozenset(self.treasury.broke),
            probes=probes(self.levels.values()),
            stopped_at=self.stopped_at,
        )

    def _hold_full_pools(self) -> None:
        for group in self.groups.values():
            if group.pool.free == 0:
                self.holds.extend(Hold(q.key, WaitReason.NO_FREE_SLOT) for q in group.lanes if q.alive)
