"""Forecasts: what is learned, how it is looked ahead with it, and that the promised bands hold in virtual time."""

from __future__ import annotations

import json
from dataclasses import replace
from math import inf
from random import Random

import pytest

from scheduler.policy.arrivals import BIN_S, BINS, LANES_MAX, LANES_SAVED, ArrivalRecord
from scheduler.policy.calibration import GRAIN, HORIZON_S, Band, Outcome, Report, Track, report, rounded
from scheduler.policy.crowd import LANES_MAX as LANES_FOLLOWED
from scheduler.policy.crowd import NEWCOMER, OTHERS, condense
from scheduler.policy.durations import LONGEST_S, Durations
from scheduler.policy.forecast import Curve, foretell
from scheduler.policy.forward import Forward
from scheduler.policy.grain import Grain
from scheduler.policy.hindsight import Hindsight
from scheduler.policy.learned import Ended, Learned
from scheduler.policy.retry import Failure
from scheduler.policy.scene import Arrival, InFlight, Job, Scene, Waiting
from scheduler.policy.types import (
    DemandId,
    DemandView,
    FailureClass,
    LaneKey,
    PoolId,
    PoolView,
    PriorityClass,
    ResourceId,
    ResourceKind,
    ResourceView,
    TenantId,
    TenantView,
)

POOL, BUCKET, PERMITS = PoolId(1), ResourceId(1), ResourceId(2)
NOTHING, RATED, HELD = DemandId(1), DemandId(2), DemandId(3)
NORMAL, HIGH = PriorityClass.NORMAL, PriorityClass.HIGH
ERROR = Failure(FailureClass.ERROR, "no")
THROTTLED = Failure(FailureClass.THROTTLED, "slow down", 4.0)


def lane(tenant: int = 1, priority: PriorityClass = NORMAL, demand: DemandId = NOTHING) -> LaneKey:
    return LaneKey(POOL, priority, TenantId(tenant), demand)


def scene(*, slots: int = 4, rate: float = 5.0, tenants: int = 3, permits: int = 8) -> Scene:
    bucket = ResourceView(BUCKET, ResourceKind.TOKEN_BUCKET, 0.0, 0.0, rate, rate)
    semaphore = ResourceView(PERMITS, ResourceKind.SEMAPHORE, float(permits), 0.0, permits=permits)
    return Scene(
        now=0.0,
        pools={POOL: PoolView(POOL, slots, 0)},
        tenants={TenantId(n): TenantView(TenantId(n)) for n in range(1, tenants + 1)},
        resources={BUCKET: bucket, PERMITS: semaphore},
        demands={
            NOTHING: DemandView(NOTHING, ()),
            RATED: DemandView(RATED, (BUCKET,)),
            HELD: DemandView(HELD, (PERMITS,)),
        },
    )


def learned(took_s: float = 1.0, attempts: int = 100, failure: Failure | None = None, failing: int = 0) -> Learned:
    known = Learned()
    known.learn(POOL, [Ended(took_s, 1.0, failure if n < failing else None) for n in range(attempts)], now=0.0)
    return known


# Durations


def test_quantiles_are_within_a_bin() -> None:
    durations = Durations()
    assert durations.quantile(0.5) is None
    durations.learn([float(n) for n in range(1, 101)], now=0.0)
    assert durations.quantile(0.5) == pytest.approx(50, rel=0.06)
    assert durations.quantile(0.9) == pytest.approx(90, rel=0.06)
    assert durations.quantile(0.5, longer_than_s=80.0) == pytest.approx(90, rel=0.06)
    assert durations.quantile(0.5, longer_than_s=200.0) == pytest.approx(220)
    assert Durations().drawing() is None
    assert Durations.from_json(durations.as_json()) == durations


def test_old_durations_fade_and_extremes_have_a_bin() -> None:
    durations = Durations()
    durations.learn([1.0] * 100, now=0.0)
    durations.learn([10.0] * 100, now=2_400.0)
    assert durations.weight == pytest.approx(106.25)
    assert durations.quantile(0.5) == pytest.approx(10.0, rel=0.1)
    durations.learn([0.0, 1e9], now=0.0)
    assert durations.weight == pytest.approx(108.25), "a clock that goes back fades nothing"
    assert durations.quantile(1.0) == pytest.approx(LONGEST_S, rel=0.11)
    durations.learn([], now=1e6)
    assert durations.weight == 0.0


