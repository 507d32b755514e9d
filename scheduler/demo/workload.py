"""The demo's work: two tenants that share one provider, submitting over REST like any client.

`acme` has people who chat and wait, and agents (`agents`); `globex` has a backlog of evaluations. Decides when and how
much is submitted. It must never let more than about WAITING_MAX tasks wait, nor submit while nobody knows how many do.
"""

from __future__ import annotations

import argparse
import asyncio
import logging
import random
import secrets
import signal
import sys
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from scheduler.demo.agents import AGENTS, Agent, declare_schedules
from scheduler.demo.prompts import chat, evaluation_item
from scheduler.demo.rest import Rest

CHATS_PER_S: Final = 6.0
BURST_EVERY_S: Final = 5.0
BURST: Final = 10
"""Together about eight chats per second."""
CHATS_WAITING_MAX: Final = 200
CANCELLED_FRACTION: Final = 0.02
"""People who close the window before the answer is there."""

EVALUATIONS_LOW: Final = 250
"""So few evaluations waiting ask for the next batches."""
BATCH: Final = 100
BATCHES: Final = 3
WAITING_MAX: Final = 1_000

LOOK_EVERY_S: Final = 1.0
PICTURE_OLD_S: Final = 10.0
"""A picture that has not changed for so long is none: no engine runs."""


@dataclass(slots=True)
class Waiting:
    """How many tasks wait, as far as we know. `known` False: submit nothing."""

    known: bool = False
    chats: int = 0
    evaluations: int = 0

    @property
    def has_room(self) -> bool:
        """Whether anything may be submitted at all."""
        return self.known and self.chats + self.evaluations < WAITING_MAX


class Workload:
    """Both tenants' clients."""

    def __init__(self, rest: Rest, *, chance: random.Random, run: str) -> None:
        self._rest = rest
        self._chance = chance
        self._run = run
        self._items = 0
        self._waiting = Waiting()
        self._asides: set[asyncio.Task[None]] = set()

    async def go_on(self) -> None:
        """Submit until cancelled."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._watch())
            group.create_task(self._chats(CHATS_PER_S, 1))
            group.create_task(self._chats(1.0 / BURST_EVERY_S, BURST))
            group.create_task(self._evaluations())
            group.create_task(declare_schedules(self._rest))
            for _ in range(AGENTS):
                agent = Agent(self._rest, chance=self._chance, may_work=lambda: self._waiting.has_room)
                group.create_task(agent.go_on())

    async def _watch(self) -> None:
        """Keep knowing how many wait."""
        loop = asyncio.get_running_loop()
        newest, changed_at = -1, loop.time()
        while True:
            picture = await self._rest.call("GET", "/snapshot")
            if picture is not None and picture["seq"] != newest:
                newest, changed_at = picture["seq"], loop.time()
                self._waiting = _waiting_in(picture["body"])
            elif loop.time() - changed_at > PICTURE_OLD_S:
                self._waiting.known = False
            await asyncio.sleep(LOOK_EVERY_S)

    async def _chats(self, times_per_s: float, size: int) -> None:
        """People come independently of each other: gaps are exponential."""
        while True:
            await asyncio.sleep(self._chance.expovariate(times_per_s))
            if self._waiting.has_room and self._waiting.chats < CHATS_WAITING_MAX:
                for _ in range(size):
                    self._aside(self._chat())

    async def _chat(self) -> None:
        accepted = await self._rest.call("POST", "/tasks", chat(self._chance))
        if accepted is not None and self._chance.random() < CANCELLED_FRACTION:
            await asyncio.sleep(self._chance.uniform(0.05, 0.5))
            # Refused when it has ended meanwhile, which is as good.
            await self._rest.call("POST", f"/tasks/{accepted['id']}/cancel", {"reason": "the window was closed"})

    def _aside(self, call: Any) -> None:
        """Make a call without waiting for it; while the server is away, calls that pile up are dropped."""
        if len(self._asides) >= CHATS_WAITING_MAX:
            call.close()
            return
        task = asyncio.ensure_future(call)
        self._asides.add(task)
        task.add_done_callback(self._asides.discard)

    async def _evaluations(self) -> None:
        """Add batches whenever few wait, then let a new picture come before looking again."""
        while True:
            await asyncio.sleep(LOOK_EVERY_S)
            if self._waiting.has_room and self._waiting.evaluations < EVALUATIONS_LOW:
                for _ in range(BATCHES):
                    await self._batch()
                await asyncio.sleep(3 * LOOK_EVERY_S)

    async def _batch(self) -> None:
        numbers = range(self._items, self._items + BATCH)
        self._items += BATCH
        tasks = [evaluation_item(self._run, number, self._chance) for number in numbers]
        accepted = await self._rest.call("POST", "/tasks/batch", {"tenant": "globex", "tasks": tasks})
        if accepted is not None:
            unwanted = self._chance.choice(accepted["tasks"])
            await self._rest.call("POST", f"/tasks/{unwanted['id']}/cancel", {"reason": "the item was withdrawn"})


def _waiting_in(picture: dict[str, Any]) -> Waiting:
    """What waits, or soon will, in the pool that both tenants use."""
    for pool in picture["pools"]:
        if pool["name"] == "llm":
            waiting = pool["waiting"]
            return Waiting(known=True, chats=waiting["high"], evaluations=waiting["low"] + pool["retrying"])
    return Waiting()


async def run(credentials: Path, seed: int | None) -> None:
    """Work until SIGINT or SIGTERM."""
    chance = random.Random(seed)  # noqa: S311  # traffic, not secrets
    rest = Rest(credentials, chance=chance)
    work = asyncio.create_task(Workload(rest, chance=chance, run=secrets.token_hex(4)).go_on())
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, work.cancel)
    try:
        with suppress(asyncio.CancelledError):
            await work
    finally:
        await rest.aclose()


def main() -> int:
    """Parse the command line and work; the exit status."""
    parser = argparse.ArgumentParser(prog="workload", description="Submit the demo's work.")
    parser.add_argument("--credentials", type=Path, required=True, help="the credentials file of the installation")
    parser.add_argument("--seed", type=int, help="repeat the same traffic")
    options = parser.parse_args()
    logging.basicConfig(format="%(asctime)s %(levelname)s %(name)s %(message)s", level=logging.WARNING)
    logging.getLogger("scheduler").setLevel(logging.INFO)
    asyncio.run(run(options.credentials, options.seed))
    return 0


if __name__ == "__main__":
    sys.exit(main())
