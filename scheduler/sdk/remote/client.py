"""Clients of a server: `Client` for programs with threads, `AsyncClient` for those with a loop; the same calls.

They repeat what is safe to repeat, with jittered pauses and no sooner than the server says, within `timeout` seconds.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import AsyncIterator, Iterator, Sequence
from types import TracebackType
from typing import Any, Final, Literal, Self, TypeVar, Unpack

import httpx2

from scheduler.sdk.declarations import Task, TaskFields
from scheduler.sdk.errors import SchedulerError, TaskFailed
from scheduler.sdk.remote import calls
from scheduler.sdk.remote.answers import Accepted, Cancelled, Snapshot, TaskInfo, Why
from scheduler.sdk.remote.calls import Call, Json
from scheduler.sdk.remote.trial import Reply, Trial

API: Final = "/api/v1"
TRY_S: Final = 30.0
"""How long one try may take, besides what it is asked to wait."""
POLL_S: Final = 25.0
WATCH_S: Final = 1.0
"""Between looks at a task that is watched."""
T = TypeVar("T")
Join = Literal["fail_fast", "best_effort"]
NOT_SENT: Final = (httpx2.ConnectError, httpx2.ConnectTimeout, httpx2.PoolTimeout)


class _Settings:
    """Where the server is and how to speak with it."""

    def __init__(self, url: str | None, token: str | None, timeout: float) -> None:
        self.url = (url or os.environ.get("CRONOQ_URL", "")).rstrip("/").removesuffix(API)
        secret = token or os.environ.get("CRONOQ_TOKEN", "")
        if not self.url.startswith(("http://", "https://")):
            raise SchedulerError("Say where the server is: url='https://…', or CRONOQ_URL in the environment.")
        if not secret:
            raise SchedulerError("A token is needed: token='cq_…', or CRONOQ_TOKEN in the environment.")
        self.headers = {"Authorization": f"Bearer {secret}", "User-Agent": "cronoq-sdk"}
        self.timeout_s = timeout

    def request(self, call: Call[Any], left_s: float) -> dict[str, Any]:
        """The arguments of one try."""
        arguments: dict[str, Any] = {"params": dict(call.params)} if call.params else {}
        if call.body is not None:
            arguments["json"] = call.body
        if call.method == "POST":
            arguments["headers"] = {"Idempotency-Key": call.key}
        arguments["timeout"] = min(TRY_S, max(1.0, left_s)) + call.patience_s
        return arguments

    def trial(self, call: Call[Any]) -> Trial:
        """The tries of a call."""
        return Trial(call.method, now=time.monotonic(), total_s=self.timeout_s + call.patience_s)


def _reply(response: httpx2.Response) -> Reply:
    try:
        body = response.json() if response.content else None
    except ValueError:
        body = None
    after = response.headers.get("Retry-After", "")
    return Reply(response.status_code, body, float(after) if after.isdecimal() else None)


def _result(found: TaskInfo) -> Any:
    if found.state != "succeeded":
        raise TaskFailed(found.state, found.message, task=found.id)
    return found.result


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
        self._settings = _Settings(url, token, timeout)
        self._http = httpx2.Client(base_url=self._settings.url + API, headers=self._settings.headers)

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
        return _result(found)

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

    def _make(self, call: Call[T]) -> T:
        trial = self._settings.trial(call)
        while True:
            try:
                arguments = self._settings.request(call, trial.left_s(time.monotonic()))
                reply = _reply(self._http.request(call.method, call.path, **arguments))
                again = trial.answered(reply, now=time.monotonic())
                if again is None:
                    return call.parse(reply.body)
            except httpx2.TransportError as error:
                again = trial.lost(_said(error), now=time.monotonic(), sent=not isinstance(error, NOT_SENT))
            time.sleep(again.after_s)


class AsyncClient:
    """The same for programs with an event loop: `async with AsyncClient(url, token=…) as client`."""

    def __init__(self, url: str | None = None, *, token: str | None = None, timeout: float = 30.0) -> None:
        self._settings = _Settings(url, token, timeout)
        self._http = httpx2.AsyncClient(base_url=self._settings.url + API, headers=self._settings.headers)

    async def __aenter__(self) -> Self:
        """Itself."""
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close the connections."""
        await self.aclose()

    async def aclose(self) -> None:
        """Close the connections."""
        await self._http.aclose()

    async def submit(self, payload: object, **fields: Unpack[TaskFields]) -> Accepted:
        """Submit a task; what it may say is told at `Task`."""
        return await self._make(calls.submit(Task(payload, **fields)))

    async def submit_batch(
        self, tasks: Sequence[Task], *, group: str | None = None, join: Join | None = None
    ) -> list[Accepted]:
        """Submit all of these tasks or none."""
        return await self._make(calls.submit_batch(tasks, group=group, join=join))

    async def get(self, task: int) -> TaskInfo:
        """A task as it stands, with its attempts and its result."""
        return await self._make(calls.get(task))

    async def find(self, key: str) -> TaskInfo | None:
        """The newest task of that key, without its attempts; None when nobody has used it."""
        return await self._make(calls.find(key))

    async def wait(self, task: int, timeout: float | None = None) -> TaskInfo:  # noqa: ASYNC109 - answers, never raises
        """The task once it has ended, or as it is after `timeout` seconds (None: however long it takes)."""
        give_up_at = None if timeout is None else time.monotonic() + timeout
        while True:
            left_s = POLL_S if give_up_at is None else max(0.0, give_up_at - time.monotonic())
            found = await self._make(calls.wait(task, min(POLL_S, left_s)))
            if found.ended or (left_s <= POLL_S and give_up_at is not None):
                return found

    async def result(self, task: int, timeout: float | None = None) -> Any:  # noqa: ASYNC109 - as `Client.result`
        """What the task returned, once it has. Raises TaskFailed, and TimeoutError after `timeout` seconds."""
        found = await self.wait(task, timeout)
        if not found.ended:
            raise TimeoutError(f"task {task} is {found.state} after {timeout:g} s")
        return _result(found)

    async def watch(self, task: int) -> AsyncIterator[TaskInfo]:
        """The task as it stands, and again each time that is seen to have changed, until it has ended."""
        before: tuple[str, int] | None = None
        while True:
            found = await self._make(calls.get(task) if before is None else calls.wait(task, WATCH_S))
            if (found.state, found.attempts) != before:
                before = (found.state, found.attempts)
                yield found
            if found.ended:
                return

    async def why(self, task: int) -> Why:
        """Why a task is not running."""
        return await self._make(calls.why(task))

    async def cancel(self, task: int, reason: str = "") -> Cancelled:
        """Cancel a task: at once while it waits, by telling the attempt to stop while it runs."""
        return await self._make(calls.cancel(task, reason))

    async def replay(self, task: int, reason: str = "") -> TaskInfo:
        """Run a failed, dead-lettered, shed or missed task afresh."""
        return await self._make(calls.replay(task, reason))

    async def snapshot(self) -> Snapshot:
        """The picture that the console shows."""
        return await self._make(calls.snapshot())

    async def pools(self) -> list[Json]:
        """All pools and what they hold now."""
        return await self._make(calls.pools())

    async def resources(self) -> list[Json]:
        """All shared limits and what is left of them."""
        return await self._make(calls.resources())

    async def _make(self, call: Call[T]) -> T:
        trial = self._settings.trial(call)
        while True:
            try:
                arguments = self._settings.request(call, trial.left_s(time.monotonic()))
                reply = _reply(await self._http.request(call.method, call.path, **arguments))
                again = trial.answered(reply, now=time.monotonic())
                if again is None:
                    return call.parse(reply.body)
            except httpx2.TransportError as error:
                again = trial.lost(_said(error), now=time.monotonic(), sent=not isinstance(error, NOT_SENT))
            await asyncio.sleep(again.after_s)


def _said(error: Exception) -> str:
    return str(error) or type(error).__name__
