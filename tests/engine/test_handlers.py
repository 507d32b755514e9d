"""What handlers return and raise, and what becomes of their tasks."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from typing import Any

import pytest

from scheduler.engine.executors.base import HandBack, Permanent, ProviderBilling, Retryable
from scheduler.models import Task
from scheduler.policy.admission import RetrySettings
from scheduler.policy.types import TaskId, TenantId
from tests.engine.running import attempts_of, engine, outcomes_of, result_of, wait_for_state
from tests.support.waiting import wait_until
from tests.support.work import make_pool, make_tenant, submit_tasks

AT_ONCE = RetrySettings(initial_backoff_s=0.0)
ONCE = RetrySettings(max_attempts=1)

pytestmark = pytest.mark.usefixtures("live_database")


@pytest.fixture
def tenant(live_database: object) -> TenantId:  # the rows are committed
    """A tenant and its pool `p`."""
    make_pool()
    return make_tenant()


def submit(tenant: TenantId, **fields: Any) -> TaskId:
    """One task."""
    return submit_tasks(tenant, **({"retry": AT_ONCE} | fields))[0]


def test_an_async_handler_gets_payload_and_context_and_its_result_is_kept(tenant: TenantId) -> None:
    seen: list[tuple[Any, ...]] = []

    async def handler(ctx: Any, payload: Any) -> object:
        seen.append((ctx.pool, ctx.tenant, ctx.kind, ctx.key, ctx.attempt, ctx.timeout_s, ctx.is_cancelled()))
        await asyncio.sleep(0)
        return {"twice": payload["n"] * 2}

    with engine({"p": handler}):
        task = submit(tenant, payload='{"n": 21}', kind="sum", key="k", timeout_s=30.0)
        wait_for_state(task, "succeeded")
    assert result_of(task) == {"twice": 42}
    assert seen == [("p", "acme", "sum", "k", 1, 30.0, False)]
    assert outcomes_of(task) == [(1, "succeeded")]


def test_a_plain_handler_runs_in_a_thread_of_its_own(tenant: TenantId) -> None:
    names: set[str] = set()
    together = threading.Barrier(3, timeout=10)

    def handler(_ctx: object, payload: object) -> object:
        names.add(threading.current_thread().name)
        together.wait()
        return payload

    with engine({"p": handler}):
        tasks = submit_tasks(tenant, 3, payload="[1]")
        for task in tasks:
            wait_for_state(task, "succeeded")
    assert len(names) == 3
    assert result_of(tasks[0]) == [1]


def test_an_object_whose_call_is_async_is_awaited(tenant: TenantId) -> None:
    class Handler:
        async def __call__(self, _ctx: object, payload: object) -> object:
            await asyncio.sleep(0)
            return payload

    with engine({"p": Handler()}):
        task = submit(tenant, payload='"awaited"')
        wait_for_state(task, "succeeded")
    assert result_of(task) == "awaited"


def test_plain_functions_that_never_end_keep_nobody_from_working(tenant: TenantId) -> None:
    make_pool("two", slots=2)
    go_on = threading.Event()

    def handler(_ctx: object, payload: Any) -> object:
        if payload == "stuck":
            go_on.wait(60)
        return payload

    with engine({"two": handler}):
        stuck = submit_tasks(tenant, 4, pool="two", payload='"stuck"', timeout_s=0.1, retry=ONCE)
        for task in stuck:
            wait_for_state(task, "dead_lettered")
        after = submit(tenant, pool="two", payload='"fine"')
        wait_for_state(after, "succeeded")
    go_on.set()
    assert [outcomes_of(task) for task in stuck] == [[(1, "timed_out")]] * 4


@pytest.mark.parametrize("error", [StopIteration("end"), KeyboardInterrupt()], ids=["stop-iteration", "interrupt"])
def test_what_means_something_to_the_loop_is_a_failure_of_the_attempt_only(
    tenant: TenantId, error: BaseException
) -> None:
    def handler(ctx: Any, _payload: object) -> object:
        if ctx.attempt == 1:
            raise error
        return None

    with engine({"p": handler}):
        task = submit(tenant)
        wait_for_state(task, "succeeded")
    assert outcomes_of(task) == [(1, "failed"), (2, "succeeded")]


def failing(*errors: BaseException | None) -> Callable[[Any, Any], Any]:
    """A handler whose nth attempt raises the nth error; None, and what follows the last, succeeds."""

    async def handler(ctx: Any, _payload: object) -> object:
        error = errors[ctx.attempt - 1] if ctx.attempt <= len(errors) else None
        if error is not None:
            raise error
        return "in the end"

    return handler


class Unspeakable(Exception):
    """An error that cannot even be shown."""

    def __str__(self) -> str:
        raise RuntimeError("no words")


@pytest.mark.parametrize(
    ("error", "failure_class", "message"),
    [
        (Retryable("try again"), "error", "try again"),
        (Retryable("full", 0.01, "throttled"), "throttled", "full"),
        (ValueError("odd"), "error", "ValueError: odd"),
        (SystemExit(3), "error", "SystemExit: 3"),
        (asyncio.CancelledError(), "error", "CancelledError: something it waited for was cancelled"),
        (TimeoutError("inner"), "timeout", "the handler's own time limit passed"),
        (Unspeakable(), "error", "Unspeakable, which cannot be shown as text"),
        (ValueError("nul \x00 and half \ud800"), "error", "ValueError: nul \N{REPLACEMENT CHARACTER} and half ?"),
    ],
    ids=["retryable", "throttled", "any", "exit", "cancelled-inside", "own-timeout", "unspeakable", "unstorable"],
)
def test_what_may_pass_is_tried_again(tenant: TenantId, error: BaseException, failure_class: str, message: str) -> None:
    with engine({"p": failing(error)}):
        task = submit(tenant)
        wait_for_state(task, "succeeded")
    assert attempts_of(task) == [(1, "failed", failure_class, message), (2, "succeeded", None, None)]


def test_a_plain_handler_that_exits_fails_its_attempt_and_nothing_else(tenant: TenantId) -> None:
    def handler(ctx: Any, _payload: object) -> object:
        if ctx.attempt == 1:
            raise SystemExit("enough")
        return None

    with engine({"p": handler}):
        task = submit(tenant)
        wait_for_state(task, "succeeded")
    assert outcomes_of(task) == [(1, "failed"), (2, "succeeded")]


def test_attempts_are_spent_and_then_the_task_is_a_dead_letter(tenant: TenantId) -> None:
    with engine({"p": failing(*[Retryable("no")] * 5)}):
        task = submit(tenant, retry=RetrySettings(max_attempts=3, initial_backoff_s=0.01))
        wait_for_state(task, "dead_lettered")
    assert outcomes_of(task) == [(1, "failed"), (2, "failed"), (3, "failed")]


@pytest.mark.parametrize(
    ("error", "state", "failure_class"),
    [
        (Permanent("never"), "failed", "permanent"),
        (ProviderBilling("no money"), "dead_lettered", "provider_billing"),
        (Retryable("in two hours", 7_200.0), "dead_lettered", "error"),
    ],
    ids=["permanent", "billing", "too-far"],
)
def test_what_does_not_pass_ends_the_task_at_once(
    tenant: TenantId, error: BaseException, state: str, failure_class: str
) -> None:
    with engine({"p": failing(error)}):
        task = submit(tenant)
        wait_for_state(task, state)
    assert [(number, found) for number, _, found, _ in attempts_of(task)] == [(1, failure_class)]


def test_handing_back_spends_no_attempt(tenant: TenantId) -> None:
    times: list[int] = []

    async def handler(ctx: Any, _payload: object) -> object:
        times.append(ctx.attempt)
        if len(times) < 4:
            raise HandBack("not now", 0.01)
        return None

    with engine({"p": handler}):
        task = submit(tenant, retry=ONCE)
        wait_for_state(task, "succeeded")
    assert times == [1, 1, 1, 1]
    assert outcomes_of(task) == [(1, "released")] * 3 + [(1, "succeeded")]


def test_an_attempt_that_takes_too_long_is_stopped_and_tried_again(tenant: TenantId) -> None:
    stopped = threading.Event()

    async def handler(ctx: Any, _payload: object) -> object:
        if ctx.attempt == 1:
            try:
                await asyncio.Event().wait()
            finally:
                stopped.set()
        return None

    with engine({"p": handler}):
        task = submit(tenant, timeout_s=0.1)
        wait_for_state(task, "succeeded")
    assert stopped.is_set()
    assert attempts_of(task)[0] == (1, "timed_out", "timeout", "no result within 0.1 s")


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (object(), "object is not a JSON type"),
        ({"a": [1.0, float("nan")]}, "a.1: NaN and infinity are not JSON"),
        ("nul \x00", "NUL character"),
        ("x" * 1_048_577, "The result has 1048579 bytes; at most 1048576"),
        ("ü" * 600_000, "The result has 1200002 bytes; at most 1048576"),
    ],
    ids=["not-json", "nan", "nul", "too-large", "too-many-bytes"],
)
def test_a_result_that_cannot_be_kept_is_a_permanent_failure(tenant: TenantId, value: object, said: str) -> None:
    async def handler(_ctx: object, _payload: object) -> object:
        return value

    with engine({"p": handler}):
        task = submit(tenant)
        wait_for_state(task, "failed")
    [(_, outcome, failure_class, message)] = attempts_of(task)
    assert (outcome, failure_class) == ("failed", "permanent")
    assert said in str(message)


def test_a_report_that_the_database_refuses_holds_up_no_other(tenant: TenantId) -> None:
    release = threading.Event()

    def handler(_ctx: object, payload: Any) -> object:
        release.wait(10)
        if payload == "odd":
            raise HandBack("back at a time that is none", float("nan"))
        return payload

    with engine({"p": handler}):
        before, odd, after = (submit(tenant, payload=text) for text in ('"a"', '"odd"', '"b"'))
        wait_until(lambda: Task.objects.filter(state="running").count() == 3)
        release.set()
        wait_for_state(odd, "failed")
        wait_for_state(before, "succeeded")
        wait_for_state(after, "succeeded")
    assert attempts_of(odd) == [(1, "failed", "permanent", "What the attempt came to cannot be stored: DataError.")]


def test_a_handler_that_blocks_the_loop_loses_no_lease(tenant: TenantId) -> None:
    """Neither its own, nor those of tasks that ended, or were given to this engine, while the loop stood still."""
    make_pool("short", lease_ttl_s=1.0)
    blocking = threading.Event()

    async def handler(_ctx: object, payload: Any) -> object:
        if payload == "blocks":
            blocking.set()
            threading.Event().wait(2.5)  # what an async handler should not do, and some do
        return payload

    with engine({"short": handler}):
        first = submit(tenant, pool="short", payload='"blocks"')
        assert blocking.wait(10)
        others = submit_tasks(tenant, 3, pool="short", payload='"quick"')
        for task in (first, *others):
            wait_for_state(task, "succeeded")
    assert [outcomes_of(task) for task in (first, *others)] == [[(1, "succeeded")]] * 4


def test_a_short_lease_on_an_idle_engine_is_renewed_in_time(tenant: TenantId) -> None:
    make_pool("short", lease_ttl_s=1.0)

    async def handler(_ctx: object, _payload: object) -> object:
        await asyncio.sleep(2.2)  # more than two leases long
        return None

    with engine({"short": handler}):
        task = submit(tenant, pool="short")
        wait_for_state(task, "succeeded")
    assert outcomes_of(task) == [(1, "succeeded")]
