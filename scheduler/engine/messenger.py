"""Posts alerts of budgets to who listens, on the engine that leads. Decides nothing; any number may post at once.

An alert is posted at least once, under one id; it must never hold up anything else.
"""

from __future__ import annotations

import time
from http import HTTPStatus
from typing import TYPE_CHECKING, Final

import httpx2 as httpx
import orjson

from scheduler.engine.db_thread import DbThread
from scheduler.engine.outgoing import AnswerTooLarge, DestinationClosed, one_time_client, post, signature_headers
from scheduler.policy.alerts import DueAlert, message_of
from scheduler.services.alerts import take_due, told

if TYPE_CHECKING:
    from scheduler.engine.runner import Engine

LOOK_EVERY_S: Final = 1.0
TIMEOUT_S: Final = 10.0
ANSWER_BYTES_MAX: Final = 65_536


class Messenger:
    """The loop of one engine that tells alerts."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._db = DbThread("messenger")

    async def once(self) -> None:
        """Tell what is due, then rest."""
        due = await self._db.call(take_due) if self._engine.leading else []
        for alert in due:
            await self._db.call(told, alert, await tell(alert))
        if not due:
            await self._engine.rest(LOOK_EVERY_S)

    def close(self) -> None:
        """Give up the connection."""
        self._db.close()


async def tell(alert: DueAlert) -> str | None:
    """Post an alert to all its targets; what went wrong with the last that did not take it, None when all did."""
    body = orjson.dumps(message_of(alert))
    fault = None
    async with one_time_client() as client:
        for url, secret in alert.targets:
            headers = signature_headers(
                secret.encode(), body, message_id=f"cronoq-alert-{alert.id}", timestamp_s=int(time.time())
            )
            try:
                answer = await post(client, url, body, headers, timeout_s=TIMEOUT_S, answer_bytes_max=ANSWER_BYTES_MAX)
            except (TimeoutError, httpx.HTTPError, DestinationClosed, AnswerTooLarge) as error:
                fault = f"{type(error).__name__}: {error}"
                continue
            if not HTTPStatus.OK <= answer.status < HTTPStatus.MULTIPLE_CHOICES:
                fault = f"HTTP {answer.status}"
    return fault
