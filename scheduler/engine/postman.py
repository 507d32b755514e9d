"""Posts events to webhooks, on the engine that leads. Decides nothing: what is posted and what follows are services'.

A post holds no transaction and no thread. One webhook's slow receiver keeps no other's events waiting, up to a bound.
"""

from __future__ import annotations

import asyncio
import logging
import time
from typing import TYPE_CHECKING, Final

import httpx2 as httpx

from scheduler.engine.db_thread import DbThread
from scheduler.engine.outgoing import (
    AnswerTooLarge,
    DestinationClosed,
    one_time_client,
    post,
    signature_headers,
)
from scheduler.providers.delays import retry_after_s
from scheduler.providers.errors import short_message
from scheduler.services.delivering import (
    Attempted,
    Stretch,
    delivered,
    due_webhooks,
    forget_deliveries,
    next_stretch,
)

if TYPE_CHECKING:
    from scheduler.engine.runner import Engine

logger = logging.getLogger(__name__)

LOOK_EVERY_S: Final = 0.25
POSTS_AT_ONCE_MAX: Final = 20
STRETCHES_IN_A_ROW_MAX: Final = 50
TIMEOUT_S: Final = 15.0
ANSWER_BYTES_MAX: Final = 65_536
FORGET_EVERY_ROUNDS: Final = 2_400


class Postman:
    """The loop of one engine that delivers."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._db = DbThread("postman")
        self._client = one_time_client()
        self._busy: dict[int, asyncio.Task[None]] = {}
        self._rounds = 0

    async def once(self) -> None:
        """Begin with those that are due and not being served, then rest."""
        if not self._engine.leading:
            await self._engine.rest(1.0)
            return
        room = POSTS_AT_ONCE_MAX - len(self._busy)
        # Those that are being served may be due again: more are read, so that they hide no other.
        due = await self._db.call(due_webhooks, POSTS_AT_ONCE_MAX + len(self._busy)) if room > 0 else []
        for webhook in [each for each in due if each not in self._busy][:room]:
            self._busy[webhook] = asyncio.create_task(self._serve(webhook), name=f"webhook {webhook}")
        if self._rounds % FORGET_EVERY_ROUNDS == 0:
            await self._db.call(forget_deliveries)
        self._rounds += 1
        await self._engine.rest(LOOK_EVERY_S)

    async def close(self) -> None:
        """Give up what is under way: it was not confirmed, and will be posted again."""
        for task in self._busy.values():
            task.cancel()
        await asyncio.gather(*self._busy.values(), return_exceptions=True)
        await self._client.aclose()
        self._db.close()

    async def _serve(self, webhook: int) -> None:
        try:
            for _ in range(STRETCHES_IN_A_ROW_MAX):
                stretch = await self._db.call(next_stretch, webhook)
                if stretch is None:
                    break
                await self._db.call(delivered, stretch, await self._post(stretch))
        except Exception:
            logger.exception("webhook %d was not served; it is tried again", webhook)
        finally:
            del self._busy[webhook]

    async def _post(self, stretch: Stretch) -> Attempted:
        began = time.monotonic()
        headers = signature_headers(
            stretch.secret, stretch.body, message_id=stretch.message_id, timestamp_s=int(time.time())
        )
        try:
            answer = await post(
                self._client,
                stretch.url,
                stretch.body,
                headers,
                timeout_s=TIMEOUT_S,
                answer_bytes_max=ANSWER_BYTES_MAX,
            )
        except (TimeoutError, httpx.TimeoutException):
            return Attempted(None, time.monotonic() - began, f"no whole answer within {TIMEOUT_S:g} s")
        except (httpx.HTTPError, DestinationClosed, AnswerTooLarge) as error:
            return Attempted(None, time.monotonic() - began, short_message(f"{type(error).__name__}: {error}"))
        took_s = time.monotonic() - began
        if httpx.codes.is_success(answer.status):
            return Attempted(answer.status, took_s)
        delay_s = retry_after_s(dict(answer.headers), None, now=time.time())
        return Attempted(answer.status, took_s, f"HTTP {answer.status}", delay_s)
