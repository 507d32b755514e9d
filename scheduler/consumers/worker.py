"""The workers' socket, ``/ws/worker/``: carries the messages of PROTOCOL.md between one worker and its seat.

The token comes in the handshake's header or in hello, never with a cookie, so no origin is asked for. What a worker may
say, and whether it still reads, is the session's to decide; who gets what work is the planner's.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Coroutine
from contextlib import suppress
from functools import partial
from typing import Any, Final

from channels.db import database_sync_to_async
from channels.generic.websocket import AsyncWebsocketConsumer
from django.db import DatabaseError

from scheduler.engine.remote.gateway import REPLACED, STOPS, gateway
from scheduler.engine.remote.reports import report_of
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
BURST_MAX: Final = 100
"""Leases that are sent in one go before others on this loop have a turn."""


class WorkerConsumer(AsyncWebsocketConsumer):
    """One connected worker."""

    _seat: Seat | None = None
    _caller: Principal
    _token = ""

    async def connect(self) -> None:
        """Accept first, so that the worker learns why it is closed."""
        await self.accept()
        self._clock = asyncio.get_running_loop().time
        self._session = ServerSession(now=self._clock())
        self._tasks: set[asyncio.Task[None]] = set()
        self._spawn(self._tick())

    async def disconnect(self, code: int) -> None:  # noqa: ARG002 - Channels passes it
        """Nothing more for this worker here; what it holds stays its own until its time is over."""
        if self._seat is not None:
            gateway().leave(self._seat)
        for task in list(self._tasks):
            if task is not asyncio.current_task():
                task.cancel()

    async def receive(self, text_data: str | None = None, bytes_data: bytes | None = None) -> None:
        """One message."""
        try:
            said = self._session.receive(text_data if text_data is not None else (bytes_data or b"").decode())
            if said is None:
                if self._seat is not None:
                    self._seat.wake.set()
            else:
                await self._heed(said)
        except CloseSocket as end:
            await self._end(end.code, end.detail)
        except UnicodeDecodeError:
            await self._end(Close.BAD_MESSAGE, "Messages are JSON, in UTF-8.")
        except BadMessage as fault:
            await self._say(error_text(fault.code, fault.detail))

    async def _heed(self, said: FromWorker) -> None:
        if isinstance(said, Hello):
            await self._greet(said)
            return
        seat = self._seat
        if seat is None:
            return
        match said:
            case Heartbeat():
                self._spawn(self._keep([LeaseId(lease) for lease in said.leases]))
            case Drain():
                gateway().drain(seat)
            case Complete() | Fail() | Release():
                self._spawn(self._report(said))
            case Checkpoint() | Charge() | Claim() | Commit() | Abandon():
                self._spawn(self._write(said))

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
            known, strays = await _in_thread(partial(_register, said, caller, hub.id))
        except Forbidden as error:
            raise CloseSocket(Close.FORBIDDEN, error.detail) from None
        except Refused as error:
            raise CloseSocket(Close.BAD_MESSAGE, error.detail) from None
        except DatabaseError:
            raise CloseSocket(Close.TRY_LATER, "The database does not answer; try again.") from None
        self._seat = hub.sit(known, socket=True)
        for lease in strays:
            hub.reports.hand_back(lease)
        await self._say(ready_text(known.id, said.slots))
        self._spawn(self._send_news(self._seat))

    def _header(self) -> str:
        sent = dict(self.scope["headers"]).get(b"authorization", b"").decode("latin-1")
        return sent[len(BEARER) :].strip() if sent[: len(BEARER)].lower() == BEARER else ""

    # What the worker is sent

    async def _send_news(self, seat: Seat) -> None:
        while True:
            await seat.wake.wait()
            seat.wake.clear()
            if seat.closed is not None:
                replaced = seat.closed == REPLACED
                why = "This worker is connected elsewhere." if replaced else "This worker was forgotten; come again."
                await self._end(Close.REPLACED if replaced else Close.TRY_LATER, why)
                return
            while seat.has_news and not self._session.is_full:
                news = seat.take(BURST_MAX)
                for given in news.leases:
                    await self._say(lease_message(given))
                for lease, why in news.stops.items():
                    await self._say(encode("cancel", lease_id=lease, reason=why))
                if news.drain:
                    await self._say(encode("drain"))
            if self._session.is_full:
                await self._ping()

    async def _keep(self, leases: list[LeaseId]) -> None:
        kept = await gateway().keep(leases, self._caller)
        cancel: dict[int, str] = {lease: STOPS[each.stop] for lease, each in kept.items() if each.stop is not Stop.NO}
        await self._say(beat_text(list(kept), cancel, [lease for lease in leases if lease not in kept]))

    async def _report(self, said: Report) -> None:
        try:
            state = await asyncio.shield(gateway().report(report_of(said), self._caller))
        except Refused as error:
            await self._say(encode("refused", lease_id=said.lease, code=error.code, detail=error.detail))
            return
        detail = "" if state is not None else "The lease has ended or is not yours; drop the attempt."
        await self._say(settled_text(said.lease, state, detail=detail))

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

    async def _say(self, text: str) -> None:
        await self.send(text_data=self._session.sent(text))

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
            await self.send(text_data=json.dumps({"type": "error", "code": code.name.lower(), "detail": detail}))
            # A plain number: what the server makes of it is particular about its type.
            await self.close(int(code))


def _register(said: Hello, caller: Principal, hub: WorkerId) -> tuple[RemoteWorker, list[LeaseId]]:
    """On a thread: the worker, and leases that it was sent and never got."""
    known = service.register(
        caller, owner=said.owner, slots=said.slots, labels=said.labels, worker=said.worker, gateway=hub
    )
    return known, service.strays(known, said.held) if said.worker is not None else []


async def _in_thread(call: Any) -> Any:
    return await database_sync_to_async(call)()
