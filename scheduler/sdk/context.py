"""One attempt, as its executor sees it."""

from __future__ import annotations

import itertools
from collections.abc import Coroutine, Mapping
from typing import Any, Protocol, TypeVar, cast

from scheduler.sdk.errors import Permanent

T = TypeVar("T")


class Attempt(Protocol):
    """What the embedded engine and a remote worker know about an attempt; `TaskContext` shows it to executors."""

    task_id: int
    lease_id: int
    attempt: int
    kind: str
    key: str | None
    pool: str
    tenant: str
    timeout_s: float | None
    deadline: float | None
    degraded: bool
    upstream: dict[str, Any]

    @property
    def missing(self) -> tuple[str, ...]:
        """The names in `upstream` that have no success to show."""

    @property
    def tags(self) -> Mapping[str, str]:
        """What the submitter tagged the task with."""

    def is_cancelled(self) -> bool:
        """Whether somebody asked for the attempt to stop."""


class Receipt(Protocol):
    """An effect on the world outside, by its name in a run: `claim` it, make it with `key`, `commit` what came of it.

    `value` is the receipt, once there is one; `is_done` says that the effect was made, by whichever attempt.
    """

    step: str
    key: str
    value: Any

    @property
    def is_done(self) -> bool:
        """Whether the effect has been made."""

    async def claim(self, fingerprint: str) -> str:
        """Ask to make it: `new`, `done`, `in_progress`, or `unknown` when whoever claimed it died over it."""

    async def commit(self, receipt: Any) -> Any:
        """Put down what came of it (JSON); the receipt that stands, which is the first one."""

    async def abandon(self) -> None:
        """Give the claim up, the effect not made."""


class Step(Attempt, Protocol):
    """An attempt whose worker can write for the run that it is a step of."""

    def receipt(self, step: str) -> Receipt:
        """An effect of the run."""

    async def save_checkpoint(self, value: Any) -> int:
        """Write where the run can be taken up."""

    async def charge(self, usage: Mapping[str, Any], call: str) -> bool:
        """Charge a call; False when one of that name was charged before."""

    def wait(self, doing: Coroutine[Any, Any, T]) -> T:
        """Let it be done, and return what comes of it."""


class TaskContext:
    """One attempt at a task. Handed to executors as their first argument.

    `id` is the same over all attempts of a task, `lease_id` is new for each: pass it on where a late writer must be
    told from the current one. `timeout` is in seconds, `deadline` in Unix seconds.
    """

    __slots__ = ("_attempt", "_charges")

    def __init__(self, attempt: Attempt) -> None:
        self._attempt = attempt
        self._charges = itertools.count(1)

    def __repr__(self) -> str:
        """Which attempt at what."""
        return f"<TaskContext task {self.id} attempt {self.attempt} pool {self.pool!r}>"

    @property
    def id(self) -> int:
        """The task."""
        return self._attempt.task_id

    @property
    def lease_id(self) -> int:
        """The fence of this attempt."""
        return self._attempt.lease_id

    @property
    def attempt(self) -> int:
        """Which attempt this is, from 1."""
        return self._attempt.attempt

    @property
    def kind(self) -> str:
        """What sort of work, as its submitter named it."""
        return self._attempt.kind

    @property
    def key(self) -> str | None:
        """The submitter's own name for the task."""
        return self._attempt.key

    @property
    def pool(self) -> str:
        """The pool's name."""
        return self._attempt.pool

    @property
    def tenant(self) -> str:
        """Whose work it is."""
        return self._attempt.tenant

    @property
    def tags(self) -> Mapping[str, str]:
        """What the submitter tagged the task with."""
        return self._attempt.tags

    @property
    def timeout(self) -> float | None:
        """The longest this attempt may take."""
        return self._attempt.timeout_s

    @property
    def deadline(self) -> float | None:
        """When the submitter wants it done."""
        return self._attempt.deadline

    @property
    def degraded(self) -> bool:
        """Whether to answer only, without tools, because the pool is overloaded."""
        return self._attempt.degraded

    @property
    def upstream(self) -> dict[str, Any]:
        """What became of the tasks that this one came after, by key: `{"state": …, "result": …}`."""
        return self._attempt.upstream

    @property
    def trace(self) -> str | None:
        """The W3C `traceparent` that the task was submitted with, to go on with; None without one."""
        found: str | None = getattr(self._attempt, "trace", None)
        return found

    @property
    def missing(self) -> tuple[str, ...]:
        """The names in `upstream` that have no success to show."""
        return self._attempt.missing

    def is_cancelled(self) -> bool:
        """Whether the attempt was asked to stop; cheap enough to ask often. Async executors are cancelled besides."""
        return self._attempt.is_cancelled()

    def heartbeat(self) -> bool:
        """Say that the work goes on; whether it should. Leases are renewed without this, from a thread of their own."""
        return not self._attempt.is_cancelled()

    @property
    def run(self) -> int | None:
        """The agent run that this is a step of; submit further steps with `run=ctx.run`."""
        found: int | None = getattr(self._attempt, "run", None)
        return found

    @property
    def checkpoint(self) -> Any:
        """Where the run was left; None at its beginning, and outside a run."""
        return getattr(self._attempt, "checkpoint", None)

    async def save_checkpoint(self, value: Any) -> int:
        """Write where the run can be taken up (JSON, at most 1 MiB); the next attempt of its steps is handed it.

        Returns the version. Raises WriteRefused, with `code` `not_a_step` outside a run.
        """
        return await self._step().save_checkpoint(value)

    async def charge(self, usage: Mapping[str, Any], *, call: str | None = None) -> bool:
        """Put down what a call of this attempt has used, so that it is billed however the attempt ends.

        `usage` is `{"model": …, "input_uncached": n, "output_visible": n, …}`, or `{"cost_usd": "0.02"}` where the
        cost is known. `call` names it within the attempt and is made up if left out; the same name again is not charged
        (False). Raises WriteRefused.
        """
        return await self._step().charge(usage, call or str(next(self._charges)))

    def receipt(self, step: str) -> Receipt:
        """An effect on the world outside that the run makes once, however often its step is tried."""
        return self._step().receipt(step)

    @property
    def max_output_tokens(self) -> int | None:
        """The most that a model may write in this attempt, because a budget pays for no more; None: no such limit."""
        found: int | None = getattr(self._attempt, "max_output_tokens", None)
        return found

    def wait(self, doing: Coroutine[Any, Any, T]) -> T:
        """For executors that are plain functions and cannot await: `ctx.wait(ctx.save_checkpoint(value))`."""
        return self._step().wait(doing)

    def _step(self) -> Step:
        if not hasattr(self._attempt, "receipt"):
            raise Permanent("This worker cannot write for a run; use the API of runs.")
        return cast("Step", self._attempt)
