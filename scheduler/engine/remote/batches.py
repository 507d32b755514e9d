"""Joins what many workers ask of the database at the same time into one transaction after another.

An idle process waits for nothing: the first question is asked at once; those that come meanwhile are the next batch.
A fault of the database's condition is waited out for a while; then everybody in the batch hears of it.
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections import deque
from collections.abc import Callable
from typing import Final, Generic, TypeVar

from scheduler.engine.db_thread import DbThread, close_connection
from scheduler.engine.outbox import PASSING
from scheduler.errors import Unavailable

logger = logging.getLogger(__name__)

PATIENCE_S: Final = 10.0
IDLE_S: Final = 5.0
WAITING_MAX: Final = 20_000
RETRY_S: Final = 0.3
GAP_MAX_S: Final = 0.04

Q = TypeVar("Q")
A = TypeVar("A")


class Batches(Generic[Q, A]):
    """One kind of question on one event loop. `ask` answers a list of them, in order, on a thread of its own.

    A batch takes no further question once it weighs `most`, by `weigh` or in number. With `gap_s` the next batch waits
    so long for each question of the one before (together at most `GAP_MAX_S`): what costs the most under load is the
    number of transactions.
    """

    def __init__(
        self,
        name: str,
        ask: Callable[[list[Q]], list[A]],
        *,
        most: int,
        weigh: Callable[[Q], int] = lambda _: 1,
        gap_s: float = 0.0,
    ) -> None:
        self._name = name
        self._ask = ask
        self._most = most
        self._weigh = weigh
        self._gap_s = gap_s
        self._db = DbThread(name)
        self._waiting: deque[tuple[Q, asyncio.Future[A]]] = deque()
        self._work = asyncio.Event()
        self._running: asyncio.Task[None] | None = None

    def join(self, question: Q) -> asyncio.Future[A]:
        """Ask this with others; the future raises what asking raised, or Unavailable when too many wait."""
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[A] = loop.create_future()
        if len(self._waiting) >= WAITING_MAX:
            detail = "Too much is waiting for the database here; try again."
            answer.set_exception(Unavailable(detail, code="overloaded", retry_after_s=1.0))
            return answer
        self._waiting.append((question, answer))
        self._work.set()
        if self._running is None:
            self._running = loop.create_task(self._run(), name=self._name)
        return answer

    async def _run(self) -> None:
        try:
            while await self._is_wanted():
                batch, weight = self._next_batch()
                await self._answer(batch)
                if self._gap_s:
                    await asyncio.sleep(min(GAP_MAX_S, self._gap_s * weight))
        finally:
            self._running = None
            await self._db.call(close_connection)

    def _next_batch(self) -> tuple[list[tuple[Q, asyncio.Future[A]]], int]:
        batch, weight = [], 0
        while self._waiting and weight < self._most:
            batch.append(self._waiting.popleft())
            weight += self._weigh(batch[-1][0])
        return batch, weight

    async def _is_wanted(self) -> bool:
        """Wait for questions; False after a time in which none came."""
        if self._waiting:
            return True
        self._work.clear()
        try:
            async with asyncio.timeout(IDLE_S):
                await self._work.wait()
        except TimeoutError:
            return bool(self._waiting)
        return True

    async def _answer(self, batch: list[tuple[Q, asyncio.Future[A]]]) -> None:
        loop = asyncio.get_running_loop()
        give_up_at = loop.time() + PATIENCE_S
        while True:
            try:
                answers = await self._db.call(self._ask, [question for question, _ in batch])
            except PASSING as error:
                if loop.time() < give_up_at:
                    await asyncio.sleep(RETRY_S * random.uniform(0.5, 1.0))  # noqa: S311 - jitter
                    continue
                logger.warning("%s: the database does not answer: %s", self._name, error)
                _tell(batch, error)
            except Exception as error:
                logger.exception("%s failed", self._name)
                _tell(batch, error)
            else:
                for (_, future), answer in zip(batch, answers, strict=True):
                    if not future.done():
                        future.set_result(answer)
            return


def _tell(batch: list[tuple[Q, asyncio.Future[A]]], error: Exception) -> None:
    for _, future in batch:
        if not future.done():
            future.set_exception(error)
            # Who hung up does not ask any more.
            future.exception()