def test_what_is_drawn_has_the_longest_in_it() -> None:
    """One in two hundred takes half of all the time."""
    durations = Durations()
    durations.learn([1.0] * 199 + [200.0], now=0.0)
    drawing = durations.drawing()
    assert drawing is not None
    drawn = [drawing.at((n + 0.5) / 10_000) for n in range(10_000)]
    assert sum(drawn) / len(drawn) == pytest.approx(drawing.mean_s, rel=0.01)
    assert drawing.mean_s == pytest.approx(2.0, rel=0.1)
    assert drawing.at(0.5) == durations.quantile(0.5)
    assert drawing.at(0.0) == pytest.approx(1.0, rel=0.1)
    assert drawing.at(1.0) == pytest.approx(200.0, rel=0.1)


# Arrivals


def test_arrivals_are_counted_in_bins_and_repeated() -> None:
    record = ArrivalRecord()
    assert list(record.imagine(0.0, {lane()}, draw=Random(1).random)) == []
    assert record.surge(lane()) == 0
    assert record.per_s(lane()) == 0.0
    record.turn(0.0)
    for n in range(1, 9):
        record.note(lane(), 20)
        record.note_amounts(lane(), (2.0,), 3.0)
        record.turn(n * BIN_S)
    assert record.surge(lane()) == 40
    assert record.per_s(lane()) == 4.0
    imagined = record.imagine(100.0, {lane()}, draw=Random(1).random)
    first = [next(imagined) for _ in range(16)]
    assert sum(a.number for a in first) == 40
    assert all(100.0 <= a.at < 110.0 and a.amounts == (2.0,) and a.expected_s == 3.0 for a in first)
    assert [a.at for a in first[:8]] == sorted(a.at for a in first[:8])


def test_a_forecast_ends_where_work_came_only_to_lanes_that_it_does_not_follow() -> None:
    known = learned()
    known.arrivals.turn(0.0)
    for n in range(1, 9):
        known.arrivals.note(lane(999), 20)
        known.arrivals.turn(n * BIN_S)
    assert list(known.arrivals.imagine(0.0, {lane()}, draw=Random(1).random)) == []
    busy = replace(scene(), waiting={lane(): (Waiting(0.0, number=20),)})
    assert lane() in foretell(busy, known, draw=Random(1).random).lanes


def test_silence_is_remembered_and_a_long_gap_forgets() -> None:
    record = ArrivalRecord()
    record.turn(0.0)
    record.note(lane(), 5)
    record.turn(4 * BIN_S)
    assert [sum(b.values()) for b in record.bins] == [5, 0, 0, 0]
    record.turn(BIN_S * BINS * 3)
    assert len(record.bins) == 4
    assert record.typical(lane(2), draw=lambda: 0.0) == ((), 1.0)


def test_a_record_is_kept_for_the_busiest_lanes_and_goes_on() -> None:
    record = ArrivalRecord()
    record.turn(0.0)
    for n in range(1, 5):
        for tenant in range(1, LANES_SAVED + 9):
            record.note(lane(tenant), tenant)
            record.note_amounts(lane(tenant), (float(tenant),), 2.0)
        record.turn(n * BIN_S)
    again = ArrivalRecord.from_json(json.loads(json.dumps(record.as_json())))
    assert len(again.totals()) == LANES_SAVED
    assert again.surge(lane(40)) == record.surge(lane(40)) == 80
    assert again.typical(lane(40), draw=lambda: 0.0) == ((40.0,), 2.0)
    again.turn(6 * BIN_S)
    assert [bin_.get(lane(40), 0) for bin_ in again.bins] == [40, 40, 40, 40, 0, 0]
    assert ArrivalRecord.from_json(ArrivalRecord().as_json()) == ArrivalRecord()


def test_what_lanes_asked_for_that_come_no_more_is_forgotten() -> None:
    record = ArrivalRecord()
    record.turn(0.0)
    record.note(lane(1), 1)
    for tenant in range(LANES_MAX + 1):
        record.note_amounts(lane(tenant), (), 1.0)
    record.turn(BIN_S)
    assert list(record.amounts) == [lane(1)]


