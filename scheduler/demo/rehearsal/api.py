"""The REST API as a rehearsal uses it: like any client, with a token, over HTTP.

It shares the machine with what it rehearses, and plays thousands of clients: so it speaks just as much HTTP as one
server needs that says how long its answers are. Decides what to do with an answer that nobody expected: it ends the
rehearsal with what the server said.
"""

from __future__ import annotations

import asyncio
from typing import Any, Final
from urllib.parse import urlsplit

import orjson

TIMEOUT_S: Final = 90.0
_END: Final = b"\r\n\r\n"
_LENGTH: Final = b"\r\ncontent-length:"


class RehearsalFailed(Exception):
    """The rehearsal itself could not go on; the message is a sentence."""


class Api:
    """Calls under `/api/v1`, over as many connections as there are calls at once; they stay open for the next."""

    def __init__(self, url: str, token: str) -> None:
        place = urlsplit(url)
        self._host, self._port = place.hostname, place.port
        self._head = f"Host: {place.netloc}\r\nAuthorization: Bearer {token}\r\nContent-Type: application/json\r\n"
        self._idle: list[_Line] = []

    async def ask(self, method: str, path: str, body: object | None = None) -> tuple[int, Any]:
        """The status and the decoded answer, whatever they are. Raises RehearsalFailed when there is none."""
        data = b"" if body is None else orjson.dumps(body)
        head = f"{method} /api/v1{path} HTTP/1.1\r\n{self._head}Content-Length: {len(data)}\r\n\r\n"
        line: _Line | None = None
        try:
            async with asyncio.timeout(TIMEOUT_S):
                line = self._free() or _Line(*await asyncio.open_connection(self._host, self._port))
                status, said = await line.ask(head.encode() + data)
        except (OSError, TimeoutError, asyncio.IncompleteReadError) as error:
            raise RehearsalFailed(f"{method} {path} was not answered: {type(error).__name__} {error}") from error
        else:
            self._idle.append(line)
            line = None
        finally:
            if line is not None:
                line.close()
        return status, orjson.loads(said) if said else None

    async def call(self, method: str, path: str, body: object | None = None) -> Any:
        """The decoded answer of a call that must succeed. Raises RehearsalFailed."""
        status, answer = await self.ask(method, path, body)
        if status >= 400:  # noqa: PLR2004 - where errors begin
            raise RehearsalFailed(f"{method} {path} was answered with {status}: {str(answer)[:500]}")
        return answer

    def close(self) -> None:
        """Close the connections that nobody uses."""
        while self._idle:
            self._idle.pop().close()

    def _free(self) -> _Line | None:
        while self._idle:
            line = self._idle.pop()
            if line.is_open():
                return line
            line.close()
        return None


class _Line:
    """One connection."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    async def ask(self, request: bytes) -> tuple[int, bytes]:
        """Send a request; the status and the body of its answer."""
        self._writer.write(request)
        head = (await self._reader.readuntil(_END)).lower()
        at = head.find(_LENGTH)
        length = 0 if at < 0 else int(head[at + len(_LENGTH) : head.index(b"\r\n", at + 2)])
        return int(head.split(b" ", 2)[1]), await self._reader.readexactly(length)

    def is_open(self) -> bool:
        """Whether the server has not hung up, as far as is known."""
        return not self._reader.at_eof() and not self._writer.is_closing()

    def close(self) -> None:
        """Hang up."""
        self._writer.close()
