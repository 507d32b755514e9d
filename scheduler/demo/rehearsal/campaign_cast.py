"""Who takes part in the campaign, and what each of them does.

Every session is a run: a plan, four reads in parallel (one of them may be missing), a conclusion, a refund where one is
due, and an answer.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from typing import Any, Final

STORY: Final = "2,000 agent sessions of 40 tenants arrive together on one provider"
SESSIONS: Final = 2_000
TENANTS: Final = 40
STARTS_PER_S: Final = 5.0
STARTS_BURST: Final = 10.0
ARRIVALS_PER_S: Final = 30.0
CAMPAIGN_STARTS: Final = 100
"""What the tenant of the campaign starts within one second."""
PROVIDER_PER_S: Final = 60.0
BURST_USED: Final = 0.8 * PROVIDER_PER_S
"""Requests reach the provider at other intervals than they were started at: some catch up with the ones before them."""
PROVIDER_AT_ONCE: Final = 40
WIDTH: Final = 2
READS: Final = ("order", "customer", "policy", "history")
RUN_CAP_USD: Final = "0.50"
POOR_BUDGET_USD: Final = "0.002"
REFUNDS_PART: Final = 0.3
MISSES_PART: Final = 0.1
DEATHS: Final = 6
LEASE_TTL_S: Final = 6.0


@dataclass(slots=True)
class Session:
    """One agent and what became of it. Times are seconds."""

    number: int
    tenant: str
    refunds: bool
    dies: bool
    misses: bool
    arrives_s: float = 0.0
    run: int = 0
    tasks: list[int] = field(default_factory=list)
    acknowledged_s: float = 0.0
    answer: dict[str, Any] | None = None
    refund: dict[str, Any] | None = None
    state: str = "running"

    @property
    def order(self) -> str:
        """What it is about."""
        return f"order-{self.number}"


def cast(scale: float, seed: int) -> list[Session]:
    """The sessions in the order in which they arrive. The campaign's come together in the middle."""
    chance = random.Random(seed)  # noqa: S311 - a story, not secrets
    tenants = max(4, round(TENANTS * min(1.0, scale)))
    campaign, poor = "t00", f"t{tenants - 1:02}"
    wanted = max(24, round(SESSIONS * scale))
    burst = min(CAMPAIGN_STARTS, wanted // 4)
    others = [f"t{n:02}" for n in range(1, tenants)]
    slugs = [others[n % len(others)] for n in range(wanted - burst)]
    chance.shuffle(slugs)
    slugs[len(slugs) // 2 : len(slugs) // 2] = [campaign] * burst
    sessions = [
        Session(n, slug, chance.random() < REFUNDS_PART, dies=False, misses=chance.random() < MISSES_PART)
        for n, slug in enumerate(slugs)
    ]
    for session in sessions:
        if session.tenant != campaign:
            session.arrives_s = session.number / ARRIVALS_PER_S
        else:  # all of them within one second, in the middle
            session.arrives_s = (len(slugs) // 2) / ARRIVALS_PER_S + chance.random()
    able = [session for session in sessions if session.tenant != poor]
    for session in chance.sample(able, min(len(able), max(2, round(DEATHS * min(1.0, scale))))):
        session.refunds = session.dies = True
    return sessions


def steps(session: Session) -> list[dict[str, Any]]:
    """The steps of a session's run, tied to each other by keys; the last one is the answer."""
    base, run = session.order, {"run": session.run}
    model = {"pool": "llm", "resources": {"provider": 1, "provider-at-once": 1}, **run}

    def ask(name: str, priority: str, said: str, after: list[dict[str, str]]) -> dict[str, Any]:
        content = f"[takes 0.2 s, 300 tokens in, 80 out] {said} of {base}"
        payload = {"messages": [{"role": "user", "content": content}], "max_tokens": 120}
        return {
            "key": f"{base}-{name}",
            "kind": name,
            "priority": priority,
            "payload": payload,
            "after": after,
            **model,
        }

    def do(name: str, payload: dict[str, Any], after: list[dict[str, str]], effect: str) -> dict[str, Any]:
        task = {"key": f"{base}-{name}", "kind": name, "pool": "tools", "effect": effect, "payload": payload}
        return {**task, "after": after, **run}

    def after(*names: str, on: str = "success") -> list[dict[str, str]]:
        return [{"key": f"{base}-{name}", "on": on} for name in names]

    tasks = [ask("plan", "high", "first call", [])]
    for n, what in enumerate(READS):
        fails = session.misses and n == 0
        payload = {"do": "read", "what": what, "takes_s": 0.05, "fails": fails}
        tasks.append(do(what, payload, after("plan"), "read"))
    tasks.append(ask("conclude", "normal", "second call", after(*READS, on="complete")))
    before = "conclude"
    if session.refunds:
        payload = {"do": "refund", "order": base, "dies": session.dies}
        tasks.append(do("refund", payload, after("conclude"), "write"))
        before = "refund"
    return [*tasks, ask("answer", "normal", "third call", after(before))]
