"""Width and turns: what the runs' own limits let start in one plan."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scheduler.policy.plan import make_plan
from scheduler.policy.run_gates import Kills, RunView
from scheduler.policy.types import (
    DemandId,
    DemandView,
    Lane,
    LaneKey,
    Plan,
    PoolId,
    PoolView,
    PriorityClass,
    RunId,
    Snapshot,
    TaskId,
    TenantId,
    TenantView,
    WaitReason,
    WorkerId,
    WorkerView,
    is_of_run,
)
from tests.policy.build import task

POOL, TENANT, RUN = PoolId(1), TenantId(1), RunId(1)
FREE, READS, WRITES, MORE_WRITES = DemandId(1), DemandId(-1), DemandId(-2), DemandId(-3)
DEMANDS = {
    FREE: DemandView(FREE, ()),
    READS: DemandView(READS, (), run=RUN),
    WRITES: DemandView(WRITES, (), run=RUN, writes=True),
    MORE_WRITES: DemandView(MORE_WRITES, (), run=RUN, writes=True),
}


def lane(demand: DemandId, *numbers: int, urgent: tuple[int, ...] = ()) -> Lane:
    key = LaneKey(POOL, PriorityClass.NORMAL, TENANT, demand)
    late = tuple(task(n, ready_at=float(n), latest_start=1.0) for n in urgent)
    return Lane(key, tuple(task(n, ready_at=float(n)) for n in numbers), late)


def plan(run: RunView | None, *lanes: Lane, slots: int = 100, kills: Kills | None = None) -> Plan:
    worker = WorkerId("w")
    snapshot = Snapshot(
        now=1_000.0,
        pools={POOL: PoolView(POOL, slots, 0)},
        tenants={TENANT: TenantView(TENANT)},
        resources={},
        demands=DEMANDS,
        workers=(WorkerView(worker, POOL, slots),),
        lanes=lanes,
        runs={} if run is None else {run.id: run},
        kills=kills,
    )
    return make_plan(snapshot)


def started(made: Plan) -> list[int]:
    return sorted(start.task for start in made.starts)


def reasons(made: Plan) -> set[WaitReason]:
    return {hold.reason for hold in made.holds}


def test_a_run_starts_no_more_than_its_width_and_others_go_on() -> None:
    made = plan(RunView(RUN, room=3), lane(READS, *range(1, 41)), lane(FREE, 100, 101))
    assert started(made) == [1, 2, 3, 100, 101]
    assert reasons(made) == {WaitReason.RUN_WIDTH}
    assert not made.truncated
    full = plan(RunView(RUN, room=0), lane(READS, 1), lane(FREE, 100))
    assert started(full) == [100]


def test_one_write_at_a_time_whose_turn_it_is_beside_reads() -> None:
    run = RunView(RUN, room=8, next_write=TaskId(3))
    made = plan(run, lane(WRITES, 4, 5), lane(MORE_WRITES, 3, 6), lane(READS, 7))
    assert started(made) == [3, 7]
    assert reasons(made) == {WaitReason.RUN_WRITE_LOCK}
    assert started(plan(replace(run, writing=True), lane(MORE_WRITES, 3), lane(READS, 7))) == [7]
    assert started(plan(replace(run, next_write=TaskId(1)), lane(MORE_WRITES, 3))) == [], (
        "one that is retried comes first"
    )


def test_no_deadline_passes_the_write_whose_turn_it_is() -> None:
    run = RunView(RUN, room=8, next_write=TaskId(3))
    assert started(plan(run, lane(WRITES, 3, 4, urgent=(4,)))) == [3]
    assert started(plan(run, lane(READS, 1, 2, urgent=(2,)))) == [1, 2]


@pytest.mark.parametrize(
    ("run", "reason"),
    [
        (RunView(RUN, active=False), WaitReason.RUN_NOT_ACTIVE),
        (RunView(RUN, active=False, killed=True), WaitReason.KILLED),
        (RunView(RUN, capped=True), WaitReason.RUN_BUDGET),
    ],
)
def test_a_run_that_is_stopped_starts_nothing_and_says_why(run: RunView, reason: WaitReason) -> None:
    made = plan(run, lane(READS, 1), lane(FREE, 2))
    assert started(made) == [2]
    assert reasons(made) == {reason}


@pytest.mark.parametrize(
    "kills",
    [Kills(everything=True), Kills(pools=frozenset({POOL})), Kills(tenants=frozenset({TENANT}))],
    ids=["everything", "pool", "tenant"],
)
def test_nothing_under_a_kill_starts(kills: Kills) -> None:
    made = plan(None, lane(FREE, 1), kills=kills)
    assert started(made) == []
    assert reasons(made) == {WaitReason.KILLED}
    assert started(plan(None, lane(FREE, 1), kills=Kills(pools=frozenset({PoolId(9)})))) == [1]


def test_a_demand_says_itself_whether_it_is_a_runs() -> None:
    assert [is_of_run(demand) for demand in (FREE, READS)] == [False, True]


@given(
    st.integers(0, 6),
    st.integers(0, 5),
    st.lists(st.sampled_from([READS, WRITES, MORE_WRITES]), max_size=12),
    st.booleans(),
)
def test_width_and_turns_hold_whatever_waits(room: int, slots: int, kinds: list[DemandId], writing: bool) -> None:
    waiting = {kind: [n for n, k in enumerate(kinds, start=1) if k == kind] for kind in set(kinds)}
    writes = sorted(n for kind, numbers in waiting.items() if DEMANDS[kind].writes for n in numbers)
    run = RunView(RUN, room=room, writing=writing, next_write=TaskId(writes[0]) if writes else None)
    begun = started(plan(run, *(lane(kind, *numbers) for kind, numbers in waiting.items()), slots=slots))
    assert len(begun) <= min(room, slots)
    assert [n for n in begun if n in writes] in ([], [] if writing else writes[:1])
    startable = len(kinds) - len(writes) + (1 if writes and not writing else 0)
    assert len(begun) == min(room, slots, startable), "and nothing is kept back without need"
