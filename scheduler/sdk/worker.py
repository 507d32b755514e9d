"""A remote worker: takes attempts over the worker protocol, runs a handler for each, and reports.

    python -m scheduler.sdk.worker --url http://127.0.0.1:8000 --pool crunch --token "$TOKEN" package.module:handler

`PROTOCOL.md` in `scheduler.protocol` says what goes over the wire; this is its reference implementation. It needs no
Django and no database. Handlers are `async def handler(ctx, payload)` or plain functions (run in threads), as for an
embedded scheduler, and return JSON.
"""

from __future__ import annotations

import argparse
import asyncio
import importlib
import inspect
import json
import logging
import os
import signal
import socket
import sys
import threading
import time
from collections.abc import Awaitable, Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Final, get_args

from scheduler.protocol.client import ClientSession, pong
from scheduler.protocol.limits import HEARTBEAT_FRACTION, RESULT_BYTES_MAX
from scheduler.protocol.messages import Beat, Cancel, Drain, Error, Lease, Ping, Refused
from scheduler.protocol.writes import Answer
from scheduler.sdk.context import TaskContext
from scheduler.sdk.errors import (
    CancelTask,
    Permanent,
    Reject,
    Retryable,
    SchedulerError,
    WriteRefused,
)
from scheduler.sdk.job import Job
from scheduler.sdk.line import Door, Transport, Wire, WorkerLine
from scheduler.sdk.poll_line import PollLine
from scheduler.sdk.socket_line import SocketLine

logger = logging.getLogger(__name__)

Handler = Callable[[TaskContext, Any], Any]
HEARTBEAT_MAX_S: Final = 10.0
GATHER_S: Final = 0.003
"""How long a report waits for others, so that they go, and are settled, together."""
WIND_UP_S: Final = 0.02
"""For attempts that are given up, to clean up behind themselves."""
DRAIN: Final = json.dumps({"type": "drain"})