def test_the_stretch_that_is_repeated_began_like_the_present() -> None:
    record = ArrivalRecord()
    record.turn(0.0)
    for n in range(1, 100):
        record.note(lane(), 50 if n % 3 == 0 else 1)
        record.turn(n * BIN_S)
    # The present is busy, and after a busy bin there was always a quiet one.
    draws = Random(1)
    firsts = [next(record.imagine(0.0, {lane()}, draw=draws.random)).number for _ in range(20)]
    assert firsts.count(1) >= 18


def test_what_is_expected_is_believed_where_it_clearly_says_more() -> None:
    known = Learned()
    known.learn(POOL, [Ended(float(n), float(n) * 2.0) for n in range(1, 30)], now=0.0)
    assert known.expects_well(POOL)
    assert Learned.from_json(known.as_json()).expects_well(POOL)
    said = Learned()
    said.learn(POOL, [Ended(2.0 + n / 100, 60.0) for n in range(30)], now=0.0)
    assert not said.expects_well(POOL)
    assert not Learned().expects_well(POOL)
    assert Durations().spread == inf
    # The mean of a task that is expected to take ten seconds is five.
    one = replace(scene(slots=1), waiting={lane(): (Waiting(0.0, (), 10.0),)})
    assert foretell(one, known, draw=Random(1).random).lanes[lane()].raw_at(2).p50_s == pytest.approx(5.0, rel=0.2)


# Calibration


def test_a_band_that_was_too_narrow_is_stretched_and_one_too_wide_shrinks() -> None:
    for width in (3.0, 0.1):
        track = Track()
        for _ in range(200):
            track.learn(Band(10.0, 10.0), 10.0 + width)
        assert track.corrected(Band(10.0, 10.0)).p90_s == pytest.approx(10.0 + width)


def test_a_band_is_wide_until_it_is_known_how_wide_it_must_be() -> None:
    track, raw = Track(), Band(10.0, 12.0)
    unknown = track.corrected(raw).p90_s
    assert unknown > 18.0
    for _ in range(12):
        track.learn(raw, 11.0)
    assert track.corrected(raw).p90_s == pytest.approx(unknown), "a dozen waits of one time prove little"
    for _ in range(8):
        track.learn(raw, 11.0)
    assert track.corrected(raw).p90_s == pytest.approx(11.0)


def test_a_lasting_error_moves_the_middle_and_one_does_not() -> None:
    track = Track()
    track.learn(Band(10.0, 11.0), 20.0)
    assert track.corrected(Band(10.0, 11.0)).p50_s == pytest.approx(10.0, rel=GRAIN)
    for _ in range(100):
        track.learn(Band(10.0, 11.0), 12.0)
    assert track.corrected(Band(10.0, 11.0)).p50_s == pytest.approx(12.0)


def test_errors_that_go_both_ways_prove_no_bias() -> None:
    track, chance = Track(), Random(1)
    for _ in range(200):
        track.learn(Band(10.0, 20.0), 10.0 * chance.lognormvariate(0.0, 1.0))
    assert track.corrected(Band(10.0, 20.0)).p50_s == pytest.approx(10.0, rel=GRAIN)
    early = Track()
    for _ in range(100):
        early.learn(Band(10.0, 11.0), 8.0)
    assert early.corrected(Band(10.0, 11.0)).p50_s == pytest.approx(8.0, rel=GRAIN)


def test_what_is_told_is_rounded_and_nothing_stays_nothing() -> None:
    assert rounded(Band(0.0, 0.001)) == Band(0.0, 0.0)
    assert rounded(Band(inf, inf)) == Band(inf, inf)
    for wait_s in (0.1, 1.0, 33.3, 800.0):
        told = rounded(Band(wait_s, wait_s))
        assert told.p50_s == told.p90_s == pytest.approx(wait_s, rel=GRAIN, abs=0.01)
        assert rounded(told) == pytest.approx(told)


def test_where_all_is_determined_nine_in_ten_are_inside() -> None:
    track, chance, inside = Track(), Random(3), 0
    for n in range(400):
        wait_s = chance.uniform(2.0, 40.0)
        raw = Band(wait_s, wait_s)
        inside += n >= 100 and wait_s <= track.corrected(raw).p90_s
        track.learn(raw, wait_s)
    assert 0.85 <= inside / 300 <= 0.97


