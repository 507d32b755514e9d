"""A crowd of remote workers that report success at once, on as few instructions as will do: it shares the machine.

Speaks just enough HTTP and websocket for one server that answers in whole frames and says how long its answers are.
"""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from contextlib import suppress
from typing import Any, Final

import orjson

NO_MASK: Final = bytes(4)
"""Clients have to mask what they send; a mask of zeros leaves it as it is."""
FINAL_TEXT: Final = 0x81
FINAL_PONG: Final = 0x8A
CLOSE: Final = 0x8
PING: Final = 0x9
MEDIUM: Final = 126
LARGE: Final = 127
MEDIUM_MAX: Final = 0xFFFF


UPGRADE: Final = (
    b"GET /ws/worker/ HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer %s\r\nUpgrade: websocket\r\n"
    b"Connection: Upgrade\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: MDEyMzQ1Njc4OWFiY2RlZg==\r\n\r\n"
)


class Crowd:
    """Workers; `done` counts acknowledged reports by worker."""

    def __init__(self, token: str) -> None:
        self.token = token
        self.done: Counter[str] = Counter()

    async def socket(self, name: str, slots: int, port: int) -> None:
        """One worker on a websocket, which comes back as workers do."""
        while True:
            with suppress(OSError, asyncio.IncompleteReadError):
                await self._socket(name, slots, port)
            await asyncio.sleep(random.uniform(0.2, 2.0))  # noqa: S311 - jitter

    async def _socket(self, name: str, slots: int, port: int) -> None:
        line = await Line.open(port, self.token)
        hello = {"type": "hello", "protocol": 1, "owner": name, "pools": ["bench"], "slots": slots, "batches": True}
        line.send(orjson.dumps(hello))
        batches = False
        while (frame := await line.frame()) is not None:
            said = orjson.loads(frame)
            answers = []
            for each in said if isinstance(said, list) else [said]:
                match each["type"]:
                    case "ready":
                        batches = each.get("batches", False)
                    case "lease":
                        answers.append(b'{"type":"complete","lease_id":%d}' % each["lease_id"])
                    case "settled":
                        self.done[name] += "state" in each
                    case "ping":
                        answers.append(b'{"type":"pong","n":%d}' % each["n"])
            if batches and answers:
                line.send(b"[" + b",".join(answers) + b"]")
            elif answers:
                for answer in answers:
                    line.send(answer)

    async def poll(self, name: str, slots: int, port: int) -> None:
        """One worker that polls, and comes back likewise."""
        while True:
            with suppress(OSError, asyncio.IncompleteReadError):
                await self._poll(name, slots, port)
            await asyncio.sleep(random.uniform(0.2, 2.0))  # noqa: S311 - jitter

    async def _poll(self, name: str, slots: int, port: int) -> None:
        """Over one connection; reports go with the next poll."""
        line = await Line.open(port)
        worker = (await line.post("/workers", self.token, {"owner": name, "pools": ["bench"], "slots": slots}))["id"]
        reports: list[dict[str, Any]] = []
        while True:
            path = f"/workers/{worker}/lease?max={slots}&wait_s=20"
            news = await line.post(path, self.token, {"reports": reports})
            self.done[name] += sum("state" in each for each in news.get("settled", ()))
            reports = [{"type": "complete", "lease_id": lease["lease_id"]} for lease in news["leases"]]


class Line:
    """One connection that stays open."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    @classmethod
    async def open(cls, port: int, token: str | None = None) -> Line:
        """Connect; with a token, go on as a worker's websocket."""
        line = cls(*await asyncio.open_connection("127.0.0.1", port))
        if token is not None:
            line._writer.write(UPGRADE % token.encode())
            await line._reader.readuntil(b"\r\n\r\n")
        return line

    async def post(self, path: str, token: str, body: object) -> dict[str, Any]:
        """One request and its decoded answer."""
        data = orjson.dumps(body)
        head = f"POST /api/v1{path} HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {token}\r\n"
        head += f"Content-Type: application/json\r\nContent-Length: {len(data)}\r\n\r\n"
        self._writer.write(head.encode() + data)
        answer = (await self._reader.readuntil(b"\r\n\r\n")).lower()
        if not answer.startswith(b"http/1.1 20"):
            raise ConnectionError(answer.decode("latin-1"))
        at = answer.index(b"content-length:") + 15
        said: dict[str, Any] = orjson.loads(await self._reader.readexactly(int(answer[at : answer.index(b"\r\n", at)])))
        return said

    def send(self, data: bytes) -> None:
        """One text frame."""
        self._send(FINAL_TEXT, data)

    def _send(self, first: int, data: bytes) -> None:
        if len(data) < MEDIUM:
            head = bytes((first, 0x80 | len(data)))
        elif len(data) <= MEDIUM_MAX:
            head = bytes((first, 0x80 | MEDIUM)) + len(data).to_bytes(2, "big")
        else:
            head = bytes((first, 0x80 | LARGE)) + len(data).to_bytes(8, "big")
        self._writer.write(head + NO_MASK + data)

    async def frame(self) -> bytes | None:
        """The next text frame; None once the server closes."""
        while True:
            first, length = await self._reader.readexactly(2)
            if length == MEDIUM:
                length = int.from_bytes(await self._reader.readexactly(2), "big")
            elif length == LARGE:
                length = int.from_bytes(await self._reader.readexactly(8), "big")
            data = await self._reader.readexactly(length)
            if first & 0xF == CLOSE:
                self._writer.close()
                return None
            if first & 0xF != PING:
                return data
            self._send(FINAL_PONG, data)
