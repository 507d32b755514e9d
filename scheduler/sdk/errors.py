"""What goes wrong, for users of the SDK. Nothing here knows how work is stored or sent."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

PASSING: Final = frozenset({"stale_lease", "run_killed", "version_conflict", "overloaded", "database_unavailable"})
"""Why something was not written now, though another attempt may write it."""


class SchedulerError(Exception):
    """The scheduler cannot do this; the message says what to change. Base of the errors below."""


class SubmitError(SchedulerError):
    """A task was not taken.

    `code` is stable: `unknown_pool`, `unknown_resource`, `resource_exceeds_capacity`, `reservation_conflict`, `cycle`,
    `unknown_dependency`, `overloaded`, `key_reused`, `bad_payload`, `invalid` and others. `retry_after` is when to try
    again, in seconds, where waiting helps.
    """

    def __init__(self, message: str, code: str = "invalid", *, retry_after: float | None = None) -> None:
        super().__init__(message)
        self.code = code
        self.retry_after = retry_after


class TaskFailed(SchedulerError):
    """A task that was awaited did not succeed.

    `status` is how it ended: `failed`, `dead_lettered`, `cancelled`, `skipped`, `missed` or `shed`; `message` is what
    its last attempt said, as far as there was one.
    """

    def __init__(self, status: str, message: str = "", *, task: int | None = None) -> None:
        named = "the task" if task is None else f"task {task}"
        super().__init__(f"{named} {status}" + (f": {message}" if message else ""))
        self.status = status
        self.message = message
        self.task = task


class EventsLagged(SchedulerError):
    """A reader of events fell behind and `missed` of them are lost to it. Reading goes on with the next."""

    def __init__(self, missed: int) -> None:
        super().__init__(f"{missed} events were missed; read faster, or allow for more with event_capacity")
        self.missed = missed


class Retryable(Exception):
    """Raised by an executor: another attempt may succeed, not before `retry_after` seconds where that is given."""

    def __init__(self, message: str = "", retry_after: float | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.retry_after = retry_after


class Permanent(Exception):
    """Raised by an executor: the same request would fail again, so there is no further attempt."""

    def __init__(self, message: str = "") -> None:
        super().__init__(message)
        self.message = message


class Reject(Exception):
    """Raised by a remote worker's handler: not for this worker now; the task goes back without having counted."""

    def __init__(self, message: str = "", retry_after: float | None = None) -> None:
        super().__init__(message)
        self.retry_after = retry_after


class CancelTask(Exception):
    """Raised by a remote worker's handler: the task is to end as cancelled."""


class WriteRefused(SchedulerError):
    """What an attempt wanted kept (a checkpoint, a receipt, a charge) was not written.

    `code` is stable: `stale_lease` (the attempt is not its worker's any more: stop), `run_killed`, `not_a_step`,
    `fingerprint_differs`, `bad_usage` and others. Where a handler lets it through, the attempt fails; for good, unless
    another attempt may write.
    """

    def __init__(self, message: str, code: str) -> None:
        super().__init__(message)
        self.code = code

    @property
    def permanent(self) -> bool:
        """Whether the same would be refused again."""
        return self.code not in PASSING


class WorkerRefused(SchedulerError):
    """The server will not have this worker as it is; `code` is the socket's close code."""

    def __init__(self, message: str, code: int) -> None:
        super().__init__(message)
        self.code = code


class ApiError(SchedulerError):
    """A server refused, or could not be reached.

    `code` is stable (`unknown_task`, `overloaded`, `unreachable`, …), `status` the HTTP status, 0 without an answer.
    `retryable`: the same call may succeed later, after `retry_after` seconds where that is known. `errors` name the
    fields at fault: `{"loc": […], "msg": …}`.
    """

    def __init__(
        self,
        status: int,
        code: str,
        detail: str,
        *,
        retryable: bool,
        errors: Sequence[Mapping[str, Any]] = (),
        retry_after: float | None = None,
    ) -> None:
        super().__init__(detail)
        self.status = status
        self.code = code
        self.detail = detail
        self.retryable = retryable
        self.errors = tuple(errors)
        self.retry_after = retry_after
