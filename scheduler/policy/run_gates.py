"""Decides what the runs' own limits let start while a plan draws on them: width, and one write at a time.

It sees runs and lanes only; what a run may use up as a whole (steps, tokens, money, time) is decided in `runs`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from scheduler.policy.types import WaitReason

if TYPE_CHECKING:
    from collections.abc import Iterator

    from scheduler.policy.board import LaneQueue
    from scheduler.policy.types import BudgetView, DemandId, Lane, LaneKey, PoolId, RunId, Snapshot, TaskId, TenantId


@dataclass(frozen=True, slots=True)
class RunView:
    """A run as its lanes meet it.

    `active` and `killed` are what was said of it, `capped` that it has used up what it may. `room` is how many more of
    its steps may run. `writing`: one of its writing steps runs; `next_write` is the one whose turn it is otherwise.
    `budget` is its money, `demands` are what its steps need, those that run and those that wait.
    """

    id: RunId
    active: bool = True
    killed: bool = False
    capped: bool = False
    room: int = 1
    writing: bool = False
    next_write: TaskId | None = None
    budget: BudgetView | None = None
    demands: tuple[DemandId, ...] = ()


@dataclass(frozen=True, slots=True)
class Kills:
    """What was killed and not resumed, beside single runs: everything, pools, tenants."""

    everything: bool = False
    pools: frozenset[PoolId] = frozenset()
    tenants: frozenset[TenantId] = frozenset()

    def reach(self, key: LaneKey) -> bool:
        """Whether a lane is under one of them."""
        return self.everything or key.pool in self.pools or key.tenant in self.tenants


class _Leave:
    """What one run still allows in this plan, and its lanes that take part."""

    __slots__ = ("capped", "lanes", "next_write", "room", "writing")

    def __init__(self, run: RunView) -> None:
        self.room = run.room
        self.writing = run.writing
        self.next_write = run.next_write
        self.capped = run.capped
        self.lanes: list[LaneQueue] = []

    def closed(self, head: TaskId, *, writes: bool) -> WaitReason | None:
        if self.room <= 0:
            return WaitReason.RUN_WIDTH
        if writes and (self.writing or head != self.next_write):
            return WaitReason.RUN_WRITE_LOCK
        return WaitReason.RUN_BUDGET if self.capped else None


class Runs:
    """The runs whose lanes a plan looks at. Everything here costs nothing while no lane is a run's."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._demands = snapshot.demands
        self._views = snapshot.runs
        self._leaves: dict[RunId, _Leave] = {view.id: _Leave(view) for view in snapshot.runs.values()}

    def _of(self, demand: DemandId) -> RunId | None:
        if not self._leaves:
            return None
        run = self._demands[demand].run
        return run if run in self._leaves else None

    def is_killed(self, demand: DemandId) -> bool:
        """Whether the lane's run was killed."""
        run = self._of(demand)
        return run is not None and self._views[run].killed

    def is_stopped(self, demand: DemandId) -> bool:
        """Whether the lane's run is paused, or has ended."""
        run = self._of(demand)
        return run is not None and not self._views[run].active

    def closed(self, lane: Lane) -> WaitReason | None:
        """The run's gate that keeps this lane back. Writing steps go one at a time, in the order they became ready."""
        run = self._of(lane.key.demand)
        if run is None:
            return None
        return self._leaves[run].closed(lane.fifo[0].id, writes=self._demands[lane.key.demand].writes)

    def in_turn(self, lane: Lane) -> Lane:
        """The lane as it takes part: in a lane of writing steps no deadline passes those that came before."""
        run = self._of(lane.key.demand) if lane.urgent else None
        return replace(lane, urgent=()) if run is not None and self._demands[lane.key.demand].writes else lane

    def add(self, queue: LaneQueue) -> None:
        """A lane takes part in the plan."""
        run = self._of(queue.key.demand)
        if run is not None:
            self._leaves[run].lanes.append(queue)

    def book(self, demand: DemandId) -> Iterator[tuple[LaneQueue, WaitReason]]:
        """Count a start; drop from the plan the run's lanes that may start nothing more, and say why."""
        run = self._of(demand)
        if run is None:
            return
        leave = self._leaves[run]
        leave.room -= 1
        leave.writing = leave.writing or self._demands[demand].writes
        for queue in leave.lanes:
            if not queue.alive or queue.head is None:
                continue
            reason = leave.closed(queue.head.id, writes=self._demands[queue.key.demand].writes)
            if reason is not None:
                queue.group.drop(queue)
                yield queue, reason
