"""The client of a server for programs with threads. `async_client` has the same methods for those with a loop.

It repeats what is safe to repeat, with jittered pauses and no sooner than the server says, within `timeout` seconds.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from types import TracebackType
from typing import Any, Literal, Self, TypeVar, Unpack

import httpx2

from scheduler.sdk.declarations import Task, TaskFields
from scheduler.sdk.remote import bulk, calls, runs
from scheduler.sdk.remote.answers import Accepted, Cancelled, Operation, Preview, Run, Snapshot, TaskInfo, Why
from scheduler.sdk.remote.calls import Call, Json
from scheduler.sdk.remote.connection import (
    NOT_SENT,
    POLL_S,
    WATCH_S,
    Join,
    OperationKind,
    Settings,
    reply_of,
    result_of,
    said,
)

T = TypeVar("T")


class Client:
    """A server's client; a context manager, safe from any thread.

        with Client("https://cronoq.example", token="cq_…") as client:
            task = client.submit({"prompt": "Say hello."}, pool="llm", priority="high")
            print(client.result(task.id, timeout=60))

    Args:
        url: where the server is; `CRONOQ_URL` by default.
        token: a token with the scopes for what is asked; `CRONOQ_TOKEN` by default.
        timeout: seconds that a call may take with all its repetitions.

    Every method raises ApiError, with a stable `code` and whether it is `retryable`.
    """

    def __init__(self, url: str | None = None, *, token: str | None = None, timeout: float = 30.0) -> None:
        self._settings = Settings(url, token, timeout)
        self._http = httpx2.Client(**self._settings.connection)

    def __enter__(self) -> Self:
        """Itself."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close the connections."""
        self.close()

    def close(self) -> None:
        """Close the connections."""
        self._http.close()

    def submit(self, payload: object, **fields: Unpack[TaskFields]) -> Accepted:
        """Submit a task; what it may say is told at `Task`."""
        return self._make(calls.submit(Task(payload, **fields)))

    def submit_batch(
        self, tasks: Sequence[Task], *, group: str | None = None, join: Join | None = None
    ) -> list[Accepted]:
        """Submit all of these tasks or none."""
        return self._make(calls.submit_batch(tasks, group=group, join=join))

    def get(self, task: int) -> TaskInfo:
        """A task as it stands, with its attempts and its result."""
        return self._make(calls.get(task))

    def find(self, key: str) -> TaskInfo | None:
        """The newest task of that key, without its attempts; None when nobody has used it."""
        return self._make(calls.find(key))

    def wait(self, task: int, timeout: float | None = None) -> TaskInfo:
        """The task once it has ended, or as it is after `timeout` seconds (None: however long it takes)."""
        give_up_at = None if timeout is None else time.monotonic() + timeout
        while True:
            left_s = POLL_S if give_up_at is None else max(0.0, give_up_at - time.monotonic())
            found = self._make(calls.wait(task, min(POLL_S, left_s)))
            if found.ended or (left_s <= POLL_S and give_up_at is not None):
                return found

    def result(self, task: int, timeout: float | None = None) -> Any:
        """What the task returned, once it has. Raises TaskFailed, and TimeoutError after `timeout` seconds."""
        found = self.wait(task, timeout)
        if not found.ended:
            raise TimeoutError(f"task {task} is {found.state} after {timeout:g} s")
        return result_of(found)

    def watch(self, task: int) -> Iterator[TaskInfo]:
        """The task as it stands, and again each time that is seen to have changed, until it has ended."""
        before: tuple[str, int] | None = None
        while True:
            found = self._make(calls.get(task) if before is None else calls.wait(task, WATCH_S))
            if (found.state, found.attempts) != before:
                before = (found.state, found.attempts)
                yield found
            if found.ended:
                return

    def why(self, task: int) -> Why:
        """Why a task is not running."""
        return self._make(calls.why(task))

    def cancel(self, task: int, reason: str = "") -> Cancelled:
        """Cancel a task: at once while it waits, by telling the attempt to stop while it runs."""
        return self._make(calls.cancel(task, reason))

    def replay(self, task: int, reason: str = "") -> TaskInfo:
        """Run a failed, dead-lettered, shed or missed task afresh."""
        return self._make(calls.replay(task, reason))

    def snapshot(self) -> Snapshot:
        """The picture that the console shows."""
        return self._make(calls.snapshot())

    def pools(self) -> list[Json]:
        """All pools and what they hold now."""
        return self._make(calls.pools())

    def pool_why(self, name: str) -> Json:
        """Why a pool does not start more than it does."""
        return self._make(calls.pool_why(name))

    def pause(self, pool: str, reason: str = "") -> Json:
        """Start nothing new in a pool; what runs goes on."""
        return self._make(calls.switch_pool(pool, "pause", reason))

    def resume(self, pool: str, reason: str = "") -> Json:
        """Start again with what waits."""
        return self._make(calls.switch_pool(pool, "resume", reason))

    def resources(self) -> list[Json]:
        """All shared limits and what is left of them."""
        return self._make(calls.resources())

    # Many tasks

    def tasks(self, filter: str = "", *, limit: int | None = None) -> Iterator[TaskInfo]:  # noqa: A002 - the API's word
        """The tasks that match, newest first, without their attempts; at most `limit`.

        `filter` is written as in the console: `pool:llm state:dead reason:timeout age>10m -tenant:test`.
        """
        cursor: str | None = None
        left = limit
        while left is None or left > 0:
            page = self._make(bulk.tasks(filter, cursor=cursor, rows_max=bulk.page_rows(left)))
            yield from page.tasks
            left = None if left is None else left - len(page.tasks)
            cursor = page.next_cursor
            if cursor is None:
                return

    def preview(self, kind: OperationKind, filter: str) -> Preview:  # noqa: A002 - as above
        """What `start_operation` would be done to; nothing is done."""
        return self._make(bulk.preview(kind, filter))

    def start_operation(
        self,
        kind: OperationKind,
        filter: str,  # noqa: A002 - as above
        *,
        reason: str,
        rate: float | None = None,
        as_of: datetime | str | None = None,
        shown: int | None = None,
    ) -> Operation:
        """Replay, cancel, discard or restore all tasks that match, `rate` per second, from ten seconds on.

        `reason` is for those who look at it later, and needed. Pass on `as_of` and `shown` (the count) of a
        preview: what came later is left out, and more tasks are refused.
        """
        return self._make(bulk.start(kind, filter, reason=reason, rate=rate, as_of=as_of, shown=shown))

    def operation(self, operation: int) -> Operation:
        """How far an operation is."""
        return self._make(bulk.operation(operation))

    def change_operation(
        self, operation: int, change: Literal["pause", "resume", "abort"], reason: str = ""
    ) -> Operation:
        """Pause, resume or abort an operation; what is done stays done."""
        return self._make(bulk.change(operation, change, reason))

    # Agent runs

    def create_run(
        self,
        goal: object = None,
        *,
        name: str = "",
        key: str | None = None,
        caps: Mapping[str, Any] | None = None,
        tenant: str | None = None,
    ) -> Run:
        """Store a run; its steps are tasks submitted with `run=run.id`. The same key and content give the first again.

        `caps`: `max_steps`, `max_width`, `max_tokens`, `max_cost_usd`, `wall_clock_s`; else its tenant's.
        """
        return self._make(runs.create(goal, name=name, key=key, caps=caps, tenant=tenant))

    def run(self, run: int) -> Run:
        """A run with what it has used and its steps by state."""
        return self._make(runs.get(run))

    def kill_run(self, run: int, reason: str = "") -> Run:
        """Start nothing more of a run, tell what runs to stop, cancel what waits. Only `resume_run` lifts it."""
        return self._make(runs.kill(run, reason))

    def resume_run(self, run: int, *, caps: Mapping[str, Any] | None = None, reason: str = "") -> Run:
        """Let a paused or killed run go on, with other caps where one is used up."""
        return self._make(runs.resume(run, caps, reason))

    def finish_run(
        self, run: int, result: object = None, *, state: Literal["succeeded", "failed"] = "succeeded", reason: str = ""
    ) -> Run:
        """End a run with its result. Steps that wait are cancelled; those that run go on."""
        return self._make(runs.finish(run, result, state=state, reason=reason))

    def _make(self, call: Call[T]) -> T:
        trial = self._settings.trial(call)
        while True:
            try:
                arguments = self._settings.request(call, trial.left_s(time.monotonic()))
                reply = reply_of(self._http.request(call.method, call.path, **arguments))
                again = trial.answered(reply, now=time.monotonic())
                if again is None:
                    return call.parse(reply.body)
            except httpx2.TransportError as error:
                again = trial.lost(said(error), now=time.monotonic(), sent=not isinstance(error, NOT_SENT))
            time.sleep(again.after_s)
