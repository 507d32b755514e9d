"""The leader's forecast on the real database: learned, published, logged, compared, and seen by those who ask."""

from __future__ import annotations

import pytest
from django.core.management import call_command
from django.db import connection

from scheduler.live.foresight import Foresight
from scheduler.models import ForecastLog, ForecastState, LearnedDuration, Task
from scheduler.policy.types import PoolId, PriorityClass, TaskId, TenantId
from scheduler.reads.forecast import calibration, oldest_waiting_s, published_forecast
from scheduler.reads.why import why
from scheduler.services.forecast import SAVED_EVERY_ROUNDS, Memory, load_scene, recall, renew_forecast
from scheduler.services.snapshot import take_snapshot
from scheduler.store.overview import load_latest_snapshot
from tests.support.work import HandWorker, make_bucket, make_pool, make_tenant, submit_tasks

pytestmark = pytest.mark.django_db
NORMAL = PriorityClass.NORMAL


def again(memory: Memory | None) -> Memory:
    """One round in which looking ahead is due.

    The test's transaction is that of the dispatches before, which may not be idle for long; looking ahead has none.
    """
    if memory is not None:
        memory.next_at = 0.0
    with connection.cursor() as cursor:
        cursor.execute("SET LOCAL idle_in_transaction_session_timeout = 0")
    return renew_forecast(memory)


def age_attempts(seconds: float) -> None:
    """Let all attempts have taken this long."""
    with connection.cursor() as cursor:
        cursor.execute("UPDATE attempt SET started_at = finished_at - make_interval(secs => %s)", [seconds])


def work_off(tenant: TenantId, worker: HandWorker, count: int = 30, *, seconds: float = 2.0, **fields: object) -> None:
    submit_tasks(tenant, count, **fields)
    while leased := worker.start():
        worker.succeed(leased)
    age_attempts(seconds)


@pytest.fixture
def seasoned() -> tuple[TenantId, PoolId, HandWorker, Memory]:
    """A pool of four slots whose attempts are known to take two seconds."""
    tenant, pool = make_tenant(), make_pool(slots=4)
    worker = HandWorker({pool: 4})
    memory = again(None)
    work_off(tenant, worker, kind="chat")
    return tenant, pool, worker, again(memory)


def test_little_is_known_and_nothing_is_said() -> None:
    tenant, pool = make_tenant(), make_pool(slots=4)
    worker = HandWorker({pool: 4})
    memory = again(None)
    work_off(tenant, worker, 19)
    submit_tasks(tenant, 5)
    again(memory)
    said = published_forecast()
    assert said is not None
    assert [(p["enough"], p["classes"]) for p in said.pools] == [(False, {})]
    take_snapshot(None, {}, interval_s=1.0)
    picture = load_latest_snapshot()
    assert picture is not None
    assert [p["forecast"] for p in picture.body["pools"]] == [None]  # type: ignore[attr-defined]  # JSON we wrote


def test_waits_are_foretold_by_place_and_shown_everywhere(
    seasoned: tuple[TenantId, PoolId, HandWorker, Memory],
) -> None:
    tenant, pool, worker, memory = seasoned
    tasks = submit_tasks(tenant, 44)
    worker.start()
    again(memory)
    said = published_forecast()
    assert said is not None
    band = said.pools[0]["classes"]["normal"]
    assert 18.0 < band["p50_s"] < 24.0, "forty wait for four slots of two seconds"
    assert band["p90_s"] > band["p50_s"]
    last = why(tasks[-1], tenant).band
    first = why(tasks[4], tenant).band
    assert last is not None
    assert first is not None
    assert 16.0 < last.p50_s < 24.0
    assert first.p50_s < 3.0
    assert why(tasks[0], tenant).band is None, "it runs"
    assert oldest_waiting_s()[pool, NORMAL] >= 0.0
    take_snapshot(None, {}, interval_s=1.0)
    picture = load_latest_snapshot()
    assert picture is not None
    assert picture.body["pools"][0]["forecast"]["normal"] == band  # type: ignore[index]  # JSON we wrote


