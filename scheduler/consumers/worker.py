"""The workers' socket, ``/ws/worker/``: carries the messages of PROTOCOL.md between one worker and its seat.

The token comes in the handshake's header or in hello, never with a cookie, so no origin is asked for. What a worker may
say, and whether it still reads, is the session's to decide; who gets what work is the planner's.

An ASGI application of its own: Channels' consumers look for database connections to close around every message, which
costs two changes of thread each. Here everything that asks the database does it in batches on the gateway's threads.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from contextlib import suppress
from functools import partial
from typing import Any, Final

from channels.db import database_sync_to_async
from django.db import DatabaseError

from scheduler.engine.remote.gateway import REPLACED, STOPS, gateway
from scheduler.engine.remote.seats import Seat
from scheduler.engine.remote.wording import lease_message
from scheduler.engine.remote.writes import answer_text, refusal_text
from scheduler.errors import Conflict, CronoqError, Forbidden, Refused, Unavailable
from scheduler.policy.remote import RemoteWorker, Stop
from scheduler.policy.types import LeaseId, WorkerId
from scheduler.protocol.fields import BadMessage
from scheduler.protocol.limits import Close
from scheduler.protocol.messages import (
    Complete,
    Drain,
    Fail,
    FromWorker,
    Heartbeat,
    Hello,
    Release,
    Report,
    beat_text,
    encode,
)
from scheduler.protocol.server import CloseSocket, ServerSession, error_text, ready_text, settled_text
from scheduler.protocol.writes import Abandon, Charge, Checkpoint, Claim, Commit, Write
from scheduler.services import workers as service
from scheduler.services.tokens import Principal, authenticate

logger = logging.getLogger(__name__)

TICK_S: Final = 1.0
ASK_AGAIN_S: Final = 30.0
BEARER: Final = "bearer "
SCOPE: Final = "work"
NORMAL: Final = 1000
OWN_CODES: Final = 3000
"""Close codes from here on are an application's own."""
BURST_MAX: Final = 100
"""Leases that are sent in one go before others on this loop have a turn."""

Scope = Mapping[str, Any]
Receive = Callable[[], Awaitable[Mapping[str, Any]]]
Send = Callable[[Mapping[str, Any]], Awaitable[None]]


async def worker_socket(scope: Scope, receive: Receive, send: Send) -> None:
    """Serve one worker from its handshake to its end."""
    await _Line(scope, receive, send).run()


