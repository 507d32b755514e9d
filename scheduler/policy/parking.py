"""Decides which lanes of runs no plan need look at, because their run's own gate keeps them back, and until when.

What a run's gates say depends on how many of its steps run, on what was done to the run, and on which of its steps
wait. A lane that a plan found closed by them is parked until the first or the second changes or something comes to one
of the run's parked lanes. What is not noticed, as when a step that others wait for is cancelled, is found when the
book is written anew: a lane whose head has changed is looked at then, and so is one that waits for a step that does
not run, and everything that was parked for a while.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Final, NamedTuple

from scheduler.policy.types import WaitReason, is_of_run

if TYPE_CHECKING:
    from scheduler.policy.run_gates import RunView
    from scheduler.policy.types import DemandId, DemandView, LaneKey, Plan, RunId

PARKED_MAX_S: Final = 10.0
"""A parked lane is looked at that often, whatever is known."""

OF_RUNS: Final = frozenset(
    {WaitReason.RUN_NOT_ACTIVE, WaitReason.RUN_WIDTH, WaitReason.RUN_WRITE_LOCK, WaitReason.RUN_BUDGET}
)
"""Why a plan held a lane for its run's sake, and nothing else's."""


class _Parked(NamedTuple):
    """Since when the lane's head is ready, since when it is parked, and whether we are told when it may open."""

    ready_at: float
    at: float
    told: bool


class Parking:
    """Lanes of runs that are not read, by run."""

    def __init__(self) -> None:
        self._lanes: dict[RunId, dict[LaneKey, _Parked]] = {}
        self._runs: dict[DemandId, RunId] = {}
        self._leases: Mapping[DemandId, int] = {}

    def __contains__(self, key: LaneKey) -> bool:
        run = self._runs.get(key.demand) if self._lanes else None
        return run is not None and key in self._lanes.get(run, ())

    def __len__(self) -> int:
        return sum(map(len, self._lanes.values()))

    def take_of(self, key: LaneKey) -> dict[LaneKey, float]:
        """All lanes of a parked one's run with the times since which their heads are ready. None is parked any more."""
        return dict(self._out([self._runs[key.demand]]))

    def take_moved(self, leases: Mapping[DemandId, int], changed: Iterable[RunId]) -> dict[LaneKey, float]:
        """The lanes of runs of which other steps run than the last plan left running, and of those that `changed`.

        `leases` counts the running steps of runs by demand.
        """
        before, self._leases = self._leases, leases
        if not self._lanes:
            return {}
        moved = {self._runs[demand] for demand, _ in leases.items() ^ before.items() if demand in self._runs}
        return dict(self._out(moved.union(changed)))

    def review(self, heads: Mapping[LaneKey, float], *, now: float) -> set[LaneKey]:
        """Keep what may stay parked, now that all lanes are known by the time since which their heads are ready."""
        kept: dict[RunId, dict[LaneKey, _Parked]] = {}
        for run, lanes in self._lanes.items():
            for key, parked in lanes.items():
                if parked.told and heads.get(key) == parked.ready_at and now - parked.at < PARKED_MAX_S:
                    kept.setdefault(run, {})[key] = parked
        self._lanes = kept
        self._runs = {demand: run for demand, run in self._runs.items() if run in kept}
        return {key for lanes in kept.values() for key in lanes}

    def park(
        self,
        plan: Plan,
        ready_since: Mapping[LaneKey, float],
        runs: Mapping[RunId, RunView],
        demands: Mapping[DemandId, DemandView],
        leases: Mapping[DemandId, int],
    ) -> list[LaneKey]:
        """Note what a plan left running, and park the lanes it held for their runs' sake; which those are.

        `leases` are the running steps that it saw, `demands` those of the runs that it looked at.
        """
        self._note(plan, leases)
        writing = _writing(plan, runs, demands)
        parked = []
        for hold in plan.holds:
            key = hold.lane
            ready_at = ready_since.get(key)
            if hold.reason not in OF_RUNS or not is_of_run(key.demand) or ready_at is None:
                continue
            run = demands[key.demand].run
            assert run is not None  # noqa: S101 - that is what an id below zero says
            told = hold.reason is not WaitReason.RUN_WRITE_LOCK or run in writing
            self._lanes.setdefault(run, {})[key] = _Parked(ready_at, plan.now, told)
            self._runs.update(dict.fromkeys(runs[run].demands, run))
            parked.append(key)
        return parked

    def _note(self, plan: Plan, leases: Mapping[DemandId, int]) -> None:
        began = [start.lane.demand for start in plan.starts if is_of_run(start.lane.demand)]
        after = dict(leases)
        for demand in began:
            after[demand] = after.get(demand, 0) + 1
        self._leases = after

    def _out(self, runs: Iterable[RunId]) -> Iterator[tuple[LaneKey, float]]:
        for run in runs:
            for key, parked in self._lanes.pop(run, {}).items():
                yield key, parked.ready_at


def _writing(plan: Plan, runs: Mapping[RunId, RunView], demands: Mapping[DemandId, DemandView]) -> set[RunId | None]:
    """The runs of which a writing step runs after this plan."""
    began = (demands[start.lane.demand] for start in plan.starts if is_of_run(start.lane.demand))
    return {run.id for run in runs.values() if run.writing} | {demand.run for demand in began if demand.writes}
