"""Holds the campaign against what was promised, by what the API, the provider and the payment service tell.

Decides what counts as kept. It must never look into the story's own notes where somebody else can be asked.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final

from scheduler.demo.rehearsal.campaign_cast import STARTS_BURST, STARTS_PER_S, WIDTH, Session
from scheduler.demo.rehearsal.figures import jain
from scheduler.demo.rehearsal.promises import Promise
from scheduler.policy.figures import quantile

if TYPE_CHECKING:
    from scheduler.demo.rehearsal.campaign import Campaign

ACKNOWLEDGED_S: Final = 2.0
FAIR: Final = 0.95
LOOKED_AT_MAX: Final = 60
"""Sessions whose steps are looked at one by one."""
CLOCK_S: Final = 0.05
"""Starts are stamped after they were planned."""


async def judge(story: Campaign) -> tuple[tuple[Promise, ...], tuple[tuple[str, str], ...]]:
    """Every promise of the campaign, and the facts beside them."""
    provider = await story.on.provider("stats")
    payments = await story.on.payments()
    looked_at = await _histories(story)
    promises = (
        _acknowledged(story.sessions),
        _answered(story),
        _throttled(provider),
        _refunded(story.sessions, payments),
        _resumed(story),
        *await _within_caps(story),
        _fair(story),
        _narrow(looked_at),
        _paced(story, looked_at),
    )
    facts = (
        ("requests at the provider", f"{provider['requests']:,}"),
        ("of them refused on purpose", f"{provider['faults'].get('throttle', 0):,}"),
        ("engines killed", f"{story.deaths}"),
        ("refunds sent again", f"{payments['sent_again']}"),
    )
    return promises, facts


def _acknowledged(sessions: Sequence[Session]) -> Promise:
    took = [session.acknowledged_s for session in sessions if session.run]
    p95 = quantile(took, 0.95)
    return Promise(
        f"95 % of runs are acknowledged within {ACKNOWLEDGED_S:g} s", f"p95 {p95:.2f} s, all {len(took):,}",
        kept=len(took) == len(sessions) and p95 < ACKNOWLEDGED_S,
    )  # fmt: skip


def _answered(story: Campaign) -> Promise:
    wanted = [session for session in story.sessions if session.tenant != story.poor]
    answered = sum(session.state == "succeeded" for session in wanted)
    return Promise(
        "every session is answered, but those without money", f"{answered:,} of {len(wanted):,}",
        kept=answered == len(wanted),
    )  # fmt: skip


def _throttled(provider: Mapping[str, Any]) -> Promise:
    refused = sum(provider["refused_429"].values()) - provider["faults"].get("throttle", 0)
    return Promise(
        "the provider refuses nothing but what the script says",
        f"{refused} other 429 in {provider['requests']:,} requests",
        kept=refused == 0,
    )


def _refunded(sessions: Sequence[Session], payments: Mapping[str, Any]) -> Promise:
    due = {session.order for session in sessions if session.refunds and session.state == "succeeded"}
    twice = [order for order, times in payments["orders"].items() if times != 1]
    missing = due - payments["orders"].keys()
    return Promise(
        "each refund is made exactly once",
        f"{payments['refunds']:,} refunds for {len(due):,} orders, {len(twice)} twice, {len(missing)} missing",
        kept=bool(due) and not twice and not missing,
    )


def _resumed(story: Campaign) -> Promise:
    fell = [session for session in story.sessions if session.dies]
    resumed = [session for session in fell if session.refund is not None and session.refund["resumed"]]
    return Promise(
        "runs whose engine was killed go on from their checkpoint", f"{len(resumed)} of {len(fell)}",
        kept=bool(fell) and len(resumed) == len(fell) and story.deaths > 0,
    )  # fmt: skip


async def _within_caps(story: Campaign) -> list[Promise]:
    call = story.on.api.call
    runs: list[dict[str, Any]] = []
    cursor = ""
    while True:
        page = await call("GET", f"/runs?limit=200{cursor}")
        runs += page["runs"]
        if page["next_cursor"] is None:
            break
        cursor = f"&cursor={page['next_cursor']}"
    over = [run for run in runs if _usd(run["used"]["cost_usd"]) > float(run["caps"]["max_cost_usd"])]
    dearest = max((_usd(run["used"]["cost_usd"]) for run in runs), default=0.0)
    budget = await call("GET", f"/tenants/{story.poor}/budget")
    spent, limit = float(budget["spent_usd"]), float(budget["limit_usd"])
    held = sum(session.state == "held" for session in story.sessions)
    return [
        Promise("no run costs more than its cap", f"{len(over)} of {len(runs):,}; dearest ${dearest:.6f}", not over),
        Promise(
            "the tenant without money stops at its budget", f"${spent:.6f} of ${limit:.6f}, {held} sessions held",
            kept=0 < spent <= limit,
        ),
    ]  # fmt: skip


def _fair(story: Campaign) -> Promise:
    alike = sorted({session.tenant for session in story.sessions} - {"t00", story.poor})
    index = jain([story.spent_midway.get(slug, 0.0) for slug in alike])
    return Promise(
        f"tenants alike get alike (Jain at least {FAIR:g})", f"{index:.3f} over {len(alike)} tenants midway",
        kept=index >= FAIR,
    )  # fmt: skip


async def _histories(story: Campaign) -> dict[int, list[dict[str, Any]]]:
    """The steps of some sessions, by run, the campaign's first."""
    chosen = sorted(story.sessions, key=lambda session: session.tenant)[:LOOKED_AT_MAX]
    found: dict[int, list[dict[str, Any]]] = {}
    for session in chosen:
        found[session.run] = [await story.on.api.call("GET", f"/tasks/{task}") for task in session.tasks]
    return found


