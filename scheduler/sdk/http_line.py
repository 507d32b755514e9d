"""HTTP for a worker that polls: one connection that stays open, and that another thread can break off.

The standard library's client, because a read that waits for half a minute must end at once when its worker is told to.
"""

from __future__ import annotations

import json
import socket
from collections.abc import Mapping
from contextlib import suppress
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from typing import Any, Final, NamedTuple
from urllib.parse import urlsplit

from scheduler.sdk.errors import SchedulerError

API: Final = "/api/v1"
KINDS: Final = {"http": HTTPConnection, "ws": HTTPConnection, "https": HTTPSConnection, "wss": HTTPSConnection}


class Reply(NamedTuple):
    """An answer: its status and its JSON, an empty object where there is none."""

    status: int
    body: Mapping[str, Any]

    @property
    def detail(self) -> str:
        """What a problem document says."""
        return str(self.body.get("detail") or f"HTTP {self.status}")

    @property
    def code(self) -> str:
        """Its stable code."""
        return str(self.body.get("code") or f"http_{self.status}")


class HttpLine:
    """One connection to the server, for one thread; `break_off` is for the others."""

    def __init__(self, url: str, token: str | None) -> None:
        parts = urlsplit(url)
        kind = KINDS.get(parts.scheme)
        if kind is None or not parts.hostname:
            raise SchedulerError(f"{url!r} is no address of a server: http://host:port")
        self._http = kind(parts.hostname, parts.port)
        self._path = parts.path.rstrip("/") + API
        self._headers = {"Authorization": f"Bearer {token or ''}", "Content-Type": "application/json"}
        self.broken = False

    def post(self, path: str, body: object, *, timeout_s: float) -> Reply:
        """One request and its answer. Raises OSError when there is none."""
        reused = self._http.sock is not None
        try:
            return self._post(path, body, timeout_s)
        except TimeoutError:
            raise
        except OSError:
            # A server may close a connection that was idle just when it is used again.
            if not reused or self.broken:
                raise
        return self._post(path, body, timeout_s)

    def _post(self, path: str, body: object, timeout_s: float) -> Reply:
        if self.broken:
            raise ConnectionError("the connection was broken off")
        http = self._http
        http.timeout = timeout_s
        if http.sock is not None:
            http.sock.settimeout(timeout_s)
        try:
            http.request("POST", self._path + path, json.dumps(body, separators=(",", ":")), self._headers)
            answer = http.getresponse()
            return Reply(answer.status, _read(answer.read()))
        except HTTPException as error:
            http.close()
            raise ConnectionError(f"the answer is none: {error!r}") from error
        except OSError:
            http.close()
            raise

    def break_off(self) -> None:
        """Fail what waits for an answer, and whatever is asked later. Safe from any thread."""
        self.broken = True
        sock = self._http.sock
        if sock is not None:
            with suppress(OSError):
                sock.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        """Give the connection up. For its own thread."""
        self._http.close()


def _read(data: bytes) -> Mapping[str, Any]:
    try:
        body = json.loads(data) if data else {}
    except ValueError:
        return {}
    return body if isinstance(body, dict) else {}
