"""Schedules against a real database: each nominal time once, whoever ticks, and what an absence leaves behind."""

from __future__ import annotations

import threading
from collections import Counter
from datetime import timedelta
from itertools import pairwise
from typing import Any

import pytest
from django.db import connection
from django.db.models import F
from django.utils import timezone

from scheduler.errors import Conflict, NotFound, Refused
from scheduler.models import AuditEvent, Occurrence, Schedule, Task, TaskPayload
from scheduler.policy.admission import Submission
from scheduler.policy.schedules import CatchUp, Overlap
from scheduler.policy.types import TaskId, TenantId
from scheduler.services.changes import Author, VersionConflict
from scheduler.services.schedules import (
    Declared,
    add_schedule,
    described,
    edit_schedule,
    find_schedule,
    pause_schedule,
    remove_schedule,
    resume_schedule,
)
from scheduler.services.ticking import Ticked, tick
from tests.conftest import LiveDatabase
from tests.support.work import HandWorker, make_pool, make_tenant, state_of

TEMPLATE = Submission(payload='{"n": 1}', pool="p")
ME = Author("test", "api", "why not")


def make_schedule(
    tenant: TenantId,
    *,
    cron: str = "* * * * *",
    overlap: Overlap = Overlap.ALLOW,
    catch_up: CatchUp = CatchUp.LAST,
    template: Submission = TEMPLATE,
    zone: str = "UTC",
) -> None:
    add_schedule(tenant, "s", Declared(cron, zone, described(template), overlap, catch_up), ME)


def let_pass(minutes: float) -> None:
    """Make the schedule's times so much earlier, those that were decided included."""
    for occurrence in Occurrence.objects.order_by("nominal_at"):
        occurrence.nominal_at -= timedelta(minutes=minutes)
        occurrence.save(update_fields=["nominal_at"])
    Schedule.objects.update(next_at=F("next_at") - timedelta(minutes=minutes))


def fates() -> list[str]:
    return list(Occurrence.objects.order_by("nominal_at").values_list("fate", flat=True))


@pytest.mark.django_db
def test_nothing_is_due_before_its_time_and_the_tick_says_when() -> None:
    make_pool()
    make_schedule(make_tenant(), cron="*/30 * * * * *")
    done = tick()
    assert (done.submitted, Task.objects.count()) == (0, 0)
    assert done.next_at is not None
    assert 0.0 < done.next_at - done.now <= 30.0


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("catch_up", "expected"),
    [
        (CatchUp.NONE, ["missed", "missed", "missed"]),
        (CatchUp.LAST, ["missed", "missed", "submitted"]),
        (CatchUp.ALL, ["submitted", "submitted", "submitted"]),
    ],
)
def test_down_over_three_occurrences(catch_up: CatchUp, expected: list[str]) -> None:
    make_pool()
    # The fourth of four hours: none of them is on time.
    make_schedule(make_tenant(), cron=f"{(timezone.now().minute + 30) % 60} * * * *", catch_up=catch_up)
    Schedule.objects.update(next_at=F("next_at") - timedelta(hours=3))
    first = tick()
    again = tick()
    assert fates() == expected
    assert (first.submitted, again.submitted) == (expected.count("submitted"), 0)
    assert Task.objects.count() == expected.count("submitted")
    nominals = list(Occurrence.objects.order_by("nominal_at").values_list("nominal_at", flat=True))
    assert {b - a for a, b in pairwise(nominals)} == {timedelta(hours=1)}
    assert Schedule.objects.get().next_at == nominals[-1] + timedelta(hours=1)


@pytest.mark.django_db
def test_after_a_clock_that_stepped_back_nothing_is_repeated() -> None:
    make_pool()
    make_schedule(make_tenant())
    let_pass(1.0)
    assert tick().submitted == 1
    # As if the clock had gone back since: the same time comes again.
    Schedule.objects.update(next_at=F("next_at") - timedelta(minutes=1))
    assert tick().submitted == 0
    assert (Task.objects.count(), Occurrence.objects.count()) == (1, 1)


