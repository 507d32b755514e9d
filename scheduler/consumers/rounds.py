"""Asks again whether those who watch still may, for all sockets of an event loop at once.

What that costs the database does not depend on how many watch. It must never run while nobody does, and a round that
fails must never be the last.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from weakref import WeakKeyDictionary

from channels.db import database_sync_to_async

from scheduler.consumers.access import Verdict, Watch, verdicts

log = logging.getLogger(__name__)

ASK_AGAIN_S = 30.0

End = Callable[[Verdict], Awaitable[None]]
"""Ends a watch that may not go on."""


class Rounds:
    """The watches of one event loop, and what ends each."""

    def __init__(self) -> None:
        self._watches: dict[object, tuple[Watch, End]] = {}
        self._task: asyncio.Task[None] | None = None
        self._resting = False
        self._asked: dict[Watch, asyncio.Future[Verdict]] = {}
        self._asking: asyncio.Task[None] | None = None

    async def verdict(self, watch: Watch) -> Verdict:
        """Whether somebody may begin to watch, asked together with all who come while the database answers others."""
        answer = self._asked.get(watch)
        if answer is None:
            answer = self._asked[watch] = asyncio.get_running_loop().create_future()
        if self._asking is None or self._asking.done():
            self._asking = asyncio.create_task(self._ask(), name="ops questions")
        # Somebody else may wait for the same answer.
        return await asyncio.shield(answer)

    def join(self, who: object, watch: Watch, end: End) -> None:
        """Ask after this one too, from the next round on."""
        self._watches[who] = watch, end
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._run(), name="ops access")

    def leave(self, who: object) -> None:
        """Forget one; leaving twice is harmless."""
        self._watches.pop(who, None)
        if not self._watches and self._resting and self._task is not None:
            self._task.cancel()
            self._task = None

    async def _run(self) -> None:
        while self._watches:
            self._resting = True
            await asyncio.sleep(ASK_AGAIN_S)
            self._resting = False
            try:
                await self._round()
            except Exception:
                log.exception("Nobody could be asked whether those who watch still may; the next round tries again")

    async def _ask(self) -> None:
        while self._asked:
            asked, self._asked = self._asked, {}
            try:
                answers = await database_sync_to_async(verdicts)(set(asked))
            except Exception as error:  # noqa: BLE001 - it is raised where the answer is waited for
                for answer in asked.values():
                    answer.set_exception(error)
            else:
                for watch, answer in asked.items():
                    answer.set_result(answers[watch])

    async def _round(self) -> None:
        asked = list(self._watches.values())
        answers = await database_sync_to_async(verdicts)({watch for watch, _ in asked})
        refused = [end(answers[watch]) for watch, end in asked if answers[watch] is not Verdict.OK]
        for failure in await asyncio.gather(*refused, return_exceptions=True):
            if failure is not None:
                log.warning("A watch that may not go on could not be ended: %s", failure)


_rounds: WeakKeyDictionary[asyncio.AbstractEventLoop, Rounds] = WeakKeyDictionary()


def rounds() -> Rounds:
    """The rounds of the running event loop."""
    return _rounds.setdefault(asyncio.get_running_loop(), Rounds())
