"""Work that asks for a capability goes to the first model that is up, and back when it is up again."""

from __future__ import annotations

from typing import Any

import orjson
import pytest
from django.db import connection

from scheduler.errors import Refused
from scheduler.models import Attempt, PoolState
from scheduler.policy.admission import Submission
from scheduler.policy.routes import Option
from scheduler.policy.types import FailureClass, LeasedTask, PoolId, TaskId, TenantId
from scheduler.services.routes import add_route
from scheduler.services.routing import reroute
from scheduler.services.submit import submit
from tests.support.work import HandWorker, make_bucket, make_pool, make_tenant, submit_tasks

pytestmark = pytest.mark.django_db


def run_sql(statement: str) -> None:
    with connection.cursor() as cursor:
        cursor.execute(statement)


def draft_route(*, degraded_model: str | None = None) -> tuple[TenantId, PoolId]:
    tenant, pool = make_tenant(), make_pool(slots=20, max_attempts=9, backoff_initial_s=0.0)
    make_bucket("small-rpm", rate=100.0, burst=100.0)
    make_bucket("large-rpm", rate=100.0, burst=100.0)
    make_bucket("database", rate=100.0, burst=100.0)
    options = [Option("small", {"small-rpm": 1.0}), Option("large", {"large-rpm": 2.0})]
    add_route("draft", options, degraded_model, actor="test")
    return tenant, pool


def asked(tenant: TenantId, count: int = 1, **fields: Any) -> list[TaskId]:
    settings = {"payload": '{"a":1}', "resources": {"database": 1.0}, "capability": "draft"} | fields
    return submit_tasks(tenant, count, **settings)


def model_of(leased: LeasedTask) -> object:
    assert leased.payload is not None
    return orjson.loads(leased.payload).get("model")


def taken() -> dict[str, float]:
    with connection.cursor() as cursor:
        cursor.execute("SELECT name, taken_total FROM resource JOIN resource_state ON resource_id = id")
        return dict(cursor.fetchall())


def open_breaker(name: str, *, for_s: int = 60) -> None:
    run_sql(
        f"UPDATE resource_state SET open_until = now() + interval '{for_s} s', opens = 1"
        f" WHERE resource_id = (SELECT id FROM resource WHERE name = '{name}')"
    )


def test_it_goes_to_the_first_model_with_what_that_needs() -> None:
    tenant, pool = draft_route()
    asked(tenant)
    worker = HandWorker({pool: 20})
    (leased,) = worker.start()
    assert model_of(leased) == "small"
    assert taken() == {"small-rpm": 1.0, "large-rpm": 0.0, "database": 1.0}
    worker.succeed([leased])
    attempt = Attempt.objects.get()
    assert (attempt.model, attempt.route_choice) == ("small", 0)


def test_while_a_provider_is_down_new_and_waiting_work_falls_back_and_then_returns() -> None:
    tenant, pool = draft_route()
    waiting = asked(tenant, 3)
    open_breaker("small-rpm")
    asked(tenant)
    assert reroute() == 3
    assert reroute() == 0
    worker = HandWorker({pool: 20})
    (leased, *rest) = worker.dispatch(starts_max=2).leased
    assert model_of(leased) == "large"
    assert taken() == {"small-rpm": 0.0, "large-rpm": 4.0, "database": 2.0}
    run_sql("UPDATE resource_state SET open_until = NULL")
    assert reroute() == 2
    more = worker.start()
    assert [model_of(each) for each in more] == ["small", "small"]
    worker.succeed([leased, *rest, *more])
    attempts = Attempt.objects.order_by("lease_id").values_list("model", "route_choice")
    assert list(attempts) == [("large", 1), ("large", 1), ("small", 0), ("small", 0)]
    assert len(waiting) == 3


def test_one_task_tries_the_model_that_may_be_back() -> None:
    tenant, pool = draft_route()
    open_breaker("small-rpm")
    asked(tenant, 5)
    open_breaker("small-rpm", for_s=-1)
    assert reroute() == 1
    assert reroute() == 0, "the one that is to try stays, and no second one joins it"
    worker = HandWorker({pool: 20})
    leased = worker.start()
    assert sorted(str(model_of(each)) for each in leased) == ["large"] * 4 + ["small"]
    worker.succeed(leased)
    with connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM resource_state WHERE open_until IS NOT NULL")
        assert cursor.fetchone() == (0,)


def test_a_deadline_that_the_cheap_model_cannot_meet_takes_the_next() -> None:
    tenant, pool = draft_route()
    run_sql("UPDATE resource SET rate = 0.01 WHERE name = 'small-rpm'")
    run_sql("UPDATE resource_state SET level = 0 FROM resource WHERE id = resource_id AND name = 'small-rpm'")
    asked(tenant, deadline_in_s=20.0)
    (leased,) = HandWorker({pool: 20}).start()
    assert model_of(leased) == "large"


def test_a_failed_attempt_is_routed_anew() -> None:
    tenant, pool = draft_route()
    asked(tenant)
    worker = HandWorker({pool: 20})
    worker.fail(worker.start(), FailureClass.OVERLOADED)
    open_breaker("small-rpm")
    run_sql("UPDATE task SET due_at = now() - interval '1 second'")
    worker.dispatch()
    assert reroute() == 1
    (leased,) = worker.start()
    assert (leased.attempt, model_of(leased)) == (2, "large")


def test_an_overloaded_pool_uses_the_model_for_that() -> None:
    tenant, pool = draft_route(degraded_model="tiny")
    PoolState.objects.create(pool_id=pool, degrades=True)
    asked(tenant)
    (leased,) = HandWorker({pool: 20}).start()
    assert (leased.degraded, model_of(leased)) == (True, "tiny")


def test_what_cannot_be_routed_says_what_to_do() -> None:
    tenant, _ = draft_route()
    with pytest.raises(Refused, match="POST /routes"):
        submit(tenant, Submission(payload="{}", pool="p", capability="sing"))
    with pytest.raises(Refused, match="JSON object"):
        submit(tenant, Submission(payload="[1]", pool="p", capability="draft"))


def test_a_route_names_limits_that_exist() -> None:
    with pytest.raises(Refused, match="no resource named 'nowhere'"):
        add_route("draft", [Option("small", {"nowhere": 1.0})], actor="test")


def test_the_same_key_with_another_capability_is_other_content() -> None:
    tenant, _ = draft_route()
    add_route("chat", [Option("small", {})], actor="test")
    asked(tenant, key="k")
    with pytest.raises(Refused, match="was used before"):
        submit_tasks(tenant, capability="chat", key="k", payload='{"a":1}', resources={"database": 1.0})
