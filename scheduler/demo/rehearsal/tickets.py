"""A business day of support tickets, compressed: ten thousand of them in bursts, on two tiers of models.

Each ticket is classified by the cheap model and answered by the capable one. In the middle of the day a new prompt
doubles what every answer takes. The alert must come before the money is gone: then the old prompt is put back, and the
day ends within its budget with every ticket answered.
"""

from __future__ import annotations

import asyncio
import math
import random
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from scheduler.demo.rehearsal.api import RehearsalFailed
from scheduler.demo.rehearsal.beside import beside
from scheduler.demo.rehearsal.figures import costs
from scheduler.demo.rehearsal.progress import Progress
from scheduler.demo.rehearsal.promises import Promise, Verdict
from scheduler.demo.rehearsal.stage import Stage, stage

STORY: Final = "10,000 support tickets of a business day, and a prompt that costs twice as much"
TICKETS: Final = 10_000
BATCH_MIN, BATCH_MAX = 10, 50
BURSTS: Final = 12
"""The day's tickets come in so many bursts, each of them of one batch at least."""
DAY_S: Final = 60.0
"""No burst comes before its hour, nor before the one before has been worked off, as nights do it in a longer day."""
PROVIDER_PER_S: Final = 150.0
BURST_USED: Final = 0.8 * PROVIDER_PER_S
"""Requests reach the provider at other intervals than they were started at: some catch up with the ones before them."""
PROVIDER_AT_ONCE: Final = 50
CALL_S: Final = 0.15
TENANT: Final = "support"
CHEAP: Final = ("sim-small", "0.10", "0.40")
CAPABLE: Final = ("sim-large", "2.00", "8.00")
"""Models with dollars per million tokens in and out."""
CLASSIFY_TOKENS: Final = (200, 10)
DRAFT_TOKENS: Final = (600, 150)
PENDING_MAX: Final = 6_000
REGRESSION_AT: Final = 0.3
"""The part of the day after which the new prompt is in force."""
BUDGET_SLACK: Final = 1.55
"""The budget in terms of what a normal day costs; with the new prompt to the end it would be overrun."""
ALERT_AT: Final = 0.7
GIVE_UP_S: Final = 400.0


@dataclass(slots=True)
class Day:
    """What the story knows of itself. Times are seconds since the day began."""

    count: int
    budget_usd: float
    submitted: int = 0
    refused: int = 0
    wasteful: bool = False
    alerted_at: float | None = None
    spent_at_alert: float = 0.0


def price_usd(tokens: tuple[int, int], model: tuple[str, str, str]) -> float:
    """What a call costs."""
    return (tokens[0] * float(model[1]) + tokens[1] * float(model[2])) / 1e6


def normal_usd() -> float:
    """What a ticket costs on a normal day."""
    return price_usd(CLASSIFY_TOKENS, CHEAP) + price_usd(DRAFT_TOKENS, CAPABLE)


