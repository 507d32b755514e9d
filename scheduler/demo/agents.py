"""The demo's agents: each works on one support case after another, as a run whose steps are tasks.

Decides what an agent asks for and how long it rests. It must never leave a run open that it does not work on: whoever
cannot see the end of its steps in time ends its run as failed.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from typing import Any, Final

from scheduler.demo.prompts import NEEDS, QUESTIONS
from scheduler.demo.rest import Rest

AGENTS: Final = 3
REST_S: Final = (6.0, 24.0)
LOOK_EVERY_S: Final = 2.0
PATIENCE_S: Final = 180.0
CAPS: Final = {"max_steps": 20, "max_width": 3, "max_cost_usd": "0.05", "wall_clock_s": 600}
ENDED: Final = frozenset({"succeeded", "failed", "dead_lettered", "cancelled", "skipped", "missed", "shed"})
SCHEDULES: Final = (
    ("nightly-evaluation", "30 2 * * *", "Europe/Berlin", "globex", "low"),
    ("inbox-digest", "*/10 * * * *", "UTC", "acme", "normal"),
    ("weekly-report", "0 9 * * 1", "America/New_York", "acme", "normal"),
)


async def declare_schedules(rest: Rest) -> None:
    """Have the demo's schedules exist; those that do are left as they are."""
    for name, cron, zone, tenant, priority in SCHEDULES:
        task = _step(f"Write the {name}.", "digest") | {"priority": priority}
        body = {"name": name, "cron": cron, "time_zone": zone, "tenant": tenant, "task": task}
        await rest.call("POST", "/schedules", body)


class Agent:
    """One agent. `may_work` says whether the demo may submit anything now."""

    def __init__(self, rest: Rest, *, chance: random.Random, may_work: Callable[[], bool]) -> None:
        self._rest = rest
        self._chance = chance
        self._may_work = may_work

    async def go_on(self) -> None:
        """Work on cases until cancelled."""
        while True:
            await asyncio.sleep(self._chance.uniform(*REST_S) / 3)
            if self._may_work():
                await self._case()
                await asyncio.sleep(self._chance.uniform(*REST_S))

    async def _case(self) -> None:
        question = self._chance.choice(QUESTIONS)
        name = f"Support case {self._chance.randint(1000, 9999)}"
        body = {"tenant": "acme", "name": name, "goal": {"question": question}, "caps": CAPS}
        run = await self._rest.call("POST", "/runs", body)
        if run is None:
            return
        last = await self._steps(run["id"], question)
        state = "failed" if last is None else await self._end_of(last)
        ended = "succeeded" if state == "succeeded" else "failed"
        await self._rest.call(
            "POST", f"/runs/{run['id']}/finish", {"state": ended, "reason": "" if last else "refused"}
        )

    async def _steps(self, run: int, question: str) -> int | None:
        """A plan, pages that are read after it, and the answer that is written after those; the id of the last."""
        plan = await self._submit(run, f"Plan how to answer: {question}", "plan", [])
        if plan is None:
            return None
        pages = [
            await self._submit(run, f"What does page {number} say about: {question}", "read_page", [plan])
            for number in range(self._chance.randint(2, 6))
        ]
        read = [page for page in pages if page is not None]
        draft = await self._submit(run, f"Draft an answer to: {question}", "draft", read)
        return None if draft is None else await self._submit(run, question, "send_reply", [draft], effect="write")

    async def _submit(self, run: int, question: str, kind: str, after: list[int], **more: Any) -> int | None:
        edges = [{"id": parent, "on": "complete"} for parent in after]
        body = _step(question, kind) | {"tenant": "acme", "run": run, "after": edges, **more}
        accepted = await self._rest.call("POST", "/tasks", body)
        return None if accepted is None else int(accepted["id"])

    async def _end_of(self, task: int) -> str:
        """The state in which a task ends; empty when that takes too long."""
        looked = 0
        while looked * LOOK_EVERY_S < PATIENCE_S:
            await asyncio.sleep(LOOK_EVERY_S)
            found = await self._rest.call("GET", f"/tasks/{task}")
            if found is None or found["state"] in ENDED:
                return "" if found is None else str(found["state"])
            looked += 1
        return ""


def _step(question: str, kind: str) -> dict[str, Any]:
    payload = {"messages": [{"role": "user", "content": question}], "max_tokens": 240}
    return {"pool": "llm", "kind": kind, "timeout": 30, "payload": payload, "resources": NEEDS}