@pytest.mark.django_db
def test_an_occurrence_carries_the_template_and_its_nominal_time() -> None:
    make_pool()
    make_schedule(make_tenant(), template=Submission(payload='{"n": 1}', pool="p", key="daily", tags={"a": "b"}))
    let_pass(1.0)
    tick()
    task, nominal = Task.objects.get(), Occurrence.objects.get().nominal_at
    assert task.key == f"daily@{nominal:%Y-%m-%dT%H:%M:%SZ}"
    carried = TaskPayload.objects.get()
    assert (carried.payload, carried.tags) == ({"n": 1}, {"a": "b", "cronoq.recurring": "s"})


@pytest.mark.django_db
def test_skip_runs_none_while_the_task_before_has_not_ended() -> None:
    make_pool()
    make_schedule(make_tenant(), overlap=Overlap.SKIP, catch_up=CatchUp.ALL)
    let_pass(2.0)
    tick()
    assert fates() == ["submitted", "skipped"]
    assert "has not ended" in Occurrence.objects.latest("nominal_at").reason


@pytest.mark.django_db
def test_queue_runs_one_after_the_other() -> None:
    pool = make_pool()
    make_schedule(make_tenant(), overlap=Overlap.QUEUE, catch_up=CatchUp.ALL)
    let_pass(3.0)
    tick()
    assert fates() == ["submitted", "queued", "queued"]
    worker = HandWorker({pool: 5})
    for count in (2, 3):
        worker.succeed(worker.start())
        assert tick().submitted == 1
        assert fates().count("submitted") == count


@pytest.mark.django_db
def test_queue_on_success_stops_after_a_failure_until_it_is_replayed_or_resumed() -> None:
    pool, tenant = make_pool(max_attempts=1), make_tenant()
    make_schedule(tenant, overlap=Overlap.QUEUE_ON_SUCCESS, catch_up=CatchUp.ALL)
    let_pass(2.0)
    tick()
    worker = HandWorker({pool: 5})
    worker.fail(worker.start())
    tick()
    assert fates() == ["submitted", "skipped"]
    pause_schedule(tenant, "s", ME)
    resume_schedule(tenant, "s", ME)
    let_pass(1.0)
    tick()
    assert fates() == ["submitted", "skipped", "submitted"]


@pytest.mark.django_db
def test_what_is_refused_is_written_down_and_not_tried_again() -> None:
    make_pool()
    make_schedule(make_tenant(), template=Submission(payload="1", pool="gone"))
    let_pass(1.0)
    assert (tick().submitted, tick().submitted) == (0, 0)
    (occurrence,) = Occurrence.objects.all()
    assert (occurrence.fate, occurrence.task_id) == ("refused", None)
    assert "unknown_pool" in occurrence.reason


@pytest.mark.django_db
def test_a_long_absence_costs_a_bounded_number_of_rows() -> None:
    make_pool()
    make_schedule(make_tenant(), cron="* * * * * *", catch_up=CatchUp.ALL)
    let_pass(60 * 24 * 30)
    assert tick().submitted <= 110
    assert Occurrence.objects.count() <= 200
    assert "all earlier ones" in Occurrence.objects.earliest("nominal_at").reason


@pytest.mark.django_db
def test_a_paused_schedule_keeps_its_times_and_resuming_catches_up() -> None:
    make_pool()
    tenant = make_tenant()
    make_schedule(tenant, catch_up=CatchUp.ALL)
    pause_schedule(tenant, "s", ME)
    let_pass(3.0)
    assert tick().submitted == 0
    with pytest.raises(Conflict):
        pause_schedule(tenant, "s", ME)
    resume_schedule(tenant, "s", ME)
    assert tick().submitted == 3


