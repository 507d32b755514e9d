"""A client of the REST API that outlives restarts of the server.

Decides how long to wait before a call is repeated. It must never give up on a server that is away, nor repeat a request
that was refused for what it says.
"""

from __future__ import annotations

import asyncio
import json
import logging
import random
from collections.abc import Mapping
from http import HTTPStatus
from pathlib import Path
from typing import Any, Final

import httpx2 as httpx

logger = logging.getLogger(__name__)

TIMEOUT_S: Final = 15.0
BACKOFF_FIRST_S: Final = 0.25
BACKOFF_MAX_S: Final = 8.0
PASSING: Final = frozenset(
    {
        # A token opens nothing while the installation is being prepared anew; the file then has another one.
        HTTPStatus.UNAUTHORIZED,
        HTTPStatus.REQUEST_TIMEOUT,
        HTTPStatus.TOO_MANY_REQUESTS,
        HTTPStatus.INTERNAL_SERVER_ERROR,
        HTTPStatus.BAD_GATEWAY,
        HTTPStatus.SERVICE_UNAVAILABLE,
        HTTPStatus.GATEWAY_TIMEOUT,
    }
)


class Rest:
    """Calls with the administrator's token of a credentials file, which is read again after every fault."""

    def __init__(self, credentials: Path, *, chance: random.Random) -> None:
        self._credentials = credentials
        self._chance = chance
        self._http = httpx.AsyncClient(timeout=TIMEOUT_S, trust_env=False)
        self._known: Mapping[str, str] = {}
        self._away = False

    async def call(self, method: str, path: str, body: object | None = None) -> Any:
        """The decoded answer, or None when the request itself was refused. `path` is under `/api/v1`."""
        faults = 0
        while True:
            try:
                answer = await self._send(method, path, body)
            except (httpx.HTTPError, OSError, ValueError, KeyError) as error:
                fault, asked_s = f"{type(error).__name__}: {error}", 0.0
            else:
                if answer.status_code not in PASSING:
                    self._back()
                    return answer.json() if answer.is_success else None
                fault, asked_s = f"status {answer.status_code}", _retry_after_s(answer)
            self._known = {}
            self._gone(fault)
            most_s = min(BACKOFF_MAX_S, BACKOFF_FIRST_S * 2 ** min(faults, 10))
            await asyncio.sleep(max(asked_s, most_s * self._chance.uniform(0.5, 1.0)))
            faults += 1

    async def aclose(self) -> None:
        """Close the connections."""
        await self._http.aclose()

    async def _send(self, method: str, path: str, body: object | None) -> httpx.Response:
        if not self._known:
            self._known = json.loads(self._credentials.read_text(encoding="utf-8"))
        url = f"{self._known['url'].rstrip('/')}/api/v1{path}"
        return await self._http.request(
            method, url, json=body, headers={"Authorization": f"Bearer {self._known['admin_token']}"}
        )

    def _gone(self, fault: str) -> None:
        if not self._away:
            logger.warning("the server does not take the demo's work (%s); trying again", fault)
            self._away = True

    def _back(self) -> None:
        if self._away:
            logger.info("the server takes the demo's work again")
            self._away = False


def _retry_after_s(answer: httpx.Response) -> float:
    """Seconds the server asked us to wait; ours says it in whole seconds."""
    text = answer.headers.get("retry-after", "")
    return min(60.0, float(text)) if text.isdigit() else 0.0