def test_each_size_of_wait_has_its_own_errors() -> None:
    track = Track()
    for n in range(100):
        track.learn(Band(100.0, 100.0), 101.0 + n % 2)
    for _ in range(2_000):
        track.learn(Band(0.0, 0.0), 0.0)
    # Next to nothing is known of two-second waits: it lies between what is known.
    assert track.corrected(Band(0.0, 0.0)).p90_s < 0.05
    assert 101.5 < track.corrected(Band(100.0, 100.0)).p90_s < 103.0
    assert 2.0 <= track.corrected(Band(2.0, 2.0)).p90_s < 3.0
    assert track.corrected(Band(5_000.0, 5_000.0)).p90_s > 5_000.0


def test_a_track_goes_on_from_what_it_wrote_and_repeats_what_it_said() -> None:
    track = Track()
    for n in range(30):
        track.learn(Band(float(n), n + 1.0), n * 1.5)
    band = Band(7.0, 9.0)
    assert Track.of(track.lessons).corrected(band) == track.corrected(band)
    assert Track.said(track.concluded()).corrected(band) == track.corrected(band)


def test_what_could_not_be_told_teaches_nothing() -> None:
    track = Track()
    track.learn(Band(inf, inf), 5.0)
    assert track.corrected(Band(inf, inf)) == Band(inf, inf)
    assert not track.lessons


def test_a_report_counts_inside_and_the_error_of_waits_that_tell() -> None:
    assert report([]) == Report(0, None, 0, None, None)
    outcomes = [Outcome(Band(0.0, 1.0), 0.5), Outcome(Band(10.0, 12.0), 8.0), Outcome(Band(10.0, 12.0), 20.0)]
    assert report([*outcomes, Outcome(Band(inf, inf), 3.0)]) == Report(3, 2 / 3, 2, 0.5, 0.375)


# Grain


def test_a_long_backlog_is_few_jobs_and_starts_when_it_should() -> None:
    waiting = {lane(demand=RATED): (Waiting(-1.0, (1.0,), number=20_000),)}
    run = Forward(replace(scene(slots=50, rate=50.0), waiting=waiting), draw=Random(1).random, coarse_after=64)
    run.advance()
    assert run.plans < 1_500
    assert sum(job.count for job in run.started) == 20_000
    assert run.started[-1].started_at == pytest.approx(400.0, rel=0.05)


def test_a_probe_says_when_it_would_start_and_nobody_waits_for_it() -> None:
    """However many lanes are asked about, a lane starts when it would if nobody asked."""
    tenants = range(1, 9)
    waiting = {lane(n, demand=RATED): (Waiting(-1.0, (1.0,), number=3),) for n in tenants}
    world = replace(scene(slots=50, rate=1.0, tenants=8), waiting=waiting)
    plain = Forward(world, draw=Random(1).random)
    plain.advance()
    foreseen = foretell(world, learned(), draw=Random(1).random)
    lasts = [foreseen.lanes[lane(n, demand=RATED)].raw_at(3).p50_s for n in tenants]
    assert max(lasts) <= plain.now, "nine probes that took something would make it nine seconds more"
    newcomer = foreseen.raw_wait(lane(99, demand=RATED), now=0.0)
    assert newcomer is not None
    assert newcomer.p50_s <= 1.01


def test_a_burst_behind_what_waits_is_told_as_if_it_had_come() -> None:
    known = learned()
    known.arrivals.turn(0.0)
    for n in range(1, 4):
        known.arrivals.note(lane(demand=RATED), 60)
        known.arrivals.note_amounts(lane(demand=RATED), (1.0,), 1.0)
        known.arrivals.turn(n * BIN_S)
    full = replace(scene().resources[BUCKET], level=4.0)
    world = replace(scene(slots=99), resources={**scene().resources, BUCKET: full})
    foreseen = foretell(world, known, draw=Random(1).random)
    came = Forward(world, [Arrival(0.0, lane(demand=RATED), (1.0,)) for _ in range(60)], draw=Random(1).random)
    came.advance()
    for joined in (0, 2, 5, 20, 50):
        wait = foreseen.raw_wait(lane(demand=RATED), joined=joined, now=0.0)
        assert wait is not None
        assert wait.p50_s == pytest.approx(came.started[joined].started_at, abs=0.05)


