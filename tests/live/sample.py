"""A snapshot as the leader writes it: a busy minute with a bottleneck, a paused pool and a few failures."""

from __future__ import annotations

import math
from typing import Any

AS_OF_S = 1_795_000_000.0


def _wave(mean: float, swing: float, seq: int, length: int = 60) -> list[float]:
    """Samples that scroll by one per snapshot, as a real history does."""
    at = range(seq - length + 1, seq + 1)
    return [round(max(mean + swing * math.sin(tick / 7) + swing / 3 * math.sin(tick * 1.7), 0), 2) for tick in at]


def pool(name: str, **changes: Any) -> dict[str, Any]:
    """A running pool with work in two classes."""
    return {
        "name": name,
        "executor": "llm",
        "state": "running",
        "pause": None,
        "waiting": {"critical": 0, "high": 12, "normal": 40, "low": 0},
        "scheduled": 0,
        "retrying": 0,
        "running": 18,
        "slots": 32,
        "desired": 32,
        "scale": None,
        "workers": 1,
        "started_per_s": 9.4,
        "succeeded_per_s": 9.2,
        "failed_per_s": 0.0,
        "oldest_waiting_s": 3.2,
        "bound_by": None,
        **changes,
    }


def bucket(name: str, **changes: Any) -> dict[str, Any]:
    """A token bucket of 50 per second that is nearly used up."""
    return {
        "name": name,
        "kind": "token_bucket",
        "rate": 50.0,
        "burst": 100.0,
        "permits": None,
        "available": 0.4,
        "capacity": 100.0,
        "in_use": 48.6,
        "used_fraction": 0.972,
        "blocked_until": None,
        "next_at": None,
        "paused": False,
        "waiting": 1002,
        **changes,
    }


def semaphore(name: str, **changes: Any) -> dict[str, Any]:
    """A semaphore of 20 permits with 12 held."""
    return {
        **bucket(name, kind="semaphore", rate=None, burst=None, permits=20),
        "available": 8.0,
        "capacity": 20.0,
        "in_use": 12.0,
        "used_fraction": 0.6,
        "waiting": 0,
        **changes,
    }


def failure(number: int, **changes: Any) -> dict[str, Any]:
    """One failed attempt."""
    return {
        "task": 90_000 + number,
        "pool": "llm",
        "tenant": "acme",
        "kind": "chat",
        "class": "throttled",
        "message": "429 from the provider: tokens per minute are used up, retry after 1.8 s",
        "attempt": 1,
        "at": AS_OF_S - 7 * number,
        **changes,
    }


def worker(name: str, **changes: Any) -> dict[str, Any]:
    """An engine that works for every pool."""
    return {
        "id": name,
        "pools": ["llm", "eval", "embeddings"],
        "slots": 64,
        "busy": 41,
        "seen_at": AS_OF_S - 1,
        "leader": False,
        **changes,
    }


def spender(tenant: str, **changes: Any) -> dict[str, Any]:
    """A tenant that burns money and has no limit."""
    return {"tenant": tenant, "burn": 0, "spent": 0, "limit": None, "state": "unlimited", **changes}