class _Line:
    """One connected worker."""

    def __init__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self._scope = scope
        self._receive = receive
        self._send = send
        self._clock = asyncio.get_running_loop().time
        self._session = ServerSession(now=self._clock())
        self._tasks: set[asyncio.Task[None]] = set()
        self._seat: Seat | None = None
        self._answers: list[str] = []
        self._caller: Principal
        self._token = ""

    async def run(self) -> None:
        """Accept first, so that the worker learns why it is closed; then hear it until the line breaks."""
        await self._receive()
        await self._send({"type": "websocket.accept"})
        self._spawn(self._tick())
        try:
            while (message := await self._receive())["type"] == "websocket.receive":
                await self._guarded(self._hear(message))
        except asyncio.CancelledError:
            # The process is leaving, which may take a while: what the worker says here is not heard any more.
            await self._end(Close.GOING_AWAY, "This process is leaving; come again.")
            raise
        finally:
            # Nothing more for this worker here; what it holds stays its own until its time is over.
            if self._seat is not None:
                gateway().leave(self._seat)
            for task in self._tasks:
                task.cancel()

    async def _hear(self, message: Mapping[str, Any]) -> None:
        """One frame. The reports in it are settled together."""
        text = message.get("text")
        reports: list[Report] = []
        try:
            for said in self._session.receive(text if text is not None else message["bytes"].decode()):
                if isinstance(said, Complete | Fail | Release):
                    reports.append(said)
                else:
                    await self._heed(said)
        except UnicodeDecodeError:
            raise CloseSocket(Close.BAD_MESSAGE, "Messages are JSON, in UTF-8.") from None
        finally:
            if reports:
                self._spawn(self._report(reports))
        if self._seat is not None and self._seat.has_news:
            # The worker may have shown that it has read, so that more can follow.
            self._seat.wake.set()

    async def _heed(self, said: FromWorker | BadMessage) -> None:
        match said:
            case Hello():
                await self._greet(said)
            case Heartbeat():
                self._spawn(self._keep([LeaseId(lease) for lease in said.leases]))
            case Drain():
                gateway().drain(self._seated)
            case Checkpoint() | Charge() | Claim() | Commit() | Abandon():
                self._spawn(self._write(said))
            case BadMessage():
                await self._say(error_text(said.code, said.detail))

    @property
    def _seated(self) -> Seat:
        """The session lets nothing through before hello, and hello gives a seat or ends the line."""
        if self._seat is None:
            raise CloseSocket(Close.BAD_MESSAGE, "Say hello first.")
        return self._seat

    # Hello

    async def _greet(self, said: Hello) -> None:
        self._token = self._header() or said.token or ""
        caller = await _in_thread(partial(authenticate, self._token))
        if caller is None:
            raise CloseSocket(Close.UNAUTHENTICATED, "This token is unknown, expired or revoked.")
        if SCOPE not in caller.scopes:
            raise CloseSocket(Close.FORBIDDEN, f"This needs a token with the scope {SCOPE!r}.")
        self._caller = caller
        hub = gateway()
        try:
            known = await _in_thread(partial(_register, said, caller, hub.id))
        except Forbidden as error:
            raise CloseSocket(Close.FORBIDDEN, error.detail) from None
        except Refused as error:
            raise CloseSocket(Close.BAD_MESSAGE, error.detail) from None
        except DatabaseError:
            raise CloseSocket(Close.TRY_LATER, "The database does not answer; try again.") from None
        self._seat = hub.sit(known, socket=True, named=said.held)
        await self._say(ready_text(known.id, said.slots))
        if said.held:
            # Kept at once: they may have been without a heartbeat for as long as the worker was on its way.
            self._spawn(self._keep([LeaseId(lease) for lease in said.held]))
        self._spawn(self._send_news(self._seat))

    def _header(self) -> str:
        sent = dict(self._scope["headers"]).get(b"authorization", b"").decode("latin-1")
        return sent[len(BEARER) :].strip() if sent[: len(BEARER)].lower() == BEARER else ""

    # What the worker is sent

    async def _send_news(self, seat: Seat) -> None:
        """Send what comes for the worker, all that is there in as few frames as it takes."""
        while True:
            await seat.wake.wait()
            seat.wake.clear()
            if seat.closed is not None:
                replaced = seat.closed == REPLACED
                why = "This worker is connected elsewhere." if replaced else "This worker was forgotten; come again."
                await self._end(Close.REPLACED if replaced else Close.TRY_LATER, why)
                return
            while texts := self._due(seat):
                await self._say(*texts)
            if self._session.is_full:
                await self._ping()

    def _due(self, seat: Seat) -> list[str]:
        """Answers, and news unless too much is unread."""
        texts, self._answers = self._answers, []
        if seat.has_news and not self._session.is_full:
            news = seat.take(BURST_MAX)
            texts += map(lease_message, news.leases)
            texts += [encode("cancel", lease_id=lease, reason=why) for lease, why in news.stops.items()]
            if news.drain:
                texts.append(encode("drain"))
        return texts

    async def _keep(self, leases: list[LeaseId]) -> None:
        kept = await gateway().keep(leases, self._caller)
        cancel: dict[int, str] = {lease: STOPS[each.stop] for lease, each in kept.items() if each.stop is not Stop.NO}
        await self._say(beat_text(list(kept), cancel, [lease for lease in leases if lease not in kept]))

    async def _report(self, said: list[Report]) -> None:
        answers = await asyncio.shield(gateway().report(said, self._caller))
        self._answers += map(_settled, said, answers)
        self._seated.wake.set()

    async def _write(self, said: Write) -> None:
        try:
            text = answer_text(said, await asyncio.shield(gateway().write(said, self._caller)))
        except (Conflict, Refused) as error:
            text = refusal_text(said, error)
        await self._say(text)

    async def _tick(self) -> None:
        """Notice a worker that does not speak or read, and a token that opens nothing any more."""
        asked_at = self._clock()
        while True:
            await asyncio.sleep(TICK_S)
            await self._ping()
            if self._seat is not None and self._clock() - asked_at > ASK_AGAIN_S:
                asked_at = self._clock()
                with suppress(DatabaseError):
                    if await _in_thread(partial(authenticate, self._token)) is None:
                        raise CloseSocket(Close.UNAUTHENTICATED, "This token is unknown, expired or revoked.")

    async def _ping(self) -> None:
        ping = self._session.tick(now=self._clock())
        if ping is not None:
            await self._say(ping)

    async def _say(self, *texts: str) -> None:
        for frame in self._session.sent(texts):
            await self._send({"type": "websocket.send", "text": frame})

    # Ending

    def _spawn(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(self._guarded(work))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _guarded(self, work: Coroutine[Any, Any, None]) -> None:
        """What could not be answered ends the socket: the worker comes back and says it again."""
        try:
            await work
        except CloseSocket as end:
            await self._end(end.code, end.detail)
        except (Unavailable, DatabaseError):
            await self._end(Close.TRY_LATER, "The database does not answer; try again.")
        except CronoqError as error:
            await self._say(error_text(error.code, error.detail))
        except Exception:
            logger.exception("a worker's socket failed")
            await self._end(Close.TRY_LATER, "This is a fault of ours; it was written to the log.")

    async def _end(self, code: Close, detail: str) -> None:
        if self._seat is not None:
            gateway().leave(self._seat)
        with suppress(RuntimeError):
            # It may be closed already.
            said = json.dumps({"type": "error", "code": code.name.lower(), "detail": detail})
            await self._send({"type": "websocket.send", "text": said})
            # A plain number, and one that Daphne lets through: of others it makes an error, and the line stays open.
            sent = int(code) if code >= OWN_CODES else NORMAL
            await self._send({"type": "websocket.close", "code": sent})


def _settled(said: Report, answer: str | Refused | None) -> str:
    if isinstance(answer, Refused):
        return encode("refused", lease_id=said.lease, code=answer.code, detail=answer.detail)
    detail = "" if answer is not None else "The lease has ended or is not yours; drop the attempt."
    return settled_text(said.lease, answer, detail=detail)


def _register(said: Hello, caller: Principal, hub: WorkerId) -> RemoteWorker:
    """On a thread."""
    return service.register(
        caller,
        owner=said.owner,
        slots=said.slots,
        labels=said.labels,
        worker=said.worker,
        held=None if said.worker is None else said.held,
        gateway=hub,
    )


async def _in_thread(call: Any) -> Any:
    return await database_sync_to_async(call)()
