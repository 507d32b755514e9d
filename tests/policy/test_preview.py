"""What an edit would do to the waits that are there: looked ahead twice from one scene, with one chance."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace

import pytest

from scheduler.policy.declarations import QuotaSettings
from scheduler.policy.learned import Learned
from scheduler.policy.preview import Edit, LimitEdit, PoolEdit, Preview, TenantEdit, edited, preview_edit
from scheduler.policy.scene import Scene, Waiting
from scheduler.policy.types import PoolId, PoolView, PriorityClass, ResourceId, TenantId
from tests.policy.test_forecast import BUCKET, HELD, NORMAL, PERMITS, POOL, RATED, lane, learned, scene

SEAT = (POOL, NORMAL)


def chance() -> Callable[[], float]:
    return random.Random(3).random


def look(at: Scene, edit: Edit, known: Learned | None = None) -> Preview:
    return preview_edit(at, edit, known or learned(), chance=chance)


def busy() -> Scene:
    """Forty tasks of one second each for four slots, and a hundred that share a bucket of five a second."""
    return replace(scene(), waiting={lane(): (Waiting(0.0, number=40),)})


def p50(preview: Preview) -> tuple[float, float]:
    change = preview.seats[SEAT]
    assert change.before is not None
    assert change.after is not None
    return change.before.p50_s, change.after.p50_s


def test_twice_the_slots_halve_the_wait() -> None:
    before, after = p50(look(busy(), PoolEdit(POOL, slots=8)))
    assert before == pytest.approx(10.0, rel=0.25)
    assert after == pytest.approx(before / 2, rel=0.25)


def test_an_edit_that_changes_nothing_changes_nothing() -> None:
    for edit in (PoolEdit(POOL), LimitEdit(BUCKET), TenantEdit(TenantId(1))):
        before, after = p50(look(busy(), edit))
        assert before == after


def test_a_paused_pool_starts_nothing() -> None:
    change = look(busy(), PoolEdit(POOL, paused=True)).seats[SEAT]
    assert change.after is None or change.after.p50_s == float("inf")


@pytest.mark.parametrize(("edit", "factor"), [(LimitEdit(BUCKET, rate=10.0), 0.5), (LimitEdit(BUCKET, rate=2.5), 2.0)])
def test_another_rate_changes_the_wait_of_what_needs_it(edit: Edit, factor: float) -> None:
    at = replace(scene(slots=50), waiting={lane(demand=RATED): (Waiting(0.0, (1.0,), number=100),)})
    before, after = p50(look(at, edit))
    assert before == pytest.approx(20.0, rel=0.25)
    assert after == pytest.approx(before * factor, rel=0.25)


def test_more_permits_let_more_run() -> None:
    at = replace(scene(slots=50, permits=4), waiting={lane(demand=HELD): (Waiting(0.0, (1.0,), number=40),)})
    before, after = p50(look(at, LimitEdit(PERMITS, permits=8)))
    assert after == pytest.approx(before / 2, rel=0.3)


def test_a_smaller_burst_holds_less() -> None:
    at = replace(scene(), resources={BUCKET: replace(scene().resources[BUCKET], level=5.0)})
    after = edited(at, LimitEdit(BUCKET, burst=2.0, margin=0.5)).resources[BUCKET]
    assert (after.burst, after.level) == (2.0, 1.0)


def test_a_heavier_tenant_waits_less_and_that_is_told_apart() -> None:
    waiting = {lane(tenant): (Waiting(0.0, number=40),) for tenant in (1, 2)}
    found = look(replace(scene(), waiting=waiting), TenantEdit(TenantId(1), weight=9.0))
    own = found.own[SEAT]
    assert own.before is not None
    assert own.after is not None
    assert own.after.p50_s < 0.8 * own.before.p50_s
    assert look(busy(), PoolEdit(POOL, slots=8)).own == {}


def test_a_suspended_tenant_starts_nothing_of_its_own() -> None:
    own = look(busy(), TenantEdit(TenantId(1), suspended=True)).own[SEAT]
    assert own.after is None or own.after.p50_s == float("inf")


def test_a_quota_makes_its_tenant_wait_and_the_wait_ends_with_it() -> None:
    at = replace(scene(slots=50), waiting={lane(): (Waiting(0.0, number=40),)})
    slow = look(at, TenantEdit(TenantId(1), quota=QuotaSettings(start_rate=2.0, start_burst=2.0))).own[SEAT]
    one = look(at, TenantEdit(TenantId(1), quota=QuotaSettings(max_in_flight=1))).own[SEAT]
    for change, expected_s in ((slow, 19.0), (one, 40.0)):
        assert change.before is not None
        assert change.after is not None
        assert change.before.p50_s == 0.0
        assert change.after.p50_s == pytest.approx(expected_s, rel=0.2)
    held = edited(at, TenantEdit(TenantId(1), quota=QuotaSettings(start_rate=2.0, start_burst=2.0)))
    assert look(held, TenantEdit(TenantId(1), quota=QuotaSettings())).own[SEAT].after == slow.before


def test_a_start_rate_that_is_edited_keeps_what_it_has() -> None:
    quota = QuotaSettings(start_rate=5.0, start_burst=9.0)
    spent = replace(scene().tenants[TenantId(1)], start_rate=1.0, start_burst=4.0, start_level=2.0)
    at = replace(scene(), tenants={TenantId(1): spent})
    view = edited(at, TenantEdit(TenantId(1), quota=quota)).tenants[TenantId(1)]
    assert (view.start_rate, view.start_burst, view.start_level) == (5.0, 9.0, 2.0)


def test_what_a_class_must_leave_is_left() -> None:
    full = replace(scene(slots=50).resources[BUCKET], level=10.0, burst=10.0, rate=1.0)
    at = replace(
        scene(slots=50), resources={BUCKET: full}, waiting={lane(demand=RATED): (Waiting(0.0, (1.0,), number=8),)}
    )
    kept = look(at, LimitEdit(BUCKET, ceilings={NORMAL: 0.5})).seats[SEAT]
    assert kept.before is not None
    assert kept.after is not None
    assert kept.before.p50_s == 0.0
    assert kept.after.p50_s == pytest.approx(4.0, abs=0.5)


def test_work_that_is_yet_to_come_counts() -> None:
    known = learned()
    known.arrivals.turn(0.0)
    for n in range(1, 9):
        known.arrivals.note(lane(2, PriorityClass.HIGH), 10)
        known.arrivals.note_amounts(lane(2, PriorityClass.HIGH), (), 1.0)
        known.arrivals.turn(n * 5.0)
    quiet, busy_ = p50(look(busy(), PoolEdit(POOL, slots=8))), p50(look(busy(), PoolEdit(POOL, slots=8), known))
    assert busy_[0] > 1.5 * quiet[0]
    assert busy_[0] - busy_[1] > quiet[0] - quiet[1]


def test_pools_of_which_too_little_is_known_are_named() -> None:
    found = look(busy(), PoolEdit(POOL, slots=8), Learned())
    assert found.unknown == {POOL}
    assert found.seats == {}


def test_workers_that_offer_fewer_slots_are_believed_unless_they_grow() -> None:
    at = replace(busy(), offers={POOL: 4})
    assert edited(at, PoolEdit(POOL, slots=8)).offers == {POOL: 8}
    assert edited(at, PoolEdit(POOL, slots=8, grows=False)).offers == {POOL: 4}
    assert edited(replace(at, offers={POOL: 0}), PoolEdit(POOL, slots=8)).offers == {POOL: 0}


@pytest.mark.parametrize(
    "edit", [PoolEdit(PoolId(9), slots=1), LimitEdit(ResourceId(9), rate=1.0), TenantEdit(TenantId(9), weight=1.0)]
)
def test_what_the_scene_does_not_have_is_not_edited(edit: Edit) -> None:
    at = busy()
    assert edited(at, edit) is at


def test_what_was_looked_at_is_as_it_was() -> None:
    at = busy()
    look(at, PoolEdit(POOL, slots=8))
    assert at == busy()
    assert at.pools == {POOL: PoolView(POOL, 4, 0)}
    assert PriorityClass.NORMAL is NORMAL