def body(seq: int = 1000, **changes: Any) -> dict[str, Any]:
    """The body of a snapshot; the numbers move with ``seq``."""
    as_of = AS_OF_S + seq - 1000
    pools = [
        pool(
            "llm",
            waiting={"critical": 24, "high": 96, "normal": 180, "low": 702 + seq % 7},
            running=187 + seq % 3,
            slots=240,
            started_per_s=38.0 + seq % 5 / 10,
            succeeded_per_s=37.6,
            failed_per_s=0.2,
            retrying=6,
            oldest_waiting_s=41.5 + seq % 4,
            bound_by={"code": "resource", "resource": "openai", "text": "openai is empty; next token in 0.4 s"},
            forecast={
                "critical": {"p50_s": 0.4, "p90_s": 1.9},
                "high": {"p50_s": 2.6, "p90_s": 6.0},
                "normal": {"p50_s": 31.0, "p90_s": None},
                "low": {"p50_s": None, "p90_s": None},
            },
            desired=240,
            scale={
                "says": [
                    "305 = 1,002 waiting × 9.1 s each ÷ 30 s to clear them.",
                    "The limit openai supports only 222 (24.4/s × 9.1 s ÷ 1 each); more would only wait or be refused.",
                    "It keeps 240: as many were wanted within the last 60 s.",
                ]
            },
        ),
        pool("agents", executor="python", waiting={"critical": 0, "high": 22, "normal": 18, "low": 0}),
        pool(
            "embeddings",
            state="paused",
            pause={"by": "mira", "reason": "reindexing, back at 14:00", "at": AS_OF_S - 1320},
            waiting={"critical": 0, "high": 0, "normal": 22, "low": 6},
            running=0,
            started_per_s=0.0,
            succeeded_per_s=0.0,
            oldest_waiting_s=1290.0,
            bound_by={"code": "pool_paused", "resource": None, "text": "the pool is paused"},
        ),
        pool(
            "nightly-reports",
            executor="python",
            waiting={"critical": 0, "high": 0, "normal": 0, "low": 0},
            running=0,
            started_per_s=0.0,
            succeeded_per_s=0.0,
            scheduled=14,
            oldest_waiting_s=None,
        ),
    ]
    resources = [
        semaphore("openai-concurrency", in_use=20.0, available=0.0, used_fraction=1.0, waiting=52),
        bucket("openai", next_at=as_of + 0.4),
        bucket(
            "anthropic", in_use=6.1, used_fraction=0.15, available=38.0, rate=40.0, capacity=40.0, burst=40.0, waiting=0
        ),
        semaphore("gpu-local", permits=8, capacity=8.0, in_use=3.0, available=5.0, used_fraction=0.375),
    ]
    return {
        "seq": seq,
        "as_of": as_of,
        "interval_s": 1.0,
        "totals": {
            "waiting": 1122 + seq % 7,
            "scheduled": 14,
            "running": 223 + seq % 3,
            "started_per_s": 48.6 + seq % 5 / 10,
            "succeeded_per_s": 47.9,
            "failed_per_min": 12.0,
            "oldest_waiting_s": 1290.0,
        },
        "history": {
            "started_per_s": _wave(48, 2, seq),
            "succeeded_per_s": _wave(46, 3, seq),
            "failed_per_s": _wave(0.4, 0.5, seq),
            "waiting": _wave(1100, 90, seq),
            "running": _wave(220, 6, seq),
        },
        "pools": pools,
        "resources": resources,
        "failures": [
            failure(1),
            failure(4, **{"class": "timeout", "message": "no answer within 30 s", "kind": "eval", "pool": "eval"}),
            failure(9, tenant="globex", attempt=2),
        ],
        "workers": [worker("engine-7f3a", leader=True), worker("engine-b1c9", busy=33)],
        "spending": {
            "burn": 45_550_000_000,
            "tenants": [
                spender("globex", burn=41_200_000_000, spent=1_682_400_000_000, limit=2_000 * 10**9, state="warned"),
                spender("acme", burn=4_350_000_000, spent=812_060_000_000),
            ],
        },
        "tally": {"runs": 38, "dead": 1000, "operations": 2},
        **changes,
    }


def quiet_body(seq: int = 1000) -> dict[str, Any]:
    """A snapshot of a system that has nothing: no pools, no limits, no work."""
    history: dict[str, list[float]] = {name: [] for name in body()["history"]}
    totals = dict.fromkeys(body()["totals"], 0) | {"oldest_waiting_s": None}
    nothing: dict[str, list[Any]] = {"pools": [], "resources": [], "failures": [], "workers": []}
    nothing["spending"] = []
    return {**body(seq), "totals": totals, "history": history, "tally": {}, **nothing}


def moved(body: dict[str, Any], by_s: float) -> dict[str, Any]:
    """The same picture, so many seconds later."""

    def shift(value: Any) -> Any:
        if isinstance(value, dict):
            return {name: shift(inner) for name, inner in value.items()}
        if isinstance(value, list):
            return [shift(inner) for inner in value]
        return value + by_s if isinstance(value, float) and value > AS_OF_S / 2 else value

    found: dict[str, Any] = shift(body)
    return found
