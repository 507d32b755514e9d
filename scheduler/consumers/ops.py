"""The console's socket, ``/ws/ops/?page=&scope=&seq=&shape=``: one watcher of one live page.

It is sent what its page lacks first, then by the hub what changes, at most once a second, or a beat of at most 200
bytes every five seconds. It accepts only ``subscribe``, ``pause`` and ``resume``; every change to the system goes
through a form instead. Session and permission are asked again every half minute (`consumers/rounds.py`).

An ASGI application of its own: a socket costs one task, which waits for what the viewer says, and nothing else.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import parse_qs

from django.conf import settings
from django.db import DatabaseError
from django.http import parse_cookie

from scheduler.consumers.access import Verdict, Watch
from scheduler.consumers.lines import Receive, Scope, Send, line_to
from scheduler.consumers.rounds import rounds
from scheduler.live.feed import feed
from scheduler.live.frames import Frame, Key, beat, opening
from scheduler.live.pages import is_live
from scheduler.live.viewers import Viewer

log = logging.getLogger(__name__)

SEND_TIMEOUT_S: Final = 5.0
MESSAGE_BYTES_MAX: Final = 1024

TRY_LATER: Final = 1000
"""Of the codes below 3000 Daphne sends this one alone: with another it leaves the line open. The page comes back."""
BAD_REQUEST: Final = 4400


async def ops_socket(scope: Scope, receive: Receive, send: Send) -> None:
    """Serve one open page from its handshake to its end."""
    await _Socket(scope, receive, send).run()


class _Socket:
    """One open page."""

    def __init__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self._receive = receive
        self._asgi_send = send
        self._question: dict[str, list[str]] = parse_qs(scope["query_string"].decode("latin-1"))
        self._viewer = Viewer(Key(self._asked("page"), self._asked("scope")), line_to(send), self._end_soon)
        self._watch = Watch(_session_key(scope), self._viewer.key)
        self._ending: asyncio.Task[None] | None = None

    async def run(self) -> None:
        """Accept first, so that the page learns the close code instead of retrying for ever; then hear it."""
        await self._receive()
        await self._asgi_send({"type": "websocket.accept"})
        try:
            await self._begin()
            while (message := await self._receive())["type"] == "websocket.receive":
                await self._hear(message)
        except DatabaseError as error:
            log.warning("A viewer could not be served: %s", error)
            await self._end(TRY_LATER)
        finally:
            self._stop()

    async def _begin(self) -> None:
        if not is_live(self._viewer.key):
            await self._end(BAD_REQUEST)
            return
        answer = await rounds().verdict(self._watch)
        if answer is not Verdict.OK:
            await self._end(answer)
            return
        frame = await self._join()
        if frame is None:
            return
        seq = self._asked("seq")
        lacking = opening(frame, seq=int(seq) if seq.isascii() and seq.isdigit() else None, shape=self._asked("shape"))
        text = "".join([beat(frame, feed().age_s(), lost=feed().lost()), *lacking])
        if not await self._send({"type": "websocket.send", "text": text}):
            await self._end(TRY_LATER)
            return
        feed().hub.begin(self._viewer, frame)
        rounds().join(self, self._watch, self._end)

    async def _hear(self, message: Mapping[str, Any]) -> None:
        """``{"do": "pause"}`` stops changes, ``"resume"`` and ``"subscribe"`` go on with what changed meanwhile."""
        text = message.get("text")
        if text is None or len(text) > MESSAGE_BYTES_MAX:
            await self._end(BAD_REQUEST)
            return
        if self._viewer.shown is None:
            return
        match _command(text):
            case "pause":
                feed().hub.pause(self._viewer)
            case "resume" | "subscribe":
                await self._join()
            case _:
                await self._end(BAD_REQUEST)

    async def _join(self) -> Frame | None:
        frame = await feed().join(self._viewer)
        if frame is None:
            await self._end(TRY_LATER)
        return frame

    # Ending

    def _stop(self) -> None:
        self._viewer.shown = None
        feed().leave(self._viewer)
        rounds().leave(self)

    def _end_soon(self) -> None:
        self._ending = asyncio.create_task(self._end(TRY_LATER), name="ops end")

    async def _end(self, code: int) -> None:
        self._stop()
        # A plain number: what the server makes of it is particular about its type.
        await self._send({"type": "websocket.close", "code": int(code)})

    async def _send(self, message: Mapping[str, Any]) -> bool:
        """Whether the server took it in time."""
        try:
            await asyncio.wait_for(self._asgi_send(message), SEND_TIMEOUT_S)
        except TimeoutError:
            return False
        return True

    def _asked(self, name: str) -> str:
        return self._question.get(name, [""])[0]


def _session_key(scope: Scope) -> str | None:
    cookies: bytes = dict(scope["headers"]).get(b"cookie", b"")
    found: str | None = parse_cookie(cookies.decode("latin-1")).get(settings.SESSION_COOKIE_NAME)
    return found


def _command(text: str) -> str | None:
    try:
        message: Any = json.loads(text)
    except ValueError:
        return None
    return message.get("do") if isinstance(message, dict) and isinstance(message.get("do"), str) else None