def test_slots_and_permits_bound_what_moves_together() -> None:
    for demand, amounts in ((NOTHING, ()), (HELD, (1.0,))):
        waiting = {lane(demand=demand): tuple(Waiting(-1.0, amounts) for _ in range(1_000))}
        run = Forward(replace(scene(slots=8), waiting=waiting), draw=Random(1).random, coarse_after=32)
        run.advance()
        assert run.now == pytest.approx(125.0, rel=0.1)


def test_groups_keep_the_nearest_deadline_and_what_was_tried_moves_alone() -> None:
    grain = Grain(scene().pools, scene().demands, scene().resources, scene().tenants, coarse_after=1)
    assert grain.count_start()

    def job(number: int, *, attempts: int = 0, latest_start: float | None = None) -> Job:
        made = Job(number, lane(demand=RATED), 0.0, (float(number),), 1.0, latest_start, 1.0, 0)  # type: ignore[arg-type]  # ids are numbers
        made.attempts = attempts
        return made

    merged = grain.merged([job(1, latest_start=9.0), job(3, latest_start=5.0), job(5, attempts=1), job(7)])
    assert [(j.count, j.each, j.amounts, j.latest_start) for j in merged] == [
        (2, (2.0,), (4.0,), 5.0),
        (1, (5.0,), (5.0,), None),
        (1, (7.0,), (7.0,), None),
    ]


# Looking ahead


def test_little_is_known_so_nothing_is_said() -> None:
    foreseen = foretell(scene(), learned(attempts=19), draw=Random(1).random)
    assert not foreseen.lanes
    assert not foreseen.seats
    assert foreseen.raw_wait(lane(), now=1.0) is None


def test_a_backlog_is_foretold_by_place_and_for_a_task_that_comes_now() -> None:
    world = replace(scene(slots=9, rate=5.0), waiting={lane(demand=RATED): (Waiting(-1.0, (1.0,), number=500),)})
    foreseen = foretell(world, learned(), draw=Random(1).random)
    curve = foreseen.lanes[lane(demand=RATED)]
    assert curve.raw_at(1).p50_s == pytest.approx(0.2, abs=0.21)
    assert curve.raw_at(100).p50_s == pytest.approx(20.0, rel=0.05)
    assert curve.raw_at(500).p50_s == pytest.approx(100.0, rel=0.05)
    assert curve.raw_at(600).p50_s == pytest.approx(120.0, rel=0.1), "along the last stretch"
    wait = foreseen.raw_wait(lane(demand=RATED), joined=50, now=10.0)
    assert wait is not None
    assert wait.p50_s == pytest.approx(100.2, rel=0.05)
    seat = foreseen.seats[POOL, NORMAL]
    assert seat.p50_s == pytest.approx(100.2, rel=0.05)
    assert seat.p90_s > seat.p50_s
    newcomer = foreseen.raw_wait(lane(2, demand=RATED), now=0.0)
    assert newcomer is not None
    assert newcomer.p50_s < 1.0, "a tenant with nothing does not wait behind one with much"


def test_what_lies_beyond_the_horizon_is_not_told() -> None:
    world = replace(scene(rate=1.0), waiting={lane(demand=RATED): (Waiting(-1.0, (1.0,), number=2_000),)})
    curve = foretell(world, learned(), draw=Random(1).random).lanes[lane(demand=RATED)]
    assert curve.at(400).p50_s < HORIZON_S
    assert curve.at(2_001) == Band(inf, inf)
    assert curve.at(3_000) == Band(inf, inf)


def test_what_runs_is_expected_to_go_on_as_long_as_such_attempts_do() -> None:
    flights = tuple(InFlight(lane(), (), -10.0, inf) for _ in range(4))
    world = replace(scene(slots=4), in_flight=flights, waiting={lane(): (Waiting(-1.0),)})
    foreseen = foretell(world, learned(took_s=20.0), draw=Random(1).random)
    assert foreseen.lanes[lane()].raw_at(1).p50_s == pytest.approx(10.0, abs=2.5)