class Tickets:
    """The story while it is played."""

    def __init__(self, on: Stage, day: Day, chance: random.Random, progress: Progress) -> None:
        self.on, self.day, self.chance, self.progress = on, day, chance, progress

    async def set_up(self) -> None:
        """The provider's limits, a pool sized from them, prices, and a tenant with a month's money."""
        call = self.on.api.call
        rate = {"name": "provider", "kind": "token_bucket", "rate": PROVIDER_PER_S, "burst": BURST_USED}
        await call("POST", "/resources", rate)
        at_once = {"name": "provider-at-once", "kind": "semaphore", "permits": PROVIDER_AT_ONCE}
        await call("POST", "/resources", at_once)
        for name, asked_usd, answered_usd in (CHEAP, CAPABLE):
            price = {"model": name, "input_usd_per_mtok": asked_usd, "output_usd_per_mtok": answered_usd}
            await call("POST", "/prices", price)
        config = {"base_url": f"{self.on.provider_url}/v1", "model": CHEAP[0], "quota_resource": "provider"}
        # More slots than the provider lets in at once would only wait there.
        slots = {"min": 1, "initial": PROVIDER_AT_ONCE, "max": PROVIDER_AT_ONCE}
        pool = {"name": "llm", "executor": "llm", "config": config, "max_pending": PENDING_MAX, **slots}
        await call("POST", "/pools", pool)
        quota = {"monthly_budget_usd": f"{self.day.budget_usd:.6f}", "alert_at": [ALERT_AT, 1.0]}
        await call("POST", "/tenants", {"slug": TENANT, "quota": quota})
        await self.on.start_engine()

    async def play(self) -> None:
        """Bursts over the day, an eye on alerts, and an end when nothing waits any more."""
        async with beside(self._watch_alerts(), self._tell()):
            # What is missing when the time is up, the verdict says.
            with suppress(TimeoutError):
                async with asyncio.timeout(GIVE_UP_S):
                    await self._submit_all()
                    await self._until_quiet()

    async def _submit_all(self) -> None:
        loop = asyncio.get_running_loop()
        size = min(BATCH_MAX, self.day.count // BURSTS)
        began_s, batches = loop.time(), math.ceil(self.day.count / size)
        burst = 0
        for n in range(batches):
            if n * BURSTS // batches > burst:
                burst = n * BURSTS // batches
                await asyncio.sleep(max(0.0, began_s + burst * DAY_S * self._scale() / BURSTS - loop.time()))
                await self._until_quiet()
            self.day.wasteful = n >= batches * REGRESSION_AT and self.day.alerted_at is None
            tickets = range(n * size, min((n + 1) * size, self.day.count))
            await self._submit([task for ticket in tickets for task in self._tasks(ticket)])

    def _scale(self) -> float:
        return min(1.0, self.day.count / TICKETS)

    async def _submit(self, tasks: list[dict[str, Any]]) -> None:
        """Submit, and come again when told that too much waits: nothing is dropped."""
        while True:
            status, answer = await self.on.api.ask("POST", "/tasks/batch", {"tenant": TENANT, "tasks": tasks})
            if status == 202:  # noqa: PLR2004 - accepted
                self.day.submitted += len(tasks) // 2
                return
            if status != 429:  # noqa: PLR2004 - too much waits
                raise RehearsalFailed(f"A batch was answered with {status}: {str(answer)[:500]}")
            self.day.refused += 1
            await asyncio.sleep(min(2.0, float(answer.get("retry_after") or 1.0)))

    def _tasks(self, ticket: int) -> list[dict[str, Any]]:
        asked, answered = DRAFT_TOKENS
        drafted = answered * 2 if self.day.wasteful else answered
        asked = asked * 2 if self.day.wasteful else asked
        classify = self._call(f"classify-{ticket}", "classify", CHEAP[0], *CLASSIFY_TOKENS)
        draft = self._call(f"draft-{ticket}", "draft", CAPABLE[0], asked, drafted)
        return [classify, {**draft, "after": [{"key": classify["key"]}]}]

    def _call(self, key: str, kind: str, model: str, asked: int, answered: int) -> dict[str, Any]:
        content = f"[takes {CALL_S * self.chance.uniform(0.5, 1.5):.3f} s, {asked} tokens in, {answered} out]"
        payload = {"model": model, "messages": [{"role": "user", "content": content}], "max_tokens": answered}
        needs = {"provider": 1, "provider-at-once": 1}
        return {"key": key, "kind": kind, "pool": "llm", "payload": payload, "resources": needs}

    async def _watch_alerts(self) -> None:
        """Whoever has the pager: at the alert the old prompt is put back."""
        while self.day.alerted_at is None:
            found = (await self.on.api.call("GET", "/alerts"))["alerts"]
            if found:
                self.day.alerted_at = self.progress.elapsed_s
                self.day.spent_at_alert = float(found[-1]["spent_usd"]) / float(found[-1]["limit_usd"])
                self.day.wasteful = False
            await asyncio.sleep(0.5)

    async def _until_quiet(self) -> None:
        """Until what came in has been worked off, or the money is gone and nothing more starts."""
        while True:
            counts = await self._open_tasks()
            budget = await self.on.api.call("GET", f"/tenants/{TENANT}/budget")
            if not counts or (float(budget["left_usd"]) < normal_usd() and float(budget["reserved_usd"]) == 0):
                return
            await asyncio.sleep(0.5)

    async def _open_tasks(self) -> bool:
        """Whether any task has not ended."""
        wanted = "&".join(f"state={state}" for state in ("ready", "running", "blocked", "retrying", "scheduled"))
        return bool((await self.on.api.call("GET", f"/tasks?limit=1&{wanted}"))["tasks"])

    async def _tell(self) -> None:
        while True:
            found = await self.on.api.call("GET", f"/tenants/{TENANT}/budget")
            self.progress.now(
                f"{self.day.submitted:,} of {self.day.count:,} tickets came in, ${float(found['spent_usd']):.2f} of "
                f"${float(found['limit_usd']):.2f} spent" + (", new prompt in force" if self.day.wasteful else "")
            )
            await asyncio.sleep(1.0)


async def play(folder: Path, scale: float, seed: int, progress: Progress) -> Verdict:
    """Play the day and say what was kept."""
    count = max(BATCH_MIN * BURSTS, round(TICKETS * scale))
    day = Day(count, budget_usd=count * normal_usd() * BUDGET_SLACK)
    limits = ("--rate", str(PROVIDER_PER_S), "--burst", str(PROVIDER_PER_S), "--concurrency", str(PROVIDER_AT_ONCE))
    progress.step("starting a provider, a web process and an engine")
    async with stage(folder, provider=(*limits, "--scripted", "--seed", str(seed))) as on:
        story = Tickets(on, day, random.Random(seed), progress)  # noqa: S311 - a story, not secrets
        await story.set_up()
        progress.step(f"{count:,} tickets come in")
        await story.play()
        took_s = progress.elapsed_s
        progress.step("looking at what happened")
        promises, facts = await _judge(story)
    return Verdict("tickets", STORY, promises, (*facts, *costs()), took_s)


async def _judge(story: Tickets) -> tuple[tuple[Promise, ...], tuple[tuple[str, str], ...]]:
    call, day = story.on.api.call, story.day
    provider = await story.on.provider("stats")
    budget = await call("GET", f"/tenants/{TENANT}/budget")
    rows = (await call("GET", "/cost?by=kind,model"))["rows"]
    done = {(row["kind"], row["model"]): row["successes"] for row in rows}
    cost_usd = sum(float(row["cost_usd"]) for row in rows)
    answered = done.get(("draft", CAPABLE[0]), 0)
    refused = sum(provider["refused_429"].values())
    spent, limit = float(budget["spent_usd"]), float(budget["limit_usd"])
    alerts = [alert for alert in (await call("GET", "/alerts"))["alerts"] if alert["threshold"] == ALERT_AT]
    all_capable = price_usd(CLASSIFY_TOKENS, CAPABLE) + price_usd(DRAFT_TOKENS, CAPABLE)
    promises = (
        Promise("every ticket is answered", f"{answered:,} of {day.count:,}", answered == day.count),
        Promise(
            "classification is cheap work, drafting is not",
            ", ".join(f"{kind} by {model}: {n:,}" for (kind, model), n in done.items()),
            kept=done == {("classify", CHEAP[0]): day.count, ("draft", CAPABLE[0]): day.count},
        ),
        Promise(
            "the alert comes once, before the money is gone",
            f"{len(alerts)} at {ALERT_AT:.0%}, told at {day.spent_at_alert:.1%}",
            kept=len(alerts) == 1 and day.alerted_at is not None and day.spent_at_alert < 1,
        ),
        Promise("the day ends within its budget", f"${spent:.4f} of ${limit:.4f}", 0 < spent <= limit),
        Promise("the provider refuses nothing", f"{refused} of {provider['requests']:,}", refused == 0),
    )  # fmt: skip
    facts = (
        ("dollars per answered ticket", f"${cost_usd / answered:.6f}" if answered else "none"),
        ("on a normal day", f"${normal_usd():.6f}; with the capable model for both ${all_capable:.6f}"),
        ("batches that were told to come later", f"{day.refused}"),
    )
    return promises, facts
