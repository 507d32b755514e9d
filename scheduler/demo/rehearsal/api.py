"""The REST API as a rehearsal uses it: like any client, with a token, over HTTP.

Decides what to do with an answer that nobody expected: it ends the rehearsal with what the server said.
"""

from __future__ import annotations

from typing import Any, Final

import httpx2 as httpx

TIMEOUT_S: Final = 90.0
CONNECTIONS_MAX: Final = 2_500
"""Each session that waits for its answer has a connection open."""


class RehearsalFailed(Exception):
    """The rehearsal itself could not go on; the message is a sentence."""


class Api:
    """Calls under `/api/v1`."""

    def __init__(self, url: str, token: str) -> None:
        self._http = httpx.AsyncClient(
            base_url=f"{url}/api/v1",
            headers={"Authorization": f"Bearer {token}"},
            timeout=TIMEOUT_S,
            trust_env=False,
            limits=httpx.Limits(max_connections=CONNECTIONS_MAX),
        )

    async def ask(self, method: str, path: str, body: object | None = None) -> tuple[int, Any]:
        """The status and the decoded answer, whatever they are."""
        answer = await self._http.request(method, path, json=body)
        return answer.status_code, answer.json() if answer.content else None

    async def call(self, method: str, path: str, body: object | None = None) -> Any:
        """The decoded answer of a call that must succeed. Raises RehearsalFailed."""
        status, answer = await self.ask(method, path, body)
        if status >= 400:  # noqa: PLR2004 - where errors begin
            raise RehearsalFailed(f"{method} {path} was answered with {status}: {str(answer)[:500]}")
        return answer

    async def aclose(self) -> None:
        """Close the connections."""
        await self._http.aclose()
