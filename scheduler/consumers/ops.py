"""The console's socket, ``/ws/ops/?page=&scope=&seq=&shape=``: one watcher of one live page.

It sends the newest frame when it differs from what the page shows, else a beat of at most 200 bytes every five seconds.
It accepts only ``subscribe``, ``pause`` and ``resume``; every change to the system goes through a form instead. Session
and permission are asked again every half minute (`consumers/rounds.py`).
"""

from __future__ import annotations

import asyncio
import json
from contextlib import suppress
from typing import Any, Final
from urllib.parse import parse_qs

from channels.db import database_sync_to_async
from channels.generic.websocket import AsyncWebsocketConsumer

from scheduler.consumers.access import Verdict, Watch, verdict
from scheduler.consumers.rounds import rounds
from scheduler.live.feed import feed
from scheduler.live.frames import Frame, Key, beat, opening
from scheduler.live.hub import Slot
from scheduler.live.pages import is_live

BEAT_EVERY_S: Final = 5.0
SEND_TIMEOUT_S: Final = 5.0
MESSAGE_BYTES_MAX: Final = 1024

TRY_LATER: Final = 1013
TOO_BIG: Final = 1009
BAD_REQUEST: Final = 4400


class OpsConsumer(AsyncWebsocketConsumer):
    """One open page."""

    _slot: Slot
    _shown: Frame
    _sender: asyncio.Task[None] | None = None

    async def connect(self) -> None:
        """Accept first, so that the page learns the close code instead of retrying for ever."""
        await self.accept()
        question = parse_qs(self.scope["query_string"].decode("latin-1"))
        self._slot = Slot(Key(_first(question, "page"), _first(question, "scope")))
        if not is_live(self._slot.key):
            await self.close(BAD_REQUEST)
            return
        answer = await self._verdict()
        if answer is not Verdict.OK:
            await self.close(answer)
            return
        seq = _first(question, "seq")
        await self._begin(seq=int(seq) if seq.isascii() and seq.isdigit() else None, shape=_first(question, "shape"))

    async def disconnect(self, code: int) -> None:  # noqa: ARG002 - Channels passes it
        """End the watch and its tasks."""
        self._stop()

    async def receive(self, text_data: str | None = None, bytes_data: bytes | None = None) -> None:  # noqa: ARG002 - binary is refused
        """``{"do": "pause"}`` stops frames, ``"resume"`` and ``"subscribe"`` start them with what changed meanwhile."""
        if text_data is None or len(text_data) > MESSAGE_BYTES_MAX:
            await self.close(TOO_BIG if text_data else BAD_REQUEST)
            return
        if self._sender is None:
            return
        match _command(text_data):
            case "pause":
                self._pause()
            case "resume" | "subscribe":
                await self._resume()
            case _:
                await self.close(BAD_REQUEST)

    # A watch: begin, pause, resume, stop.

    async def _begin(self, *, seq: int | None, shape: str) -> None:
        frame = await self._join()
        if frame is None:
            return
        self._shown = frame
        await self._send("".join([beat(frame, feed().age_s()), *opening(frame, seq=seq, shape=shape)]))
        self._sender = asyncio.create_task(self._keep_sending(), name="ops sender")
        rounds().join(self, self._watch(), self._end)

    async def _resume(self) -> None:
        frame = await self._join()
        if frame is not None:
            await self._show(frame)

    async def _join(self) -> Frame | None:
        frame = await feed().join(self._slot)
        if frame is None:
            await self._end(TRY_LATER)
        return frame

    def _pause(self) -> None:
        feed().leave(self._slot)

    def _stop(self) -> None:
        feed().leave(self._slot)
        rounds().leave(self)
        if self._sender is not None and self._sender is not asyncio.current_task():
            self._sender.cancel()
        self._sender = None

    # The loop of a watch.

    async def _keep_sending(self) -> None:
        silence_s = 0.0
        clock = asyncio.get_running_loop().time
        while self._sender is not None:
            waited_from_s = clock()
            frame = await self._slot.take(BEAT_EVERY_S - silence_s)
            silence_s += clock() - waited_from_s
            sent = await self._show(frame) if frame else False
            if not sent and silence_s >= BEAT_EVERY_S - 0.01:
                sent = await self._send(beat(self._shown, feed().age_s()))
            if sent:
                silence_s = 0.0

    async def _show(self, frame: Frame) -> bool:
        changed = frame.since(self._shown) if frame is not self._shown else ""
        self._shown = frame
        return await self._send(beat(frame, feed().age_s()) + changed) if changed else False

    async def _send(self, text: str) -> bool:
        try:
            await asyncio.wait_for(self.send(text_data=text), SEND_TIMEOUT_S)
        except TimeoutError:
            await self._end(TRY_LATER)
        return True

    async def _end(self, code: int) -> None:
        self._stop()
        with suppress(TimeoutError):
            await asyncio.wait_for(self.close(code), SEND_TIMEOUT_S)

    async def _verdict(self) -> Verdict:
        answer: Verdict = await database_sync_to_async(verdict)(self._watch())
        return answer

    def _watch(self) -> Watch:
        session = self.scope.get("session")
        return Watch(session.session_key if session is not None else None, self._slot.key)


def _first(question: dict[str, list[str]], name: str) -> str:
    return question.get(name, [""])[0]


def _command(text: str) -> str | None:
    try:
        message: Any = json.loads(text)
    except ValueError:
        return None
    return message.get("do") if isinstance(message, dict) and isinstance(message.get("do"), str) else None