class Worker:
    """Runs `handler` for the tasks of a pool, up to `slots` at once.

    `url` is the server's, with http or https. `stop` finishes what runs (for at most `grace` seconds), hands the rest
    back and ends `run`. Reconnects by itself, with jitter; raises WorkerRefused where that is of no use.

    Args:
        url: where the server is, `https://host` or `http://host:port`.
        pool: a pool with the executor `remote`.
        handler: `async def handler(ctx, payload)`, or a plain function, which runs in a thread; returns JSON. What it
            may raise: `Retryable`, `Permanent`, `Reject`, `CancelTask`; anything else is tried again.
        slots: attempts at once.
        token: one with the scope `work`; by default the environment's `CRONOQ_TOKEN`.
        labels: what tasks may ask for.
        owner: a name for people; by default host and process id.
        grace: seconds that running attempts have to end after `stop`.
        transport: `auto` speaks over a websocket, or by long polls where a proxy lets none through; `websocket` and
            `poll` insist.
    """

    def __init__(  # noqa: PLR0913 - what a worker may be told, each by name
        self,
        url: str,
        pool: str,
        handler: Handler,
        *,
        slots: int = 8,
        token: str | None = None,
        labels: Mapping[str, str] | None = None,
        owner: str | None = None,
        grace: float = 30.0,
        transport: Transport = "auto",
    ) -> None:
        self.handled = 0
        self._lock = threading.Lock()
        self.session = ClientSession(
            owner=owner or f"{socket.gethostname()}:{os.getpid()}",
            slots={pool: slots},
            labels=labels,
            token=token or os.environ.get("CRONOQ_TOKEN"),
        )
        self._line = self._line_to(url, token or os.environ.get("CRONOQ_TOKEN"), transport)
        self._outgoing: list[str] = []
        self._handler = handler
        self._grace_s = grace
        self._jobs: dict[int, tuple[Job, asyncio.Task[None]]] = {}
        self._asked: dict[int, tuple[int, asyncio.Future[Answer]]] = {}
        self._threads = ThreadPoolExecutor(max_workers=slots, thread_name_prefix="handler")
        self._loop = asyncio.new_event_loop()
        self._stopping = threading.Event()
        self._idle = threading.Event()
        self._idle.set()

    def _line_to(self, url: str, token: str | None, transport: Transport) -> WorkerLine:
        closing = threading.Event()
        wire = Wire(url, token, self.session, self._lock, self._heed, self._resume, closing)
        doors: dict[Transport, list[type[SocketLine | PollLine]]] = {
            "auto": [SocketLine, PollLine], "websocket": [SocketLine], "poll": [PollLine],
        }  # fmt: skip
        if transport not in doors:
            raise SchedulerError(f"transport is one of {', '.join(doors)}, not {transport!r}.")
        ways: list[Door] = [door(wire) for door in doors[transport]]
        return WorkerLine(ways, closing)

    # Running

    def run(self) -> None:
        """Work until `stop` is called. Blocks; raises WorkerRefused."""
        running = [
            threading.Thread(target=target, name=name, daemon=True)
            for name, target in (("worker loop", self._run_loop), ("heartbeat", self._keep_leases))
        ]
        for thread in running:
            thread.start()
        try:
            self._line.run()
        finally:
            self._line.closing.set()
            self._loop.call_soon_threadsafe(self._end_loop)
            for thread in running:
                thread.join(5.0)
            if not self._loop.is_running():
                self._loop.close()
            self._threads.shutdown(wait=False, cancel_futures=True)

    def stop(self) -> None:
        """Take nothing new, finish, and let `run` end. Safe from any thread and from a signal handler."""
        self._stopping.set()
        threading.Thread(target=self._drain, name="drain", daemon=True).start()

    def _drain(self) -> None:
        self._line.send([DRAIN])
        self._idle.wait(self._grace_s)
        for lease, (job, _) in list(self._jobs.items()):
            job.stop()
            self._report("release", lease)
        deadline = time.monotonic() + min(self._grace_s, 5.0)
        while self.session.unsettled and time.monotonic() < deadline and self._line.is_up:
            self._line.closing.wait(0.02)
        self._line.close()

    def _resume(self) -> None:
        """Reports that were not acknowledged before the connection broke are sent again; that does no harm."""
        with self._lock:
            again = self.session.unsettled
        self._line.send(again)
        if self._stopping.is_set():
            self._line.send([DRAIN])

    def _heed(self, said: Any) -> None:
        match said:
            case Lease():
                self._begin(said)
            case Ping():
                self._line.send([pong(said)])
            case Cancel():
                self._halt(said.lease)
            case Beat():
                for lease in [*said.cancel, *said.lost]:
                    self._halt(lease)
            case Answer():
                self._loop.call_soon_threadsafe(self._answer, said)
            case Refused():
                # What it came to cannot be stored, however often it is sent.
                self._report("fail", said.lease, **{"class": "permanent"}, message=said.detail)
            case Drain():
                self.stop()
            case Error():
                logger.warning("the server says: %s", said.detail)

    # Leases

    def _keep_leases(self) -> None:
        """In a thread of its own: user code may hold the loop for as long as it likes."""
        while not self._line.closing.is_set():
            with self._lock:
                beat, ttl_s = self.session.heartbeat(), self.session.ttl_s()
            self._line.send([] if beat is None else [beat])
            self._line.closing.wait(min(HEARTBEAT_MAX_S, (ttl_s or HEARTBEAT_MAX_S) * HEARTBEAT_FRACTION, 1.0))

    def _report(self, kind: str, lease: int, **fields: Any) -> None:
        """Say at once how an attempt ended."""
        with self._lock:
            text = self.session.report(kind, lease, **fields)
        self._line.send([] if text is None else [text])

    def _report_with_others(self, kind: str, lease: int, **fields: Any) -> None:
        """Say it together with what else ends within a few milliseconds. On the loop."""
        with self._lock:
            text = self.session.report(kind, lease, **fields)
        if text is None:
            return
        if not self._outgoing:
            self._loop.call_later(GATHER_S, self._send_reports)
        self._outgoing.append(text)

    def _send_reports(self) -> None:
        texts, self._outgoing = self._outgoing, []
        self._line.send(texts)

    # Attempts

    def _run_loop(self) -> None:
        asyncio.set_event_loop(self._loop)
        self._loop.run_forever()

    def _end_loop(self) -> None:
        for _, task in self._jobs.values():
            task.cancel()
        self._loop.call_later(WIND_UP_S, self._loop.stop)

    def _begin(self, lease: Lease) -> None:
        if self._stopping.is_set():
            self._report("release", lease.lease)
            return
        self._idle.clear()
        self._loop.call_soon_threadsafe(self._start, Job(lease, self._write, self._loop))

    def _start(self, job: Job) -> None:
        self._jobs[job.lease_id] = (job, self._loop.create_task(self._attempt(job)))

    def _halt(self, lease: int) -> None:
        def stop() -> None:
            known = self._jobs.get(lease)
            if known is not None:
                known[0].stop()
                known[1].cancel()
            if not self.session.is_held(lease):
                self._give_up_asking(lease)

        self._loop.call_soon_threadsafe(stop)

    # What handlers want written while they work

    async def _write(self, lease: int, kind: str, **fields: Any) -> Mapping[str, Any]:
        """Say it, again on every new connection, until it is answered. On the loop. Raises WriteRefused."""
        try:
            json.dumps(fields, allow_nan=False)
        except (TypeError, ValueError) as error:
            raise Permanent(f"This {kind} cannot be kept, it is no JSON: {error}") from None
        with self._lock:
            asked = self.session.write(kind, lease, **fields)
        if asked is None:
            raise _stale(lease)
        ref, text = asked
        answer: asyncio.Future[Answer] = self._loop.create_future()
        self._asked[ref] = (lease, answer)
        self._line.send([text])
        try:
            said = await answer
        finally:
            self._asked.pop(ref, None)
        if said.code is not None:
            raise WriteRefused(said.detail, said.code)
        return said.body or {}

    def _answer(self, said: Answer) -> None:
        waiting = self._asked.get(said.ref)
        if waiting is not None and not waiting[1].done():
            waiting[1].set_result(said)

    def _give_up_asking(self, lease: int) -> None:
        for held, waiting in list(self._asked.values()):
            if held == lease and not waiting.done():
                waiting.set_exception(_stale(lease))

    async def _attempt(self, job: Job) -> None:
        kind, said = await self._outcome(job)
        self._jobs.pop(job.lease_id, None)
        self.handled += 1
        self._report_with_others(kind, job.lease_id, **said)
        if not self._jobs:
            self._idle.set()

    async def _outcome(self, job: Job) -> tuple[str, dict[str, Any]]:
        """What to report of an attempt, whatever happens in it."""
        try:
            async with asyncio.timeout(job.timeout_s):
                result = await self._call(job)
            text = json.dumps(result, allow_nan=False)
        except asyncio.CancelledError:
            return "release", {}
        except TimeoutError:
            return "fail", {"class": "timeout", "message": f"no result within {job.timeout_s} s"}
        except Exception as error:  # noqa: BLE001 - a handler may raise anything
            return _failure(error)
        if len(text) > RESULT_BYTES_MAX:
            said = f"The result is too large: {len(text)} bytes, where {RESULT_BYTES_MAX} can be stored."
            return "fail", {"class": "permanent", "message": said}
        return "complete", {"result": result}

    async def _call(self, job: Job) -> Any:
        context = TaskContext(job)
        if inspect.iscoroutinefunction(self._handler):
            waiting: Awaitable[Any] = self._handler(context, job.payload)
            return await waiting
        return await self._loop.run_in_executor(self._threads, self._handler, context, job.payload)


