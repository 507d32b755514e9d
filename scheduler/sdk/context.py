"""One attempt, as its executor sees it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol


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


class TaskContext:
    """One attempt at a task. Handed to executors as their first argument.

    `id` is the same over all attempts of a task, `lease_id` is new for each: pass it on where a late writer must be
    told from the current one. `timeout` is in seconds, `deadline` in Unix seconds.
    """

    __slots__ = ("_attempt",)

    def __init__(self, attempt: Attempt) -> None:
        self._attempt = attempt

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
    def missing(self) -> tuple[str, ...]:
        """The names in `upstream` that have no success to show."""
        return self._attempt.missing

    def is_cancelled(self) -> bool:
        """Whether the attempt was asked to stop; cheap enough to ask often. Async executors are cancelled besides."""
        return self._attempt.is_cancelled()

    def heartbeat(self) -> bool:
        """Say that the work goes on; whether it should. Leases are renewed without this, from a thread of their own."""
        return not self._attempt.is_cancelled()
