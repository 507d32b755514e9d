"""The limits that the provider enforces at its door.

Decides whether a request may enter: requests per second and tokens per minute (token buckets) and requests in flight,
for everything together, for each model or for each account. Tokens are counted together, as OpenAI does, and input and
output apart, as Anthropic does. It must never let part of a request in: all limits agree, or none is charged. Times are
seconds of a monotonic clock, given by the caller.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Final

RETRY_WITHOUT_REFILL_S: Final = 60.0
"""What a caller is told when nothing ever refills."""

CONCURRENCY_RETRY_S: Final = 0.25
"""What a caller is told when too many requests are in flight: nobody knows when one ends."""

ROUNDING: Final = 1e-9
SCOPES: Final = ("global", "model", "key")
LIMITS: Final = (
    "rate",
    "burst",
    "tokens_per_minute",
    "tokens_burst",
    "input_tokens_per_minute",
    "output_tokens_per_minute",
    "concurrency",
)
_PER_MINUTE: Final = {
    "tokens": "tokens per min (TPM)",
    "input_tokens": "input tokens per minute",
    "output_tokens": "output tokens per minute",
}


def is_amount(value: object) -> bool:
    """Whether the value is a number, finite and not negative."""
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < math.inf


@dataclass(frozen=True, slots=True, kw_only=True)
class LimitSettings:
    """Limits; None is unlimited. `rate` is per second. `models` names models that have limits of their own on top.

    `input_tokens_per_minute` and `output_tokens_per_minute` concern requests that count them apart. Their bursts are a
    minute's worth.
    """

    rate: float | None = None
    burst: float | None = None
    tokens_per_minute: float | None = None
    tokens_burst: float | None = None
    input_tokens_per_minute: float | None = None
    output_tokens_per_minute: float | None = None
    concurrency: float | None = None
    scope: str = "global"
    models: Mapping[str, LimitSettings] | None = None

    def edited(self, changes: object) -> LimitSettings:
        """With the given fields changed; null lifts a limit. Raises ValueError with a sentence."""
        if not isinstance(changes, dict):
            raise ValueError("Limits are an object.")  # noqa: TRY004 - one kind of error for all bad settings
        for name, value in changes.items():
            if name in LIMITS:
                if value is not None and not is_amount(value):
                    raise ValueError(f"{name} must be a number that is not negative, or null.")
            elif name == "scope" and value not in SCOPES:
                raise ValueError(f"scope must be one of {', '.join(SCOPES)}.")
            elif name not in ("scope", "models"):
                raise ValueError(f"Unknown limit {name!r}: {', '.join((*LIMITS, 'scope', 'models'))} are known.")
        models = changes.get("models")
        if models is not None and not isinstance(models, dict):
            raise ValueError("models must be an object of limits by model.")
        if models is not None:
            changes = {**changes, "models": {name: LimitSettings().edited(each) for name, each in models.items()}}
        return replace(self, **changes)

    def as_json(self) -> dict[str, object]:
        """As `POST /limits` takes it."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class Draw:
    """What a request is charged at the door: `tokens` of the common limit, `input_tokens` of the one for input.

    `counts_apart`: the limits on input and output concern it. Of output nothing is charged at the door; what was made
    is taken at the end, below zero if need be, and until it has refilled nobody enters.
    """

    tokens: float = 0.0
    input_tokens: float = 0.0
    counts_apart: bool = False


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a request may not enter, and when to ask again.

    `cause`: requests, tokens, input_tokens, output_tokens, concurrency, too_large.
    """

    cause: str
    retry_after_s: float
    detail: str


@dataclass(slots=True)
class Bucket:
    """A token bucket that starts full."""

    rate: float
    burst: float
    level: float
    at: float

    def refill(self, now: float) -> None:
        """Bring the level to now."""
        self.level = min(self.burst, self.level + self.rate * max(0.0, now - self.at))
        self.at = now

    def lacks(self, amount: float) -> bool:
        """Whether the amount is not there, rounding aside."""
        return self.level + ROUNDING < amount

    def wait_s(self, amount: float) -> float:
        """Seconds until the amount is there."""
        return (amount - self.level) / self.rate if self.rate > 0 else RETRY_WITHOUT_REFILL_S

    def reset_s(self) -> float:
        """Seconds until the bucket is full."""
        return (self.burst - self.level) / self.rate if self.rate > 0 else RETRY_WITHOUT_REFILL_S


class Quota:
    """The state of one set of limits."""

    def __init__(self, settings: LimitSettings, *, now: float) -> None:
        self.in_flight = 0
        self.buckets: dict[str, Bucket] = {}
        self._concurrency: float | None = None
        self.edit(settings, now=now)

    def edit(self, settings: LimitSettings, *, now: float) -> None:
        """Take over new limits; a level stays where it is, as far as the new burst allows."""
        burst = settings.burst if settings.burst is not None else max(1.0, settings.rate or 0.0)
        together, tokens_burst = settings.tokens_per_minute, settings.tokens_burst
        into, out_of = settings.input_tokens_per_minute, settings.output_tokens_per_minute
        wanted = {
            "requests": (settings.rate, burst),
            "tokens": (_per_second(together), together if tokens_burst is None else tokens_burst),
            "input_tokens": (_per_second(into), into),
            "output_tokens": (_per_second(out_of), out_of),
        }
        self.buckets = {
            name: _bucket(rate, most, now, self.buckets.get(name))
            for name, (rate, most) in wanted.items()
            if rate is not None and most is not None
        }
        self._concurrency = settings.concurrency

    def refusal(self, draw: Draw, *, now: float) -> Refusal | None:
        """Why a request of so much may not enter now; None when it may. Charges nothing."""
        for bucket in self.buckets.values():
            bucket.refill(now)
        requests = self.buckets.get("requests")
        if requests is not None and requests.lacks(1.0):
            return Refusal("requests", requests.wait_s(1.0), f"requests per second: Limit {requests.rate:g}")
        wanted = [("tokens", draw.tokens)]
        if draw.counts_apart:
            wanted += [("input_tokens", draw.input_tokens), ("output_tokens", 1.0)]
        for name, amount in wanted:
            refusal = self._lack(name, amount)
            if refusal is not None:
                return refusal
        if self._concurrency is not None and self.in_flight >= self._concurrency:
            return Refusal("concurrency", CONCURRENCY_RETRY_S, f"concurrent requests: Limit {self._concurrency:g}")
        return None

    def _lack(self, name: str, amount: float) -> Refusal | None:
        bucket = self.buckets.get(name)
        if bucket is None:
            return None
        detail = f"{_PER_MINUTE[name]}: Limit {bucket.rate * 60:g}, Requested {amount:g}"
        if amount > bucket.burst:
            return Refusal("too_large", RETRY_WITHOUT_REFILL_S, detail)
        return Refusal(name, bucket.wait_s(amount), detail) if bucket.lacks(amount) else None

    def charge(self, draw: Draw) -> None:
        """Let one request in."""
        self.in_flight += 1
        self._take("requests", 1.0)
        self._take("tokens", draw.tokens)
        if draw.counts_apart:
            self._take("input_tokens", draw.input_tokens)

    def charge_output(self, tokens: float, *, now: float) -> None:
        """Take what was made, below zero if need be."""
        bucket = self.buckets.get("output_tokens")
        if bucket is not None:
            bucket.refill(now)
            bucket.level -= tokens

    def _take(self, name: str, amount: float) -> None:
        bucket = self.buckets.get(name)
        if bucket is not None:
            bucket.level -= amount


class Admission:
    """A request that is in. Leaving is idempotent: the way out may be the answer, a fault, or a lost client."""

    def __init__(self, quotas: list[Quota], *, counts_apart: bool) -> None:
        self._quotas = quotas
        self._counts_apart = counts_apart

    def made(self, output_tokens: float, *, now: float) -> None:
        """Charge the output to who counts it apart; before leaving."""
        for quota in self._quotas if self._counts_apart else ():
            quota.charge_output(output_tokens, now=now)

    def leave(self) -> bool:
        """Give the places back; whether this call did it."""
        held, self._quotas = self._quotas, []
        for quota in held:
            quota.in_flight -= 1
        return bool(held)


class Door:
    """All quotas, by what they count."""

    def __init__(self, settings: LimitSettings) -> None:
        self.settings = settings
        self._quotas: dict[str, Quota] = {}

    def edit(self, settings: LimitSettings, *, now: float) -> None:
        """Change the limits; levels and requests in flight are kept as far as the new limits know them."""
        self.settings = settings
        for name, quota in self._quotas.items():
            quota.edit(self._settings_of(name), now=now)

    def fill(self) -> None:
        """Fill every bucket."""
        for quota in self._quotas.values():
            for bucket in quota.buckets.values():
                bucket.level = bucket.burst

    def enter(self, model: str, draw: Draw, *, now: float, account: str = "") -> Admission | Refusal:
        """Let the request in under every limit that concerns it, or say which one refuses."""
        quotas = self.quotas(model, now=now, account=account)
        for quota in quotas:
            refusal = quota.refusal(draw, now=now)
            if refusal is not None:
                return refusal
        for quota in quotas:
            quota.charge(draw)
        return Admission(quotas, counts_apart=draw.counts_apart)

    def quotas(self, model: str, *, now: float, account: str = "") -> list[Quota]:
        """The quotas that concern a model and an account, the shared one first."""
        names = ["*" + {"global": "", "model": model, "key": account}[self.settings.scope]]
        if model in (self.settings.models or {}):
            names.append(model)
        for name in names:
            if name not in self._quotas:
                self._quotas[name] = Quota(self._settings_of(name), now=now)
        return [self._quotas[name] for name in names]

    def _settings_of(self, name: str) -> LimitSettings:
        return self.settings if name.startswith("*") else (self.settings.models or {}).get(name, LimitSettings())


def _per_second(per_minute: float | None) -> float | None:
    return None if per_minute is None else per_minute / 60.0


def _bucket(rate: float, burst: float, now: float, before: Bucket | None) -> Bucket:
    if before is None:
        return Bucket(rate, burst, burst, now)
    before.refill(now)
    return Bucket(rate, burst, min(burst, before.level), now)
