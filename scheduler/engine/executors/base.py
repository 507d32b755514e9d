"""What the engine and an executor of attempts say to each other.

Decides the shape of an attempt as its handler sees it, of its result, and of the exceptions that end it in another way
than success. It must never decide what becomes of the task: the exceptions name what happened, the policy of retries
and settlement does the rest.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from scheduler.policy.settlement import Left
from scheduler.policy.types import FailureClass
from scheduler.providers.usage import Usage

if TYPE_CHECKING:
    from scheduler.engine.steps import StepReceipt

T = TypeVar("T")


class AttemptContext(Protocol):
    """One attempt, as its handler sees it."""

    @property
    def task_id(self) -> int:
        """The task, the same over all its attempts."""

    @property
    def lease_id(self) -> int:
        """The fence: reports under an older one change nothing."""

    @property
    def attempt(self) -> int:
        """Which attempt this is, from 1."""

    @property
    def kind(self) -> str:
        """What sort of work, as its submitter named it."""

    @property
    def key(self) -> str | None:
        """The submitter's own name for the task."""

    @property
    def pool(self) -> str:
        """The pool's name."""

    @property
    def tenant(self) -> str:
        """The tenant's slug."""

    @property
    def timeout_s(self) -> float | None:
        """The longest this attempt may take, in seconds."""

    @property
    def deadline(self) -> float | None:
        """When the submitter wants it done, in seconds since the epoch."""

    @property
    def degraded(self) -> bool:
        """Whether to answer only, without tools, because the pool is overloaded."""

    @property
    def max_output_tokens(self) -> int | None:
        """The most that a model may write in this attempt, because a budget pays for no more; None: no such limit."""

    @property
    def upstream(self) -> Mapping[str, Mapping[str, object]]:
        """What became of the tasks that this one came after, by key: `{"state": …, "result": …}`.

        A result that is too large has `"truncated": {"bytes": …}` beside a null result.
        """

    @property
    def trace(self) -> str | None:
        """The W3C `traceparent` that the task was submitted with; None without one."""

    @property
    def missing(self) -> tuple[str, ...]:
        """The names in `upstream` that have no success to show."""

    def bill(self, usage_so_far: Callable[[], Usage | None]) -> None:
        """Say how to find out what the attempt has cost, should it be stopped before it can tell by itself."""

    def is_cancelled(self) -> bool:
        """Whether somebody asked for the attempt to stop; cheap enough to ask often."""


class StepContext(AttemptContext, Protocol):
    """What handlers of the `python` executor are given besides: what a step of a run can do for it."""

    @property
    def run(self) -> int | None:
        """The run that this is a step of."""

    @property
    def checkpoint(self) -> Any:
        """Where the run was left; None at its beginning, and outside a run."""

    async def save_checkpoint(self, value: Any) -> int:
        """Write where the run can be taken up (JSON, at most 1 MiB), under this attempt's lease; the new version."""

    def receipt(self, step: str) -> StepReceipt:
        """An effect on the world outside, by its name in the run: `claim` before making it, `commit` after."""

    async def charge(self, usage: Mapping[str, Any], call: str) -> bool:
        """Put down what a call has used, to be billed however the attempt ends; False: one of that name was before."""

    def wait(self, doing: Coroutine[Any, Any, T]) -> T:
        """For plain functions, which cannot await: `ctx.wait(ctx.save_checkpoint(value))`."""


@dataclass(frozen=True, slots=True)
class ExecutionResult:
    """A success. `value` is JSON; `actual` corrects the amounts of resources that were estimated at dispatch.

    `left` is what the provider said is left of limits that run low, by name; it may lower a level, never raise one.
    `quota` names the limits that stand for the provider's account; empty: those of the pool.
    """

    value: object
    usage: Usage | None = None
    actual: Mapping[str, float] | None = None
    left: Mapping[str, Left] | None = None
    quota: tuple[str, ...] = ()


class AttemptFailed(Exception):
    """The attempt was made and did not succeed. `usage` is what it cost all the same, as far as that is known.

    `actual` and `quota` are as in `ExecutionResult`.
    """

    actual: Mapping[str, float] | None = None
    quota: tuple[str, ...] = ()

    def __init__(self, message: str, *, usage: Usage | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.usage = usage


class Retryable(AttemptFailed):
    """Another attempt may succeed, not before `retry_after` seconds from now where that is given."""

    def __init__(
        self,
        message: str,
        retry_after: float | None = None,
        failure_class: FailureClass | str = FailureClass.ERROR,
        *,
        usage: Usage | None = None,
    ) -> None:
        super().__init__(message, usage=usage)
        self.retry_after = retry_after
        self.failure_class = FailureClass(failure_class)


class Permanent(AttemptFailed):
    """The same request will fail again: no further attempt."""


class ProviderBilling(AttemptFailed):
    """The provider's account is out of money: nothing on it will succeed until a person acts."""


class HandBack(Exception):
    """The attempt was not made: the task goes back, unspent, and does not start before `retry_after` seconds."""

    def __init__(self, message: str, retry_after: float) -> None:
        super().__init__(message)
        self.message = message
        self.retry_after = retry_after
