"""The limits that the provider enforces at its door.

Decides whether a request may enter: requests per second and tokens per minute (token buckets) and requests in flight,
for everything together or for each model. It must never let part of a request in: all limits agree, or none is charged.
Times are seconds of a monotonic clock, given by the caller.
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
SCOPES: Final = ("global", "model")
_NUMBERS: Final = ("rate", "burst", "tokens_per_minute", "tokens_burst", "concurrency")


def is_amount(value: object) -> bool:
    """Whether the value is a number, finite and not negative."""
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < math.inf


@dataclass(frozen=True, slots=True, kw_only=True)
class LimitSettings:
    """Limits; None is unlimited. `rate` is per second. `models` names models that have limits of their own on top."""

    rate: float | None = None
    burst: float | None = None
    tokens_per_minute: float | None = None
    tokens_burst: float | None = None
    concurrency: float | None = None
    scope: str = "global"
    models: Mapping[str, LimitSettings] | None = None

    def edited(self, changes: object) -> LimitSettings:
        """With the given fields changed; null lifts a limit. Raises ValueError with a sentence."""
        if not isinstance(changes, dict):
            raise ValueError("Limits are an object.")  # noqa: TRY004 - one kind of error for all bad settings
        for name, value in changes.items():
            if name in _NUMBERS:
                if value is not None and not is_amount(value):
                    raise ValueError(f"{name} must be a number that is not negative, or null.")
            elif name == "scope" and value not in SCOPES:
                raise ValueError(f"scope must be one of {', '.join(SCOPES)}.")
            elif name not in ("scope", "models"):
                raise ValueError(f"Unknown limit {name!r}: {', '.join((*_NUMBERS, 'scope', 'models'))} are known.")
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
class Refusal:
    """Why a request may not enter, and when to ask again. `cause`: requests, tokens, concurrency, too_large."""

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
        self.requests: Bucket | None = None
        self.tokens: Bucket | None = None
        self._concurrency: float | None = None
        self.edit(settings, now=now)

    def edit(self, settings: LimitSettings, *, now: float) -> None:
        """Take over new limits; a level stays where it is, as far as the new burst allows."""
        burst = settings.burst if settings.burst is not None else max(1.0, settings.rate or 0.0)
        per_minute, tokens_burst = settings.tokens_per_minute, settings.tokens_burst
        tokens_rate = None if per_minute is None else per_minute / 60.0
        self.requests = _bucket(settings.rate, burst, now, self.requests)
        self.tokens = _bucket(tokens_rate, per_minute if tokens_burst is None else tokens_burst, now, self.tokens)
        self._concurrency = settings.concurrency

    def refusal(self, tokens: float, *, now: float) -> Refusal | None:
        """Why a request of so many tokens may not enter now; None when it may. Charges nothing."""
        if self.requests is not None:
            self.requests.refill(now)
            if self.requests.lacks(1.0):
                detail = f"requests per second: Limit {self.requests.rate:g}"
                return Refusal("requests", self.requests.wait_s(1.0), detail)
        if self.tokens is not None:
            self.tokens.refill(now)
            detail = f"tokens per min (TPM): Limit {self.tokens.rate * 60:g}, Requested {tokens:g}"
            if tokens > self.tokens.burst:
                return Refusal("too_large", RETRY_WITHOUT_REFILL_S, detail)
            if self.tokens.lacks(tokens):
                return Refusal("tokens", self.tokens.wait_s(tokens), detail)
        if self._concurrency is not None and self.in_flight >= self._concurrency:
            return Refusal("concurrency", CONCURRENCY_RETRY_S, f"concurrent requests: Limit {self._concurrency:g}")
        return None

    def charge(self, tokens: float) -> None:
        """Let one request in."""
        self.in_flight += 1
        if self.requests is not None:
            self.requests.level -= 1.0
        if self.tokens is not None:
            self.tokens.level -= tokens


class Admission:
    """A request that is in. Leaving is idempotent: the way out may be the answer, a fault, or a lost client."""

    def __init__(self, quotas: list[Quota]) -> None:
        self._quotas = quotas

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
            for bucket in (quota.requests, quota.tokens):
                if bucket is not None:
                    bucket.level = bucket.burst

    def enter(self, model: str, tokens: float, *, now: float) -> Admission | Refusal:
        """Let the request in under every limit that concerns it, or say which one refuses."""
        quotas = self.quotas(model, now=now)
        for quota in quotas:
            refusal = quota.refusal(tokens, now=now)
            if refusal is not None:
                return refusal
        for quota in quotas:
            quota.charge(tokens)
        return Admission(quotas)

    def quotas(self, model: str, *, now: float) -> list[Quota]:
        """The quotas that concern a model, the shared one first."""
        names = ["*" if self.settings.scope == "global" else f"*{model}"]
        if model in (self.settings.models or {}):
            names.append(model)
        for name in names:
            if name not in self._quotas:
                self._quotas[name] = Quota(self._settings_of(name), now=now)
        return [self._quotas[name] for name in names]

    def _settings_of(self, name: str) -> LimitSettings:
        return self.settings if name.startswith("*") else (self.settings.models or {}).get(name, LimitSettings())


def _bucket(rate: float | None, burst: float | None, now: float, before: Bucket | None) -> Bucket | None:
    if rate is None or burst is None:
        return None
    if before is None:
        return Bucket(rate, burst, burst, now)
    before.refill(now)
    return Bucket(rate, burst, min(burst, before.level), now)
