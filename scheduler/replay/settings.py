"""What a trace is replayed under: pools, limits, tenants, classes, prices. The values only; `reading` checks them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from enum import StrEnum
from random import Random

from scheduler.policy.types import PriorityClass
from scheduler.replay.trace import Request


class Counts(StrEnum):
    """What a limit counts of a request."""

    REQUESTS = "requests"
    TOKENS = "tokens"
    CONCURRENCY = "concurrency"


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolModel:
    """A pool and how long its attempts take.

    An attempt takes `request_s` + `input_token_s` × input tokens + `output_token_s` × output tokens, times a log-normal
    factor of mean 1 whose logarithm has the deviation `noise`. `needs` names limits; None: all of them.
    """

    slots: int = 32
    request_s: float = 0.3
    input_token_s: float = 0.00002
    output_token_s: float = 0.02
    noise: float = 0.2
    needs: tuple[str, ...] | None = None

    def expected_s(self, request: Request) -> float:
        """How long an attempt at a request takes on average."""
        tokens_s = self.input_token_s * request.input_tokens + self.output_token_s * request.output_tokens
        return self.request_s + tokens_s

    def factor(self, chance: Random) -> float:
        """One draw of the noise."""
        return chance.lognormvariate(-self.noise * self.noise / 2.0, self.noise)


@dataclass(frozen=True, slots=True, kw_only=True)
class LimitModel:
    """A shared limit. Requests and tokens: `per_minute`, `burst`. Concurrency: `permits`. `margin` is kept back.

    `ceilings` are the parts of the burst that a class must leave free.
    """

    counts: Counts
    per_minute: float = 0.0
    burst: float = 0.0
    permits: int = 0
    margin: float = 0.02
    ceilings: Mapping[PriorityClass, float] = field(default_factory=dict)

    def amount(self, request: Request) -> float:
        """What one request takes of it."""
        return float(request.input_tokens + request.output_tokens) if self.counts is Counts.TOKENS else 1.0

    @property
    def most(self) -> float:
        """The largest amount that it will ever give."""
        return float(self.permits) if self.counts is Counts.CONCURRENCY else self.burst


@dataclass(frozen=True, slots=True, kw_only=True)
class TenantModel:
    """A tenant's weight in fairness, its own limits (None: none), and its part of the requests that name no tenant.

    `start_rate` is starts per second, of up to `start_burst` at once (None: those of a second).
    """

    weight: float = 1.0
    share: float = 1.0
    start_rate: float | None = None
    start_burst: float | None = None
    max_in_flight: int | None = None

    @property
    def limited(self) -> bool:
        """Whether it has a limit of its own."""
        return self.start_rate is not None or self.max_in_flight is not None

    @property
    def burst(self) -> float:
        """How many starts its rate allows at once."""
        return max(1.0, self.start_rate or 0.0) if self.start_burst is None else self.start_burst


@dataclass(frozen=True, slots=True, kw_only=True)
class ClassModel:
    """A class's part of the requests that name no class; the wait it should not exceed; when it should be done."""

    share: float = 0.0
    slo_s: float | None = None
    deadline_s: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Price:
    """US dollars for a million tokens."""

    input: Decimal
    output: Decimal

    def nanos(self, input_tokens: int, output_tokens: int) -> int:
        """What so many tokens cost, in nano-dollars."""
        return round((self.input * input_tokens + self.output * output_tokens) * 1000)


@dataclass(frozen=True, slots=True, kw_only=True)
class Setup:
    """Everything. The first pool takes requests that name none; so does the only tenant, when there is but one."""

    name: str
    pools: Mapping[str, PoolModel] = field(default_factory=lambda: {"llm": PoolModel()})
    limits: Mapping[str, LimitModel] = field(default_factory=dict)
    tenants: Mapping[str, TenantModel] = field(default_factory=lambda: {"everyone": TenantModel()})
    classes: Mapping[PriorityClass, ClassModel] = field(
        default_factory=lambda: {PriorityClass.NORMAL: ClassModel(share=1.0)}
    )
    price: Price | None = None
    seed: int = 1
    by_content: bool = False
    """Whether a request that names no tenant goes by a hash of what it is; else by chance."""

    @property
    def pool(self) -> str:
        """The pool of requests that name none."""
        return next(iter(self.pools))

    def needs(self, pool: str) -> tuple[str, ...]:
        """The limits that requests of a pool need."""
        named = self.pools[pool].needs
        return tuple(self.limits) if named is None else named
