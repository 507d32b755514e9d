"""What the provider saw: the numbers that tests hold against what a client claims.

Decides what is counted and how much of the log is kept. Offsets are seconds since the start, on a monotonic clock.
"""

from __future__ import annotations

from collections import Counter, deque
from dataclasses import asdict, dataclass, field
from typing import Any


@dataclass(slots=True)
class Arrival:
    """One request at the door; `status` is 0 while it is in, 499 when its client left before the answer."""

    at_s: float
    model: str
    status: int = 0
    cause: str | None = None


@dataclass(slots=True)
class ApiStats:
    """What one of the APIs saw. `tokens_in` hold the `tokens_cached`, which were read from the cache."""

    requests: int = 0
    tokens_in: int = 0
    tokens_cached: int = 0
    tokens_out: int = 0


@dataclass(slots=True)
class Stats:
    """Counters since the start or the last reset."""

    arrivals_max: int
    started_at: float
    requests: int = 0
    in_flight: int = 0
    max_in_flight: int = 0
    tokens_in: int = 0
    tokens_out: int = 0
    by_status: Counter[int] = field(default_factory=Counter)
    by_model: Counter[str] = field(default_factory=Counter)
    by_api: dict[str, ApiStats] = field(default_factory=dict)
    refused: Counter[str] = field(default_factory=Counter)
    faults: Counter[str] = field(default_factory=Counter)
    arrivals: deque[Arrival] = field(default_factory=deque)

    def arrive(self, model: str, api: str, *, now: float) -> Arrival:
        """Log a request as it comes to the door."""
        arrival = Arrival(now - self.started_at, model)
        self.requests += 1
        self._of(api).requests += 1
        self.by_model[model] += 1
        self.arrivals.append(arrival)
        if len(self.arrivals) > self.arrivals_max:
            self.arrivals.popleft()
        return arrival

    def answer(self, arrival: Arrival, status: int, *, cause: str | None = None) -> None:
        """Log how a request ended; `cause` says which limit or fault refused it."""
        arrival.status, arrival.cause = status, cause
        self.by_status[status] += 1
        if cause is not None:
            self.refused[cause] += status == 429  # noqa: PLR2004 - the status this counter is about

    def take_in(self, api: str, tokens: int, *, cached: int) -> None:
        """Count the input of a request that is in."""
        self.tokens_in += tokens
        self._of(api).tokens_in += tokens
        self._of(api).tokens_cached += cached

    def give_out(self, api: str, tokens: int) -> None:
        """Count what was made, and is billed, however much of it arrives."""
        self.tokens_out += tokens
        self._of(api).tokens_out += tokens

    def _of(self, api: str) -> ApiStats:
        return self.by_api.setdefault(api, ApiStats())

    def enter(self) -> None:
        """One more in flight."""
        self.in_flight += 1
        self.max_in_flight = max(self.max_in_flight, self.in_flight)

    def leave(self) -> None:
        """One less in flight."""
        self.in_flight -= 1

    def as_json(self, *, now: float, arrivals: bool) -> dict[str, Any]:
        """All counters; `arrivals` as rows of (offset_s, status, model, cause), oldest first."""
        rows = (
            [[round(each.at_s, 6), each.status, each.model, each.cause] for each in self.arrivals] if arrivals else []
        )
        return {
            "seconds_since_start": round(now - self.started_at, 6),
            "requests": self.requests,
            "by_status": {str(status): number for status, number in sorted(self.by_status.items())},
            "by_model": dict(self.by_model),
            "by_api": {name: asdict(each) for name, each in self.by_api.items()},
            "refused_429": {cause: number for cause, number in self.refused.items() if number},
            "faults": dict(self.faults),
            "in_flight": self.in_flight,
            "max_in_flight": self.max_in_flight,
            "tokens_in": self.tokens_in,
            "tokens_out": self.tokens_out,
            "arrivals": rows,
            "arrivals_dropped": self.requests - len(self.arrivals),
        }
