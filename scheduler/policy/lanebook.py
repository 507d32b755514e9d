"""Decides which lanes a plan looks at, so that a plan of a few starts reads a few lanes however many there are.

The book remembers every lane with ready work: since when its head waits at the latest, and the virtual counter that
orders it. Of each group (pool, class, what its tasks need beside a run's leave; `lanegroups`) a plan reads lanes of the
tenants of the lowest counters, the oldest of each, and the one that waits longest. The rest stands in the plan as
unread lanes: one for each tenant that is read in part, with the age of its next lane, and one for all other tenants,
with the lowest counter and the oldest head among them. A plan that reaches one stops there and asks for another look,
which then reaches further. So the order of starts is the same as if everything had been read. Lanes that a run's own
gate keeps back are set apart until it may open (`parking`): as if they had been read and found closed.

What the book knows may be older than the database: a head may have gone (then the lane is found empty or younger when
it is read), and a settlement may have corrected a counter (it is read anew with the lane, and all of them whenever the
book is written anew). It never decides what starts.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from math import inf
from typing import TYPE_CHECKING, Final, NamedTuple

from scheduler.policy.lanegroups import End, LaneGroup, Stop
from scheduler.policy.parking import Parking
from scheduler.policy.types import (
    DemandId,
    DemandView,
    FairCounter,
    Lane,
    LaneKey,
    Plan,
    PoolId,
    PriorityClass,
    RunId,
    TaskId,
    TaskView,
    TenantId,
    TenantView,
    WaitReason,
    is_of_run,
)

if TYPE_CHECKING:
    from scheduler.policy.run_gates import RunView

_UNREAD: Final = 1 << 62
"""Unread lanes are given tenants and tasks from here on: after all real ones where everything else is equal."""

WRITTEN_ANEW_FOLDS: Final = 4
"""The book is written anew after at most so many folds of the counts: of what nobody tells it, it knows by then."""
LANES_EACH_FOLD: Final = 250
"""As many lanes as are read anew with every fold; four times as many only with every fourth."""

_LAST_MARK: Final = 1 << 62
"""Of no run was anything changed since this: nothing is remembered of any yet."""

_NOBODYS: Final[Mapping[PoolId, Mapping[TenantId, int]]] = {}

Arrivals = tuple[int, int]
"""How often something came to a lane since the counts were folded, and the mark of the last time."""

GroupKey = tuple[PoolId, PriorityClass, DemandId]


class Look(NamedTuple):
    """What a plan is to read: these lanes, each `width` tasks deep; and what stands for the rest."""

    keys: list[LaneKey]
    width: int
    unread: list[Lane]
    strangers: dict[TenantId, TenantView]


class Read(NamedTuple):
    """All that was read for a plan, also what it was not shown: `leases` are the running steps of runs, by demand."""

    lanes: Iterable[Lane]
    tenants: Mapping[TenantId, TenantView]
    runs: Mapping[RunId, RunView]
    demands: Mapping[DemandId, DemandView]
    leases: Mapping[DemandId, int]


class LaneBook:
    """All lanes with ready work, as far as is known."""

    def __init__(self) -> None:
        self.ready_since: dict[LaneKey, float] = {}
        self.in_pool: Counter[PoolId] = Counter()
        self.folds: int | None = None
        self.written_at = 0
        self.mark = _LAST_MARK
        self.always: list[LaneKey] = []
        self.parking = Parking()
        self._bases: dict[DemandId, DemandId] = {}
        self._seen: Mapping[LaneKey, Arrivals] = {}
        self._groups: dict[GroupKey, LaneGroup] = defaultdict(LaneGroup)
        self._looked_at: dict[LaneKey, float] = {}
        self._counters: dict[tuple[TenantId, PriorityClass], FairCounter] = {}
        self._clocks: dict[PriorityClass, float] = {}

    # Writing

    def rewrite(
        self,
        lanes: Iterable[tuple[LaneKey, float]],
        counters: Mapping[tuple[TenantId, PriorityClass], FairCounter],
        clocks: Mapping[PriorityClass, float],
        *,
        folds: int,
        arrivals: Mapping[LaneKey, Arrivals],
        bases: Mapping[DemandId, DemandId],
        now: float,
    ) -> None:
        """Forget everything but how far to look and what is parked, and know these lanes by the age of their heads.

        `arrivals` is what came to lanes since the counts were folded for the `folds`-th time: it is in `lanes`. `bases`
        says of the demands of runs what they need beside the run's leave.
        """
        self.folds = self.written_at = folds
        self._seen = arrivals
        self._bases = dict(bases)
        before = dict(self._groups)
        self.ready_since.clear()
        self._groups.clear()
        self._counters = dict(counters)
        self._clocks = dict(clocks)
        heads = dict(lanes)
        self._looked_at = {key: at for key, at in self._looked_at.items() if key in heads}
        heads |= self._looked_at
        parked = self.parking.review(heads, now=now)
        self.in_pool = Counter(key.pool for key in parked)
        open_ = [(key, ready_at) for key, ready_at in heads.items() if key not in parked]
        # Those who stayed are seated before those who come back from idle, whose place is among them.
        back = [(key, ready_at) for key, ready_at in open_ if not self._enter_if_stayed(key, ready_at)]
        self._enter_all(back)
        for place, group in self._groups.items():
            if place in before:
                group.reaches_as(before[place])

    def is_outdated(self, folds: int, *, told: int) -> bool:
        """Whether to write it anew, now that the counts were folded so often, and it is `told` what so many folds took.

        Reading all lanes and counters takes the longer the more there are, and is done the less often.
        """
        if self.folds is None or folds - self.folds != told:
            return True
        return folds - self.written_at >= min(WRITTEN_ANEW_FOLDS, 1 + len(self.ready_since) // LANES_EACH_FOLD)

    def heard(
        self, folded: Iterable[Mapping[LaneKey, Arrivals]], bases: Mapping[DemandId, DemandId], *, now: float
    ) -> list[LaneKey]:
        """Take note of what these folds of the counts took of what came; the lanes that had no work before."""
        assert self.folds is not None  # noqa: S101 - else it is outdated
        new = []
        for arrivals in folded:
            new += self.arrived(arrivals, bases, now=now)
            self.folds += 1
        return new

    def arrived(
        self, arrivals: Mapping[LaneKey, Arrivals], bases: Mapping[DemandId, DemandId], *, now: float
    ) -> list[LaneKey]:
        """Take note of what came since the last look; the lanes that had no work before."""
        came = [k for k, n in arrivals.items() if self._seen.get(k) != n and k not in self.ready_since]
        self._seen = arrivals
        self._bases.update(bases)
        for key in came:
            if key in self.parking:
                self._unpark(self.parking.take_of(key))
        new = [key for key in came if key not in self.ready_since]
        self._enter_all((key, now) for key in new)
        return new

    def heed(self, leases: Mapping[DemandId, int], changed: Iterable[RunId], *, mark: int) -> None:
        """Look again at lanes of runs of which other steps run by now, or that somebody `changed` up to this mark."""
        self.mark = mark
        self._unpark(self.parking.take_moved(leases, changed))

    def enter(self, key: LaneKey, ready_at: float) -> None:
        """A lane has work, the first of it ready since then."""
        self._enter_all([(key, ready_at)])

    def _enter_all(self, lanes: Iterable[tuple[LaneKey, float]]) -> None:
        floors: dict[tuple[PoolId, PriorityClass], float] = {}
        for key, ready_at in lanes:
            if key not in self.ready_since:
                self.in_pool[key.pool] += 1
            self.ready_since[key] = ready_at
            group = self._group(key)
            group.enter(key, ready_at, self._place(key, group, floors))

    def _enter_if_stayed(self, key: LaneKey, ready_at: float) -> bool:
        stored = self._counters.get((key.tenant, key.priority))
        if stored is None or ready_at > stored.last_start_at:
            return False
        self.enter(key, ready_at)
        return True

    def strike(self, key: LaneKey) -> None:
        """A lane has no work any more."""
        if self.ready_since.pop(key, None) is not None:
            self._group(key).strike(key)
            self.in_pool[key.pool] -= 1

    def _unpark(self, lanes: Mapping[LaneKey, float]) -> None:
        for key, ready_at in lanes.items():
            self.in_pool[key.pool] -= 1
            self.enter(key, ready_at)

    def _group(self, key: LaneKey) -> LaneGroup:
        base = self._bases.get(key.demand, key.demand) if is_of_run(key.demand) else key.demand
        return self._groups[key.pool, key.priority, base]

    def _place(self, key: LaneKey, group: LaneGroup, floors: dict[tuple[PoolId, PriorityClass], float]) -> float:
        """The counter that orders its tenant: its own, or lifted when the tenant was idle (see `fairness`).

        `floors` keeps what those who were idle are lifted to, from one lane to the next: who enters never lowers it.
        """
        stored = self._counters.get((key.tenant, key.priority))
        if stored is not None and self.ready_since[key] <= stored.last_start_at:
            return stored.value
        place = group.places.get(key.tenant)
        if place is not None:
            return place if stored is None else max(place, stored.value)
        # As low as the lowest, not just below it: the next one to come back is measured by this one.
        floor = floors.get((key.pool, key.priority))
        if floor is None:
            floor = floors[key.pool, key.priority] = min(self._clocks.get(key.priority, 0.0), self._lowest(key))
        return floor if stored is None else max(stored.value, floor)

    def _lowest(self, key: LaneKey) -> float:
        """The lowest counter of those that the lane shares pool and class with."""
        lowest = inf
        for (pool, priority, _), group in self._groups.items():
            if pool == key.pool and priority == key.priority:
                first = group.lowest()
                lowest = lowest if first is None else min(lowest, first)
        return lowest

    # Looking

    def look(self, rooms: Mapping[PoolId, int], own: Mapping[PoolId, Mapping[TenantId, int]] = _NOBODYS) -> Look | None:
        """What a plan with so many free slots by pool reads: some lanes of each group, and what it reads always.

        `own` are free slots that one tenant's work alone may take: its lanes are read whatever their place. None when
        no lane of these pools has work.
        """
        always = (k for k in self.always if k in self.ready_since and (rooms.get(k.pool, 0) > 0 or k.pool in own))
        keys: dict[LaneKey, None] = dict.fromkeys(always)
        unread: list[Lane] = []
        strangers: dict[TenantId, TenantView] = {}
        starts = 0
        # Of whom one lane is read, the others are looked at too: else a younger one would go before them.
        besides: dict[int, dict[TenantId, None]] = defaultdict(dict)
        for key in keys:
            besides[id(self._group(key))][key.tenant] = None
        for (pool, priority, demand), group in self._groups.items():
            room = rooms.get(pool, 0)
            mine = {tenant: slots for tenant, slots in own.get(pool, {}).items() if group.has(tenant)}
            if room <= 0 and not mine:
                continue
            starts += sum(mine.values()) + min(max(0, room), group.starts)
            tenants = besides[id(group)] | dict.fromkeys(mine)
            chosen = group.choose(keys, self._counters, priority, besides=tenants, room=room)
            for tenant, ready_at in chosen.partly.items():
                unread.append(_unread(LaneKey(pool, priority, tenant, demand), ready_at, len(unread)))
            if chosen.rest is not None:
                tenant = TenantId(_UNREAD + len(unread))
                unread.append(_unread(LaneKey(pool, priority, tenant, demand), chosen.rest.ready_at, len(unread)))
                strangers[tenant] = TenantView(tenant, counters={priority: FairCounter(chosen.rest.counter, -inf)})
        if not keys:
            return None
        width = max(2, -(-2 * starts // max(1, len(keys))))
        return Look(list(keys), width, unread, strangers)

    # Learning

    def learn(self, look: Look, read: Read, plan: Plan) -> None:
        """What reading and planning showed: lanes that are empty, go on or are held, counters, and how far to look."""
        for tenant, view in read.tenants.items():
            for priority, counter in view.counters.items():
                self._counters[tenant, priority] = counter
        for (tenant, priority), value in plan.counters.items():
            self._counters[tenant, priority] = FairCounter(value, plan.now)
        self._clocks.update(plan.clocks)
        started = {start.task for start in plan.starts}
        found = {lane.key: lane for lane in read.lanes}
        for key in look.keys:
            lane = found.get(key)
            left = None if lane is None else next((t for t in lane.fifo if t.id not in started), None)
            if left is not None:
                self.enter(key, left.ready_at)
            elif lane is None or not lane.more:
                self.strike(key)
            else:
                self.enter(key, lane.fifo[-1].ready_at)
        self._learn_reach(look, plan)
        self._put_back(plan)
        for key in self.parking.park(plan, self.ready_since, read.runs, read.demands, read.leases):
            self.strike(key)
            self.in_pool[key.pool] += 1

    def _put_back(self, plan: Plan) -> None:
        """Look at other lanes of a tenant next time than those that its money does not pay for.

        However many there are, a plan reads few of them, and one that costs less comes to its turn.
        """
        for hold in plan.holds:
            if hold.reason is WaitReason.TENANT_BUDGET and hold.lane in self.ready_since:
                self._looked_at[hold.lane] = plan.now
                self.enter(hold.lane, plan.now)

    def _learn_reach(self, look: Look, plan: Plan) -> None:
        """How many lanes of whom each group's starts came from, and at the end of what the plan had to stop."""
        starts = Counter(id(self._group(start.lane)) for start in plan.starts)
        begun: dict[int, Counter[TenantId]] = defaultdict(Counter)
        for key in {start.lane for start in plan.starts}:
            begun[id(self._group(key))][key.tenant] += 1
        stopped = None if plan.stopped_at is None else self._group(plan.stopped_at)
        for group in {id(group): group for group in map(self._group, look.keys)}.values():
            stop = _stop(look, plan) if group is stopped else None
            group.learn(begun[id(group)], starts[id(group)], truncated=plan.truncated, stop=stop)


def _stop(look: Look, plan: Plan) -> Stop | None:
    """What the plan came to the end of."""
    key = plan.stopped_at
    if key is None:
        return None
    if key.tenant in look.strangers:
        end = End.TENANTS
    else:
        end = End.LANES if any(lane.key == key for lane in look.unread) else End.TASKS
    return Stop(end, key.tenant, stuck=not plan.starts)


def _unread(key: LaneKey, ready_at: float, n: int) -> Lane:
    """A lane that stands for others, whose oldest head is ready since then."""
    head = TaskView(TaskId(_UNREAD + n), ready_at, None, 1.0, ())
    return Lane(key, (head,), more=True, unread=True)
