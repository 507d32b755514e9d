"""One attempt in this process: runs the handler under its timeout and turns whatever happens into a report.

Never decides what becomes of the task; every path through here ends in exactly one report, or in none when the lease
was lost to somebody else.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass
from enum import Enum, auto
from typing import Any, Final, Protocol, TypeVar

import orjson

from scheduler.engine.executors.base import (
    AttemptContext,
    AttemptFailed,
    ExecutionResult,
    HandBack,
    Permanent,
    ProviderBilling,
    Retryable,
)
from scheduler.engine.steps import Desk, StepReceipt, StepSide
from scheduler.policy.payload import fault_in_json
from scheduler.policy.retry import Failure
from scheduler.policy.states import TaskState
from scheduler.policy.trace import trace_of
from scheduler.policy.types import FailureClass, LeasedTask, LeaseId, Outcome
from scheduler.providers.usage import Usage
from scheduler.services.settle import Report

logger = logging.getLogger(__name__)
T = TypeVar("T")

RESULT_BYTES_MAX: Final = 1_048_576
MESSAGE_CHARS_MAX: Final = 500
RENEW_FRACTION: Final = 1.0 / 3.0
"""A lease is renewed when this part of its time is over."""
FENCE_MARGIN_S: Final = 0.2
"""An attempt is stopped this long before its lease may end, so that the stop comes first."""


class Executor(Protocol):
    """What runs the attempts of one pool."""

    async def run(self, ctx: AttemptContext, payload: object) -> ExecutionResult:
        """Make the attempt."""

    async def aclose(self) -> None:
        """Give up what it holds."""


class Stop(Enum):
    """Why an attempt is being stopped from outside."""

    CANCELLED = auto()
    """Its task was cancelled."""
    SHUTDOWN = auto()
    """This process ends: hand the task back, unspent."""
    FENCED = auto()
    """The lease is not ours any more: say nothing."""


@dataclass(frozen=True, slots=True)
class Names:
    """What a handler is told about where its task belongs."""

    pool: str
    tenant: str
    quota: tuple[str, ...] = ()


class Context:
    """The attempt as its handler sees it."""

    __slots__ = (
        "_running",
        "_side",
        "attempt",
        "deadline",
        "degraded",
        "key",
        "kind",
        "lease_id",
        "max_output_tokens",
        "pool",
        "run",
        "tags",
        "task_id",
        "tenant",
        "timeout_s",
        "upstream",
    )

    def __init__(self, leased: LeasedTask, names: Names, running: Running) -> None:
        self.task_id: int = leased.task
        self.lease_id: int = leased.lease
        self.attempt = leased.attempt
        self.kind = leased.kind
        self.key = leased.key
        self.pool = names.pool
        self.tenant = names.tenant
        self.timeout_s = leased.timeout_s
        self.deadline = leased.deadline_at
        self.degraded = leased.degraded
        self.tags: dict[str, str] = orjson.loads(leased.tags) if leased.tags else {}
        self.max_output_tokens = leased.max_output_tokens
        self.upstream: dict[str, Any] = orjson.loads(leased.upstream) if leased.upstream else {}
        self.run: int | None = leased.run
        self._running = running
        self._side = StepSide(leased, running.desk)

    @property
    def trace(self) -> str | None:
        """The W3C `traceparent` that the task was submitted with."""
        return trace_of(self.tags)

    @property
    def checkpoint(self) -> Any:
        """Where the run was left; None at its beginning, and outside a run."""
        return self._side.checkpoint

    async def save_checkpoint(self, value: Any) -> int:
        """See `AttemptContext`."""
        return await self._side.save_checkpoint(value)

    async def charge(self, usage: Mapping[str, Any], call: str) -> bool:
        """See `AttemptContext`."""
        return await self._side.charge(usage, call)

    def receipt(self, step: str) -> StepReceipt:
        """See `AttemptContext`."""
        return self._side.receipt(step)

    def wait(self, doing: Coroutine[Any, Any, T]) -> T:
        """See `AttemptContext`."""
        return self._side.wait(doing)

    @property
    def missing(self) -> tuple[str, ...]:
        """The names in `upstream` that have no success to show."""
        return tuple(name for name, parent in self.upstream.items() if parent["state"] != TaskState.SUCCEEDED)

    def bill(self, usage_so_far: Callable[[], Usage | None]) -> None:
        """See `AttemptContext`."""
        self._running.usage_so_far = usage_so_far

    def is_cancelled(self) -> bool:
        """Whether the attempt was told to stop, whatever for."""
        return self._running.stop is not None


class Running:
    """An attempt whose lease this process holds: about to run, running, or ended and not yet reported.

    `valid_until` is the monotonic time after which its lease may be somebody else's.
    """

    __slots__ = ("desk", "executor", "leased", "names", "stop", "task", "ttl_s", "usage_so_far", "valid_until")

    def __init__(self, leased: LeasedTask, names: Names, executor: Executor, *, ttl_s: float, desk: Desk) -> None:
        self.desk = desk
        self.leased = leased
        self.names = names
        self.executor = executor
        self.ttl_s = ttl_s
        self.valid_until = time.monotonic() + ttl_s
        self.stop: Stop | None = None
        self.task: asyncio.Task[None] | None = None
        self.usage_so_far: Callable[[], Usage | None] | None = None

    @property
    def lease(self) -> LeaseId:
        """The fence."""
        return self.leased.lease

    def renewal_due(self, now: float) -> bool:
        """Whether a third of the lease's time has passed since it was known to be ours."""
        return now >= self.valid_until - self.ttl_s * (1.0 - RENEW_FRACTION)

    def may_be_lost(self, now: float) -> bool:
        """Whether the lease may end before it can be renewed: the handler has to stop before another one starts."""
        return now > self.valid_until - FENCE_MARGIN_S

    def halt(self, why: Stop) -> None:
        """Stop the handler. The first reason stands, except that a lost lease silences any other."""
        if self.stop is None or why is Stop.FENCED:
            self.stop = why
            if self.task is not None:
                self.task.cancel()

    async def run(self) -> Report | None:
        """Make the attempt and report it; None when the lease was lost meanwhile. Never raises, whatever happens."""
        # Told to stop before the loop came round to it: the handler is not called at all.
        report = await self._attempt() if self.stop is None else self._stopped()
        return None if self.stop is Stop.FENCED else report

    async def _attempt(self) -> Report:
        leased = self.leased
        limit: asyncio.Timeout | None = None
        context = Context(leased, self.names, self)
        try:
            payload: Any = orjson.loads(leased.payload or "null")
            if leased.timeout_s is None:
                result = await self.executor.run(context, payload)
            else:
                async with asyncio.timeout(leased.timeout_s) as limit:
                    result = await self.executor.run(context, payload)
            return self._success(result)
        except asyncio.CancelledError:
            if self.stop is None and not self._is_being_cancelled():
                # It came from inside, from something the handler waited for: a failure like any other.
                return self._failed(
                    Failure(FailureClass.ERROR, "CancelledError: something it waited for was cancelled")
                )
            return self._stopped(began=True)
        except TimeoutError:
            if limit is not None and limit.expired():
                failure = Failure(FailureClass.TIMEOUT, f"no result within {leased.timeout_s:g} s")
                return Report(self.lease, Outcome.TIMED_OUT, failure, usage=self._cost(), quota=self.names.quota)
            return self._failed(Failure(FailureClass.TIMEOUT, "the handler's own time limit passed"))
        except HandBack as back:
            return Report(self.lease, Outcome.RELEASED, Failure(FailureClass.ERROR, back.message, back.retry_after))
        except AttemptFailed as error:
            return self._failed(_failure(error), error)
        except (Exception, SystemExit) as error:  # noqa: BLE001 - a handler may raise anything; the next attempt may not
            message = _said(error)
            logger.info("task %s attempt %s failed: %s", leased.task, leased.attempt, message)
            return self._failed(Failure(FailureClass.ERROR, message))

    def _is_being_cancelled(self) -> bool:
        return self.task is not None and self.task.cancelling() > 0

    def _success(self, result: ExecutionResult) -> Report:
        fault = fault_in_json(result.value)
        if fault is not None:
            where = ".".join(str(part) for part in fault.loc) or "the result"
            return self._failed(Failure(FailureClass.PERMANENT, f"The result cannot be stored: {where}: {fault.msg}"))
        text = orjson.dumps(result.value)
        if len(text) > RESULT_BYTES_MAX:
            said = f"The result has {len(text)} bytes; at most {RESULT_BYTES_MAX} can be stored."
            return self._failed(Failure(FailureClass.PERMANENT, said))
        return Report(
            self.lease,
            Outcome.SUCCEEDED,
            result=text.decode(),
            usage=_as_text(result.usage),
            actual=result.actual or {},
            left=result.left or {},
            quota=result.quota or self.names.quota,
        )

    def _failed(self, failure: Failure, error: AttemptFailed | None = None) -> Report:
        if error is None:
            return Report(self.lease, Outcome.FAILED, failure, usage=self._cost(), quota=self.names.quota)
        return Report(
            self.lease,
            Outcome.FAILED,
            failure,
            usage=_as_text(error.usage),
            actual=error.actual or {},
            quota=error.quota or self.names.quota,
        )

    def _stopped(self, *, began: bool = False) -> Report:
        """`began`: the handler was under way, and may have cost something that nobody will report."""
        outcome = Outcome.CANCELLED if self.stop is Stop.CANCELLED else Outcome.RELEASED
        cost = self._cost()
        # Who can tell its cost and has none has sent nothing yet.
        began = began and (self.usage_so_far is None or cost is not None)
        return Report(self.lease, outcome, usage=cost, began=began)

    def _cost(self) -> str | None:
        """What the attempt has cost until it was stopped: a call that was sent is billed, whoever gave up on it."""
        return None if self.usage_so_far is None else _as_text(self.usage_so_far())


def _failure(error: AttemptFailed) -> Failure:
    message = error.message[:MESSAGE_CHARS_MAX]
    if isinstance(error, Permanent):
        return Failure(FailureClass.PERMANENT, message)
    if isinstance(error, ProviderBilling):
        return Failure(FailureClass.PROVIDER_BILLING, message)
    if isinstance(error, Retryable):
        return Failure(error.failure_class, message, error.retry_after)
    return Failure(FailureClass.ERROR, message)


def _said(error: BaseException) -> str:
    """What an exception says; that of a handler may not even be able to say it."""
    name = type(error).__name__
    try:
        return f"{name}: {error}"[:MESSAGE_CHARS_MAX]
    except Exception:  # noqa: BLE001 - see above
        return f"{name}, which cannot be shown as text"


def _as_text(usage: Usage | None) -> str | None:
    return None if usage is None else orjson.dumps(usage.as_json()).decode()