@pytest.mark.django_db
def test_an_edit_is_versioned_and_audited_and_a_new_expression_counts_from_now() -> None:
    make_pool()
    tenant = make_tenant()
    make_schedule(tenant, cron="0 0 1 1 *")
    changed = edit_schedule(tenant, "s", 1, {"cron": "* * * * *"}, ME)
    assert changed.version == 2
    assert changed.next_at is not None
    assert changed.next_at - timezone.now().timestamp() <= 60.0
    with pytest.raises(VersionConflict):
        edit_schedule(tenant, "s", 1, {"cron": "0 * * * *"}, ME)
    event = AuditEvent.objects.get(action="schedule.edit")
    assert (event.before, event.after) == ({"cron": "0 0 1 1 *"}, {"cron": "* * * * *"})


@pytest.mark.django_db
def test_what_is_no_schedule_is_refused_by_name() -> None:
    tenant = make_tenant()
    with pytest.raises(Refused) as refused:
        make_schedule(tenant, cron="x", zone="Mars/Olympus")
    assert [e.loc for e in refused.value.errors] == [("cron",), ("time_zone",)]
    with pytest.raises(Refused, match="the schedule says when"):
        described(Submission(payload="1", start_in_s=3.0))
    make_schedule(tenant)
    with pytest.raises(Conflict):
        make_schedule(tenant)
    remove_schedule(tenant, "s", ME)
    with pytest.raises(NotFound):
        remove_schedule(tenant, "s", ME)


def test_two_engines_at_the_same_tick_submit_each_occurrence_once(live_database: LiveDatabase) -> None:
    tenant = make_tenant()
    make_pool()
    for n in range(10):
        declared = Declared("* * * * *", "UTC", described(TEMPLATE), Overlap.ALLOW, CatchUp.ALL)
        add_schedule(tenant, f"s{n}", declared, ME)
    let_pass(3.0)
    start, done, faults = threading.Barrier(2), [], []

    def engine() -> None:
        try:
            start.wait(10)
            done.append(tick())
        except Exception as fault:  # noqa: BLE001 - handed to the test
            faults.append(fault)
        finally:
            connection.close()

    engines = [threading.Thread(target=engine) for _ in range(2)]
    for thread in engines:
        thread.start()
    for thread in engines:
        thread.join(30)
    assert faults == []
    # Three minutes, and one more for those that were declared before a minute ended.
    each = Counter(Occurrence.objects.values_list("schedule", flat=True))
    assert set(each.values()) <= {3, 4}
    assert total(done) == Task.objects.count() == each.total()
    # A leader that follows finds nothing left.
    assert tick().submitted == 0


def total(done: list[Any]) -> int:
    return sum(ticked.submitted for ticked in done if isinstance(ticked, Ticked))


@pytest.mark.django_db
def test_a_fixed_occurrence_that_is_too_late_is_missed() -> None:
    pool = make_pool()
    template = Submission(payload="1", pool="p", expires_in_s=0.001)
    make_schedule(make_tenant(), template=template)
    let_pass(1.0)
    tick()
    HandWorker({pool: 1}).dispatch()
    assert state_of(TaskId(Task.objects.get().pk)) == "missed"


@pytest.mark.django_db
@pytest.mark.parametrize("broken", [{"cron": "not one"}, {"time_zone": "Mars/Olympus"}, {"task": {"pool": 7}}])
def test_a_schedule_that_cannot_be_decided_says_so_and_stops_no_other(broken: dict[str, Any]) -> None:
    make_pool()
    acme, globex = make_tenant(), make_tenant("globex")
    make_schedule(acme)
    make_schedule(globex)
    let_pass(1)
    Schedule.objects.filter(tenant=acme).update(next_at=F("next_at") - timedelta(minutes=1), **broken)
    done = tick()
    assert done.submitted == 1
    row = find_schedule(acme, "s")
    assert row.fault.startswith("It cannot be decided: ")
    assert find_schedule(globex, "s").fault == ""
    # It rests, so that nobody looks at it again and again, and is asked again a while later.
    assert (done.next_at or 0.0) > done.now
    assert tick().submitted == 0
    mended = {"cron": "* * * * *", "time_zone": "UTC", "task": described(TEMPLATE)}
    Schedule.objects.filter(tenant=acme).update(faulted_at=F("faulted_at") - timedelta(minutes=2), **mended)
    assert tick().submitted == 1
    assert find_schedule(acme, "s").fault == ""
