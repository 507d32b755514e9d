"""A campaign lands: support agents of many tenants start at once, on one provider.

The provider refuses third calls for a while, engines are killed right after
refunds succeeded, one tenant starts a hundred agents in one second, and one has hardly any money.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from scheduler.demo.rehearsal.api import RehearsalFailed
from scheduler.demo.rehearsal.beside import beside
from scheduler.demo.rehearsal.campaign_cast import (
    BURST_USED,
    LEASE_TTL_S,
    POOR_BUDGET_USD,
    PROVIDER_AT_ONCE,
    PROVIDER_PER_S,
    RUN_CAP_USD,
    STARTS_BURST,
    STARTS_PER_S,
    STORY,
    WIDTH,
    Session,
    cast,
    steps,
)
from scheduler.demo.rehearsal.campaign_promises import judge
from scheduler.demo.rehearsal.figures import costs
from scheduler.demo.rehearsal.progress import Progress
from scheduler.demo.rehearsal.promises import Verdict
from scheduler.demo.rehearsal.stage import Stage, stage

ENGINES: Final = 2
GIVE_UP_S: Final = 600.0


class Campaign:
    """The story while it is played."""

    def __init__(self, on: Stage, sessions: list[Session], progress: Progress) -> None:
        self.on = on
        self.sessions = sessions
        self.progress = progress
        self.poor = max(session.tenant for session in sessions)
        self.deaths = 0
        self.ended = 0
        self.one_ended, self.half_ended = asyncio.Event(), asyncio.Event()
        self.spent_midway: dict[str, float] = {}

    async def set_up(self) -> None:
        """Limits as the provider has them, pools, tenants with their quotas."""
        call = self.on.api.call
        rate = {"name": "provider", "kind": "token_bucket", "rate": PROVIDER_PER_S, "burst": BURST_USED}
        await call("POST", "/resources", rate)
        at_once = {"name": "provider-at-once", "kind": "semaphore", "permits": PROVIDER_AT_ONCE}
        await call("POST", "/resources", at_once)
        model = {
            "base_url": f"{self.on.provider_url}/v1",
            "model": "sim-small",
            "quota_resource": "provider",
            "ceiling_input_usd_per_mtok": "0.50",
            "ceiling_output_usd_per_mtok": "1.50",
        }
        slots = {"min": 1, "lease_ttl": LEASE_TTL_S}
        retry = {"max_attempts": 8, "initial_backoff": 0.5}
        llm = {"name": "llm", "executor": "llm", "config": model, "initial": 64, "max": 64, "retry": retry, **slots}
        await call("POST", "/pools", llm)
        handler = {"handler": "scheduler.demo.rehearsal.tools:tool"}
        await call(
            "POST",
            "/pools",
            {
                "name": "tools",
                "executor": "python",
                "config": handler,
                "initial": 64,
                "max": 64,
                # Engines fall one after the other: three attempts may all be lost with them.
                "retry": retry,
                **slots,
            },
        )
        for slug in sorted({session.tenant for session in self.sessions}):
            quota: dict[str, Any] = {"start_rate": STARTS_PER_S, "start_burst": STARTS_BURST}
            if slug == self.poor:
                quota["monthly_budget_usd"] = POOR_BUDGET_USD
            await call("POST", "/tenants", {"slug": slug, "quota": quota})
        for _ in range(ENGINES):
            await self.on.start_engine()

    async def play(self) -> None:
        """Everything at once: sessions, the provider's bad moment, and engines that fall and are started again."""
        async with beside(self._keep_engines(), self._tell()):
            # What is missing when the time is up, the verdict says.
            with suppress(TimeoutError):
                async with asyncio.timeout(GIVE_UP_S), asyncio.TaskGroup() as group:
                    group.create_task(self._refuse_third_calls())
                    group.create_task(self._look_midway())
                    for session in self.sessions:
                        group.create_task(self._attend(session))

    async def _attend(self, session: Session) -> None:
        """One agent when its time has come."""
        await asyncio.sleep(session.arrives_s)
        try:
            await self._session(session)
        finally:
            self._count()

    async def _session(self, session: Session) -> None:
        """One agent, from the goal to the answer. The client has its acknowledgement as soon as the run is stored."""
        call, loop = self.on.api.call, asyncio.get_running_loop()
        goal = {"order": session.order}
        began_s = loop.time()
        wanted = {"tenant": session.tenant, "name": session.order, "goal": goal}
        made = await call("POST", "/runs", wanted | {"caps": {"max_width": WIDTH, "max_cost_usd": RUN_CAP_USD}})
        session.acknowledged_s = loop.time() - began_s
        session.run = made["id"]
        batch = {"tenant": session.tenant, "tasks": steps(session)}
        session.tasks = [task["id"] for task in (await call("POST", "/tasks/batch", batch))["tasks"]]
        if session.tenant == self.poor:
            session.state = "held"
            return
        last = await self._outcome(session.tasks[-1])
        session.state = last["state"]
        if session.state != "succeeded":
            return
        if session.refunds:
            session.refund = (await call("GET", f"/tasks/{session.tasks[-2]}/result"))["result"]
        await call("POST", f"/runs/{session.run}/finish", {"state": "succeeded", "result": {"answered": session.order}})

    async def _outcome(self, task: int) -> Any:
        while True:
            found = await self.on.api.call("GET", f"/tasks/{task}/wait?timeout_s=55")
            if found["state"] in ("succeeded", "failed", "dead_lettered", "cancelled", "skipped", "missed", "shed"):
                return found

    async def _refuse_third_calls(self) -> None:
        """Once an agent has come so far, the provider answers third calls with 429 for a while."""
        await self.one_ended.wait()
        script = [{"kind": "throttle", "contains": "third call", "for_s": 6.0, "retry_after_s": 2.0, "count": 200}]
        await self.on.provider("faults", script)

    async def _look_midway(self) -> None:
        """What each tenant's work has cost when half of the sessions have ended: all still have work waiting."""
        await self.half_ended.wait()
        rows = (await self.on.api.call("GET", "/cost?by=tenant"))["rows"]
        self.spent_midway = {row["tenant"]: float(row["cost_usd"]) for row in rows}

    def _count(self) -> None:
        """One more session has ended."""
        self.ended += 1
        self.one_ended.set()
        if self.ended >= len(self.sessions) / 2:
            self.half_ended.set()

    async def _keep_engines(self) -> None:
        """Start an engine for each that fell."""
        while True:
            for program in [each for each in self.on.engines if not each.alive]:
                self.on.engines.remove(program)
                self.deaths += 1
                with suppress(RehearsalFailed):
                    await self.on.start_engine()
            await asyncio.sleep(0.2)

    async def _tell(self) -> None:
        while True:
            states = Counter(session.state for session in self.sessions)
            known = sum(session.run > 0 for session in self.sessions)
            self.progress.now(
                f"{known:,} of {len(self.sessions):,} sessions acknowledged, {states['succeeded']:,} answered, "
                f"{self.deaths} engines killed"
            )
            await asyncio.sleep(1.0)


async def play(folder: Path, scale: float, seed: int, progress: Progress) -> Verdict:
    """Play the campaign and say what was kept."""
    sessions = cast(scale, seed)
    limits = ("--rate", str(PROVIDER_PER_S), "--burst", str(PROVIDER_PER_S), "--concurrency", str(PROVIDER_AT_ONCE))
    progress.step("starting a provider, a payment service, a web process and engines")
    async with stage(folder, provider=(*limits, "--scripted", "--seed", str(seed))) as on:
        campaign = Campaign(on, sessions, progress)
        await campaign.set_up()
        progress.step(f"{len(sessions):,} sessions of {len({s.tenant for s in sessions})} tenants arrive")
        await campaign.play()
        took_s = progress.elapsed_s
        progress.step("looking at what happened")
        promises, facts = await judge(campaign)
    return Verdict("campaign", STORY, promises, (*facts, *costs()), took_s)
