"""HTTP/1.1 requests out of bytes, in whatever pieces they arrive (RFC 9112, the server's half).

Decides where a request ends and refuses what is ambiguous: two lengths, folded headers, names with blanks. It must
never read a socket, and never hold more than its bounds. It is ours for speed alone: the simulator shares its machine
with what it measures, and a general parser in Python took half of its time.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from http import HTTPStatus
from typing import Final

HEAD_BYTES_MAX: Final = 32 * 2**10
BODY_BYTES_MAX: Final = 4 * 2**20
CHUNK_LINE_BYTES_MAX: Final = 1024

_REQUEST_LINE = re.compile(r"([!#$%&'*+\-.^_`|~0-9A-Za-z]{1,32}) ([!-~]{1,8192}) HTTP/1\.([01])")
_HEADER_LINE = re.compile(r"([!#$%&'*+\-.^_`|~0-9A-Za-z]+):[ \t]*([^\x00\r\n]*)")
_LENGTH = re.compile(r"[0-9]{1,10}")
_CHUNK_SIZE = re.compile(rb"([0-9A-Fa-f]{1,8})(?:[ \t]*;[^\r\n]*)?")


class BadRequest(Exception):
    """The bytes are no request that can be served; the connection cannot go on."""

    def __init__(self, status: HTTPStatus) -> None:
        super().__init__(status.phrase)
        self.status = status


@dataclass(frozen=True, slots=True)
class Request:
    """A whole request; header names are lower case."""

    method: str
    path: str
    query: str
    headers: dict[str, str]
    body: bytes
    keep_alive: bool
    chunks_known: bool


@dataclass(slots=True)
class _Head:
    method: str
    target: str
    minor: str
    headers: dict[str, str]
    length: int
    chunked: bool


class RequestReader:
    """Feed it bytes, then take whole requests from it, one at a time."""

    def __init__(self) -> None:
        self._buffer = bytearray()
        self._head: _Head | None = None
        self._chunks = bytearray()
        self._told_to_go_on = False

    def feed(self, data: bytes) -> None:
        """More bytes from the client."""
        self._buffer += data

    def wants_go_ahead(self) -> bool:
        """Whether the client waits for `100 Continue` before it sends its body; true once for each request."""
        waiting = self._head is not None and self._head.headers.get("expect", "").lower() == "100-continue"
        if not waiting or self._told_to_go_on or self._buffer:
            return False
        self._told_to_go_on = True
        return True

    def take(self) -> Request | None:
        """The next whole request, or None until more bytes come. Raises BadRequest."""
        if self._head is None:
            self._head = self._take_head()
            if self._head is None:
                return None
        head = self._head
        body = self._take_chunked() if head.chunked else self._take_bytes(head.length)
        if body is None:
            return None
        self._head, self._told_to_go_on = None, False
        path, _, query = head.target.partition("?")
        wishes = head.headers.get("connection", "").lower()
        return Request(
            method=head.method,
            path=path,
            query=query,
            headers=head.headers,
            body=body,
            keep_alive=head.minor == "1" and "close" not in wishes,
            chunks_known=head.minor == "1",
        )

    def _take_head(self) -> _Head | None:
        while self._buffer.startswith(b"\r\n"):
            del self._buffer[:2]
        end = self._buffer.find(b"\r\n\r\n", 0, HEAD_BYTES_MAX)
        if end < 0:
            if len(self._buffer) >= HEAD_BYTES_MAX:
                raise BadRequest(HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE)
            return None
        first, *lines = self._buffer[:end].decode("latin-1").split("\r\n")
        del self._buffer[: end + 4]
        line = _REQUEST_LINE.fullmatch(first)
        if line is None:
            raise BadRequest(HTTPStatus.BAD_REQUEST)
        headers = _headers(lines)
        length, chunked = _framing(headers)
        return _Head(line[1], line[2], line[3], headers, length, chunked)

    def _take_bytes(self, length: int) -> bytes | None:
        if len(self._buffer) < length:
            return None
        body = bytes(self._buffer[:length])
        del self._buffer[:length]
        return body

    def _take_chunked(self) -> bytes | None:
        """Take whole chunks as they come; the body, once the chunk of size zero and its trailers are there."""
        while True:
            end = self._buffer.find(b"\r\n", 0, CHUNK_LINE_BYTES_MAX)
            if end < 0:
                if len(self._buffer) >= CHUNK_LINE_BYTES_MAX:
                    raise BadRequest(HTTPStatus.BAD_REQUEST)
                return None
            line = _CHUNK_SIZE.fullmatch(self._buffer[:end])
            if line is None:
                raise BadRequest(HTTPStatus.BAD_REQUEST)
            size = int(line[1], 16)
            if len(self._chunks) + size > BODY_BYTES_MAX:
                raise BadRequest(HTTPStatus.REQUEST_ENTITY_TOO_LARGE)
            if size == 0:
                return self._take_trailers(end)
            start = end + 2
            if len(self._buffer) < start + size + 2:
                return None
            if self._buffer[start + size : start + size + 2] != b"\r\n":
                raise BadRequest(HTTPStatus.BAD_REQUEST)
            self._chunks += self._buffer[start : start + size]
            del self._buffer[: start + size + 2]

    def _take_trailers(self, end_of_size: int) -> bytes | None:
        """Read past trailers and drop them. The empty line may follow the size at once, so its line end counts too."""
        end = self._buffer.find(b"\r\n\r\n", end_of_size)
        if end < 0:
            if len(self._buffer) - end_of_size > HEAD_BYTES_MAX:
                raise BadRequest(HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE)
            return None
        del self._buffer[: end + 4]
        body, self._chunks = bytes(self._chunks), bytearray()
        return body


def _headers(lines: list[str]) -> dict[str, str]:
    headers: dict[str, str] = {}
    for line in lines:
        found = _HEADER_LINE.fullmatch(line)
        if found is None:
            raise BadRequest(HTTPStatus.BAD_REQUEST)
        name, value = found[1].lower(), found[2].rstrip(" \t")
        if name in headers:
            if name in ("content-length", "transfer-encoding", "host"):
                raise BadRequest(HTTPStatus.BAD_REQUEST)
            value = f"{headers[name]}, {value}"
        headers[name] = value
    return headers


def _framing(headers: dict[str, str]) -> tuple[int, bool]:
    """The body's length, or that it comes in chunks."""
    length, coding = headers.get("content-length"), headers.get("transfer-encoding")
    if coding is not None:
        if length is not None:
            raise BadRequest(HTTPStatus.BAD_REQUEST)
        if coding.lower() != "chunked":
            raise BadRequest(HTTPStatus.NOT_IMPLEMENTED)
        return 0, True
    if length is None:
        return 0, False
    if not _LENGTH.fullmatch(length):
        raise BadRequest(HTTPStatus.BAD_REQUEST)
    if int(length) > BODY_BYTES_MAX:
        raise BadRequest(HTTPStatus.REQUEST_ENTITY_TOO_LARGE)
    return int(length), False