def test_a_new_task_is_told_its_place_behind_those_of_this_process(
    seasoned: tuple[TenantId, PoolId, HandWorker, Memory],
) -> None:
    tenant, _, worker, memory = seasoned
    submit_tasks(tenant, 44)
    worker.start()
    again(memory)
    foresight = Foresight()
    assert foresight.of_new("p", NORMAL, tenant, ()) is None, "nobody has looked yet"
    assert foresight.is_stale()
    assert not foresight.is_stale(), "one looks for all"
    foresight.look()
    told = [foresight.of_new("p", NORMAL, tenant, ()) for _ in range(40)]
    assert told[0] is not None
    assert told[-1] is not None
    assert told[-1].p50_s > told[0].p50_s + 10.0
    other = foresight.of_new("p", NORMAL, TenantId(tenant + 1), ())
    assert other is not None
    assert other.p50_s < 4.0, "a tenant with nothing does not stand behind one with much"
    assert foresight.of_new("nowhere", NORMAL, tenant, ()) is None
    foresight.forget()
    assert foresight.is_stale()


def test_predictions_are_logged_and_compared_with_what_happened(
    seasoned: tuple[TenantId, PoolId, HandWorker, Memory],
) -> None:
    tenant, _, worker, memory = seasoned
    memory = again(memory)
    submit_tasks(tenant, 1)
    leased = worker.start()
    memory = again(memory)
    at_once = ForecastLog.objects.get()
    assert at_once.wait_s is not None
    assert at_once.wait_s < 1.0
    worker.succeed(leased)
    submit_tasks(tenant, 12)
    running = worker.start()
    memory = again(memory)
    while ForecastLog.objects.filter(wait_s=None).exists():
        worker.succeed(running)
        running = worker.start()
        memory = again(memory)
    record = calibration()
    assert record.overall.n == ForecastLog.objects.count() >= 2
    assert list(record.by_seat) == [("p", NORMAL)]
    call_command("forecast_report")


def test_a_new_leader_goes_on_with_what_was_learned(seasoned: tuple[TenantId, PoolId, HandWorker, Memory]) -> None:
    tenant, pool, _, memory = seasoned
    for _ in range(SAVED_EVERY_ROUNDS):
        memory = renew_forecast(memory)
    learned = LearnedDuration.objects.get()
    assert (learned.kind, round(learned.p90_s)) == ("chat", 2)
    successor = recall()
    assert successor.learned.is_enough(pool)
    assert successor.kinds.keys() == memory.kinds.keys()
    assert load_scene(successor).pools.keys() == {pool}
    (task,) = submit_tasks(tenant, kind="chat")
    assert Task.objects.get(pk=task).expected_s == pytest.approx(2.0, rel=0.1), "as long as such attempts take"
    (other,) = submit_tasks(tenant, kind="new")
    assert Task.objects.get(pk=other).expected_s == 1.0
    (hinted,) = submit_tasks(tenant, kind="chat", duration_hint_s=7.0)
    assert Task.objects.get(pk=hinted).expected_s == 7.0


def test_a_limit_and_a_long_lane_are_foretold_from_their_front(
    seasoned: tuple[TenantId, PoolId, HandWorker, Memory],
) -> None:
    tenant, _, _, memory = seasoned
    make_bucket("api", rate=2.0, burst=2.0)
    for _ in range(3):
        submit_tasks(tenant, 1_000, resources={"api": 1.0})
    again(memory)
    said = published_forecast()
    assert said is not None
    (lane,) = [lane for (_, _, _, names), lane in said.names.items() if names == ("api",)]
    curve = said.lanes[lane]
    assert curve.waiting == 3_000
    assert curve.raw_at(1_001).p50_s == pytest.approx(500.0, rel=0.05)
    assert curve.raw_at(2_900).p50_s == float("inf"), "beyond the horizon"


def test_a_tenant_of_which_nothing_waits_and_something_runs_is_looked_ahead_of_too(
    seasoned: tuple[TenantId, PoolId, HandWorker, Memory],
) -> None:
    tenant, _, worker, memory = seasoned
    submit_tasks(make_tenant("others"))
    assert len(worker.start()) == 1
    submit_tasks(tenant, 3)
    again(memory)
    assert published_forecast() is not None


def test_an_old_forecast_is_not_shown(seasoned: tuple[TenantId, PoolId, HandWorker, Memory]) -> None:
    state = ForecastState.objects.get(name="published")
    state.body["as_of"] -= 100.0
    state.save()
    assert published_forecast() is None
    assert why(TaskId(Task.objects.earliest("id").pk), None).band is None