def _stale(lease: int) -> WriteRefused:
    return WriteRefused(f"Lease {lease} has ended: nothing was written, and the attempt is to stop.", "stale_lease")


def _failure(error: Exception) -> tuple[str, dict[str, Any]]:
    """What to report of an attempt that ended in an exception."""
    match error:
        case Reject():
            return "release", {"retry_after": error.retry_after}
        case CancelTask():
            return "fail", {"class": "cancelled", "message": str(error)}
        case WriteRefused() if error.permanent:
            return "fail", {"class": "permanent", "message": str(error)}
        case Permanent():
            return "fail", {"class": "permanent", "message": error.message}
        case Retryable():
            return "fail", {"class": "error", "message": error.message, "retry_after": error.retry_after}
        case _:
            return "fail", {"class": "error", "message": f"{type(error).__name__}: {error}"[:500]}


def load_handler(path: str) -> Handler:
    """The function that `module:name` names. Raises SchedulerError."""
    module, _, name = path.partition(":")
    try:
        found = getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError, ValueError) as error:
        raise SchedulerError(f"There is no handler {path!r}: {error}") from None
    if not callable(found):
        raise SchedulerError(f"{path!r} is not a function.")
    handler: Handler = found
    return handler


def main(words: list[str] | None = None) -> int:
    """The command line. Returns the exit status."""
    parser = argparse.ArgumentParser(prog="python -m scheduler.sdk.worker", description="Run a remote worker.")
    parser.add_argument("handler", help="module:function")
    parser.add_argument("--url", default=os.environ.get("CRONOQ_URL", "http://127.0.0.1:8000"))
    parser.add_argument("--pool", required=True)
    parser.add_argument("--slots", type=int, default=8)
    parser.add_argument("--token", default=None, help="default: the environment's CRONOQ_TOKEN")
    parser.add_argument("--transport", choices=get_args(Transport), default="auto", help="default: auto")
    parser.add_argument("--label", action="append", default=[], metavar="NAME=VALUE")
    said = parser.parse_args(words)
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s")
    sys.path.insert(0, str(Path.cwd()))
    try:
        handler = load_handler(said.handler)
        labels = dict(label.split("=", 1) for label in said.label)
        worker = Worker(
            said.url, said.pool, handler, slots=said.slots, token=said.token, labels=labels, transport=said.transport
        )
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, lambda *_: worker.stop())
        worker.run()
    except SchedulerError as error:
        print(error, file=sys.stderr)  # noqa: T201 - for the person at the terminal
        return 1
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