def _narrow(looked_at: Mapping[int, Sequence[dict[str, Any]]]) -> Promise:
    widest = 0
    for tasks in looked_at.values():
        spans = [span for task in tasks for span in _spans(task)]
        widest = max([widest, *(sum(a <= began < b for a, b in spans) for began, _ in spans)])
    return Promise(
        f"no run has more than {WIDTH} steps at once", f"{widest} at most in {len(looked_at)} runs",
        kept=0 < widest <= WIDTH,
    )  # fmt: skip


def _paced(story: Campaign, looked_at: Mapping[int, Sequence[dict[str, Any]]]) -> Promise:
    """The campaign's tenant, which started a hundred agents at once, never starts more than its own rate allows."""
    runs = {session.run for session in story.sessions if session.tenant == "t00"}
    starts = sorted(began for run in runs & looked_at.keys() for task in looked_at[run] for began, _ in _spans(task))
    most = max((n for n in (_within(starts, i, 1.0 - CLOCK_S) for i in range(len(starts)))), default=0)
    allowed = STARTS_BURST + STARTS_PER_S
    return Promise(
        "the campaign's tenant starts no more than its own rate", f"at most {most} in a second, {allowed:g} allowed",
        kept=0 < most <= allowed,
    )  # fmt: skip


def _within(starts: Sequence[float], first: int, seconds: float) -> int:
    last = first
    while last < len(starts) and starts[last] < starts[first] + seconds:
        last += 1
    return last - first


def _spans(task: Mapping[str, Any]) -> list[tuple[float, float]]:
    """When its attempts began and ended, in Unix seconds; one that was lost ended when that was found out."""
    return [
        (_seconds(each["started_at"]), _seconds(each["finished_at"]))
        for each in task["history"]
        if each["finished_at"] is not None
    ]


def _seconds(text: str) -> float:
    return datetime.fromisoformat(text).timestamp()


def _usd(text: str | None) -> float:
    """Dollars; nothing spent yet is none."""
    return float(text or 0)
