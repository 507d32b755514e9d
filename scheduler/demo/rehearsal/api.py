"""The REST API as a rehearsal uses it: like any client, with a token, over HTTP.

Decides what to do with an answer that nobody expected: it ends the rehearsal with what the server said.
"""

from __future__ import annotations

from itertools import cycle
from typing import Any, Final

from scheduler.demo.rehearsal.loopback import loopback_client

TIMEOUT_S: Final = 90.0
CLIENTS: Final = 64
"""Each session that waits has a connection open, and a client looks through all of its own with every request."""


class RehearsalFailed(Exception):
    """The rehearsal itself could not go on; the message is a sentence."""


class Api:
    """Calls under `/api/v1`."""

    def __init__(self, url: str, token: str) -> None:
        base_url, headers = f"{url}/api/v1", {"Authorization": f"Bearer {token}"}
        self._clients = [loopback_client(TIMEOUT_S, base_url=base_url, headers=headers) for _ in range(CLIENTS)]
        self._next = cycle(self._clients)

    async def ask(self, method: str, path: str, body: object | None = None) -> tuple[int, Any]:
        """The status and the decoded answer, whatever they are."""
        answer = await next(self._next).request(method, path, json=body)
        return answer.status_code, answer.json() if answer.content else None

    async def call(self, method: str, path: str, body: object | None = None) -> Any:
        """The decoded answer of a call that must succeed. Raises RehearsalFailed."""
        status, answer = await self.ask(method, path, body)
        if status >= 400:  # noqa: PLR2004 - where errors begin
            raise RehearsalFailed(f"{method} {path} was answered with {status}: {str(answer)[:500]}")
        return answer

    async def aclose(self) -> None:
        """Close the connections."""
        for client in self._clients:
            await client.aclose()
