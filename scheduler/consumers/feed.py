"""The event feed for services, ``/ws/feed/?after=SEQ``: what happens to a tenant's tasks, one JSON event per frame.

Needs a token with the scope ``read``. Without ``after`` it begins with what happens from now on; with it, behind that
place, so that who reconnects with the last place it saw has missed nothing, or is told that it has (``lost``). The only
message it takes is ``{"ack": SEQ}``. It reads from the database as it sends and keeps nothing: who is slow is behind,
and no burden.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Final
from urllib.parse import parse_qs

import orjson
from channels.generic.websocket import AsyncWebsocketConsumer
from django.db import DatabaseError

from scheduler.consumers.services import admit, token_of
from scheduler.live.events import Ear, event_hub, in_thread
from scheduler.policy.flow import Flow
from scheduler.reads.events import bounds, events_after, told
from scheduler.services.tokens import Principal

SCOPE: Final = "read"
HEARTBEAT_EVERY_S: Final = 15.0
LOOK_AGAIN_S: Final = 0.25
SEND_TIMEOUT_S: Final = 5.0
ASK_AGAIN_S: Final = 30.0
MESSAGE_BYTES_MAX: Final = 1024
SEQ_MAX: Final = 2**63 - 1

NORMAL: Final = 1000
BAD_REQUEST: Final = 4400
SLOW: Final = 4408
TRY_LATER: Final = 1013


class FeedConsumer(AsyncWebsocketConsumer):
    """One listener."""

    _ear: Ear
    _flow: Flow
    _token: str
    _seq: int
    _spoke_at: float
    _tasks: tuple[asyncio.Task[None], ...] = ()

    async def connect(self) -> None:
        """Accept first, so that the client learns why it is refused."""
        await self.accept()
        self._token = token_of(self.scope)
        caller = await admit(self._token, SCOPE)
        if not isinstance(caller, Principal):
            await self._end(caller, f"This needs a token with the scope {SCOPE!r} in the Authorization header.")
            return
        given = parse_qs(self.scope["query_string"].decode("latin-1")).get("after", [""])[0]
        if given and not (given.isascii() and given.isdigit() and int(given) <= SEQ_MAX):
            await self._end(BAD_REQUEST, "'after' is the place of the last event that you have.")
            return
        self._ear = Ear(caller.tenant_id)
        try:
            await self._begin(int(given) if given else None)
        except DatabaseError:
            await self._end(TRY_LATER, "The database cannot be reached; come back in a moment.")

    async def disconnect(self, code: int) -> None:  # noqa: ARG002 - Channels passes it
        """End the watch and its tasks."""
        self._stop()

    async def receive(self, text_data: str | None = None, bytes_data: bytes | None = None) -> None:  # noqa: ARG002 - binary is refused
        """``{"ack": SEQ}``: everything up to there arrived."""
        seq = _acknowledged(text_data)
        if seq is None:
            await self._end(BAD_REQUEST, 'The only message is {"ack": SEQ}.')
        elif self._tasks:
            self._flow.acknowledged(seq, now=_clock())
            self._ear.wake()

    async def _begin(self, after: int | None) -> None:
        """Listen, then say where the listener stands; what it asked for and is not kept any more is told as lost."""
        await event_hub().join(self._ear)
        try:
            known = await in_thread(bounds, self._ear.tenant)
        except BaseException:
            event_hub().leave(self._ear)
            raise
        self._seq = known.last if after is None else min(after, known.last)
        self._flow = Flow(since=_clock())
        await self._say({"type": "hello", "seq": self._seq, "newest": known.last, "heartbeat_s": HEARTBEAT_EVERY_S})
        self._tasks = (
            asyncio.create_task(self._keep_sending(), name="feed sender"),
            asyncio.create_task(self._keep_asking(), name="feed access"),
        )

    async def _keep_sending(self) -> None:
        try:
            while self._tasks:
                if not await self._send_some():
                    await self._rest()
        except DatabaseError:
            await self._end(TRY_LATER, "The database cannot be reached; come back in a moment.")

    async def _send_some(self) -> bool:
        """Send what there is room for; whether there may be more at once."""
        if not self._flow.room(now=_clock()):
            if self._flow.is_given_up(now=_clock()):
                reason = (
                    'You read too slowly. Acknowledge what you have with {"ack": SEQ}, and come back with ?after=SEQ.'
                )
                await self._end(SLOW, reason)
            return False
        # The newest place is asked for first, so that no event up to it is overlooked.
        known = await in_thread(bounds, self._ear.tenant)
        if self._seq < known.first:
            await self._say({"type": "lost", "after": self._seq, "until": known.first})
            self._seq = known.first
        events = await in_thread(events_after, self._ear.tenant, self._seq)
        for event in events:
            if not self._flow.room(now=_clock()):
                return False
            size = await self._say(told(event))
            self._seq = event.seq
            self._flow.sent(event.seq, size, now=_clock())
        if not events:
            self._flow.caught_up()
            self._seq = max(self._seq, known.last)
        return bool(events)

    async def _rest(self) -> None:
        """Wait for news. After a long silence the listener gets a sign of life and the place up to which it has all."""
        silence_s = HEARTBEAT_EVERY_S - (_clock() - self._spoke_at)
        if silence_s <= 0:
            await self._say({"type": "heartbeat", "seq": self._seq})
            silence_s = HEARTBEAT_EVERY_S
        # Without room, time alone makes some.
        await self._ear.wait(silence_s if self._flow.room(now=_clock()) else LOOK_AGAIN_S)

    async def _keep_asking(self) -> None:
        while self._tasks:
            await asyncio.sleep(ASK_AGAIN_S)
            with suppress(DatabaseError):
                caller = await admit(self._token, SCOPE)
                if not isinstance(caller, Principal):
                    await self._end(caller, "The token is not valid any more.")

    async def _say(self, message: dict[str, object]) -> int:
        text = orjson.dumps(message).decode()
        self._spoke_at = _clock()
        try:
            await asyncio.wait_for(self.send(text_data=text), SEND_TIMEOUT_S)
        except TimeoutError:
            self._stop()
            await self.close(SLOW)
        return len(text)

    async def _end(self, code: int, reason: str) -> None:
        """Say why, then close."""
        self._stop()
        message = {"type": "error", "code": code, "detail": reason}
        with suppress(TimeoutError):
            await asyncio.wait_for(self.send(text_data=orjson.dumps(message).decode()), SEND_TIMEOUT_S)
            # Daphne makes an error of other codes than an application's own, and leaves the line open.
            await asyncio.wait_for(self.close(code if code >= BAD_REQUEST else NORMAL), SEND_TIMEOUT_S)

    def _stop(self) -> None:
        if self._tasks:
            event_hub().leave(self._ear)
        for task in self._tasks:
            if task is not asyncio.current_task():
                task.cancel()
        self._tasks = ()


def _acknowledged(text: str | None) -> int | None:
    if text is None or len(text) > MESSAGE_BYTES_MAX:
        return None
    try:
        message = orjson.loads(text)
    except ValueError:
        return None
    seq = message.get("ack") if isinstance(message, dict) else None
    return seq if isinstance(seq, int) and not isinstance(seq, bool) and seq >= 0 else None


def _clock() -> float:
    return asyncio.get_running_loop().time()