def test_failures_and_throttling_make_everything_later() -> None:
    world = replace(scene(slots=9), waiting={lane(demand=RATED): (Waiting(-1.0, (1.0,), number=300),)})
    waits = []
    for failure, failing in ((None, 0), (ERROR, 40), (THROTTLED, 10)):
        foreseen = foretell(world, learned(failure=failure, failing=failing), draw=Random(1).random)
        waits.append(foreseen.lanes[lane(demand=RATED)].raw_at(300).p50_s)
    assert waits[0] == pytest.approx(60.0, rel=0.05)
    assert waits[1] > 1.3 * waits[0]
    assert waits[2] > 1.5 * waits[0]


def test_expected_arrivals_of_a_better_class_push_back() -> None:
    world = replace(scene(slots=1), waiting={lane(): (Waiting(-1.0, number=20),)})
    quiet, busy = learned(), learned()
    busy.arrivals.turn(0.0)
    for n in range(1, 9):
        busy.arrivals.note(lane(2, HIGH), 3)
        busy.arrivals.note_amounts(lane(2, HIGH), (), 1.0)
        busy.arrivals.turn(n * BIN_S)
    alone = foretell(world, quiet, draw=Random(1).random).lanes[lane()].raw_at(20)
    pressed = foretell(world, busy, draw=Random(1).random)
    assert pressed.lanes[lane()].raw_at(20).p50_s > 1.5 * alone.p50_s
    assert pressed.seats[POOL, HIGH].p50_s < 5.0


def test_a_lane_with_no_known_amounts_asks_for_what_others_ask() -> None:
    known = learned()
    known.arrivals.note_amounts(lane(3, demand=RATED), (), 1.0)
    empty = foretell(scene(), known, draw=Random(1).random)
    assert empty.lanes[lane(3, demand=RATED)].raw_at(1).p50_s == pytest.approx(0.2, abs=0.21)
    world = replace(scene(), waiting={lane(demand=RATED): (Waiting(-1.0, (5.0,)),)})
    like = foretell(world, known, draw=Random(1).random)
    assert like.lanes[lane(3, demand=RATED)].raw_at(1).p50_s > 1.0


def test_a_crowd_is_followed_as_one_and_its_cost_has_a_bound() -> None:
    tenants = 300
    waiting = {lane(n): (Waiting(-1.0), Waiting(-0.5)) for n in range(1, tenants + 1)}
    world = replace(scene(slots=30, tenants=tenants), waiting={**waiting, lane(1): (Waiting(-1.0, number=900),)})
    known = learned()
    known.arrivals.turn(0.0)
    for n in range(1, 4):
        known.arrivals.note(lane(300), 2)
        known.arrivals.note_amounts(lane(300), (), 1.0)
        known.arrivals.note(lane(1), 2)
        known.arrivals.note_amounts(lane(999), (), 1.0)
        known.arrivals.turn(n * BIN_S)
    crowd = condense(world, known)
    assert len(crowd.lanes) == LANES_FOLLOWED + 2
    others = lane()._replace(tenant=OTHERS)
    assert crowd.sharing == {others: tenants - LANES_FOLLOWED}
    assert lane(999) not in crowd.known
    assert crowd.known >= {lane(200), lane(1)}
    came = [Arrival(1.0, lane(200)), Arrival(2.0, lane(1))]
    assert [a.lane for a in crowd.followed(came)] == [others, lane(1)]
    foreseen = foretell(world, known, draw=Random(1).random)
    assert foreseen.others[others].raw_at(284).p50_s == pytest.approx(10.0, rel=0.3)
    assert foreseen.lanes[lane(1)].raw_at(900).p50_s > 30.0
    assert all(key.tenant not in (NEWCOMER, OTHERS) for key in foreseen.lanes)


def test_one_point_is_a_curve() -> None:
    curve = Curve(0, ((1, 2.0, 3.0),), Track())
    assert curve.raw_at(9) == Band(2.0, 3.0)


# In hindsight


def test_a_world_that_comes_to_a_stand_ends_the_walk() -> None:
    walked = Hindsight(scene(slots=0), [Arrival(5.0, lane())], draw=Random(1).random, imagine=Random(2).random)
    walked.play()
    assert not walked.outcomes
    assert walked.forecasts == 2
