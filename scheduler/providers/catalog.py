"""The published prices of models, from the genai-prices data that is installed with us.

Decides which entry of that data a model name means and what it says in our terms. It must never ask the network (the
data is as new as the package), and never make a price up: a model that is not there, or is there without one, has none.
"""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from functools import lru_cache
from typing import Final, NamedTuple

from genai_prices.data_snapshot import get_snapshot
from genai_prices.types import ModelPrice, TieredPrices

NANO_PER_USD: Final = 1_000_000_000
UNITS: Final = ("input", "cache_read", "cache_write", "cache_write_1h", "output", "reasoning")
_KEYS: Final = {
    "input": ("input_mtok",),
    "cache_read": ("cache_read_mtok", "input_mtok"),
    "cache_write": ("cache_write_5m_mtok", "cache_write_mtok", "input_mtok"),
    "cache_write_1h": ("cache_write_1h_mtok", "cache_write_mtok", "input_mtok"),
    "output": ("output_mtok",),
    "reasoning": ("output_reasoning_mtok", "output_mtok"),
}
_TIERS: Final = frozenset({"priority", "flex", "fast", "batch"})


class Published(NamedTuple):
    """A model's prices in nano-dollars per million tokens: (above so much input, one figure for each of `UNITS`)."""

    model: str
    provider: str
    bands: tuple[tuple[int, tuple[int, ...]], ...]


def published(
    model: str, *, at: float, provider: str = "", base_url: str | None = None, tier: str | None = None
) -> Published | None:
    """The prices of a model at a time (Unix seconds), by provider or address where these are known; None: not known.

    `tier` is a service tier as requests and answers name it; those that no price is known for are the standard one.
    """
    day = dt.datetime.fromtimestamp(at, dt.UTC).replace(minute=0, second=0, microsecond=0)
    return _published(model, provider or None, base_url, tier if tier in _TIERS else None, day)


@lru_cache(maxsize=1024)
def _published(
    model: str, provider: str | None, base_url: str | None, tier: str | None, hour: dt.datetime
) -> Published | None:
    data = get_snapshot()
    for provider_id, address in ((provider, None), (None, base_url), (None, None)):
        if provider is not None and provider_id is None:
            break  # The operator has said whose model it is.
        try:
            house, found = data.find_provider_model(model, None, provider_id, address)
        except LookupError:
            continue
        context = None if tier is None else {"processing" if tier == "batch" else "service_tier": tier}
        bands = _bands(found.get_prices(hour, context))
        if bands is not None:
            return Published(found.id, house.id, bands)
    return None


def _bands(price: ModelPrice) -> tuple[tuple[int, tuple[int, ...]], ...] | None:
    values = {unit: _first(price, keys) for unit, keys in _KEYS.items()}
    if values["input"] is None:
        return None
    starts = {-1} | {tier.start for v in values.values() if isinstance(v, TieredPrices) for tier in v.tiers}
    return tuple((start, tuple(_nano(_at(values[unit], start)) for unit in UNITS)) for start in sorted(starts))


def _first(price: ModelPrice, keys: tuple[str, ...]) -> Decimal | TieredPrices | None:
    return next((v for key in keys if (v := getattr(price, key, None)) is not None), None)


def _at(value: Decimal | TieredPrices | None, start: int) -> Decimal:
    """The price in the band that begins above `start`; a unit that has none (the output of embeddings) is not sold."""
    if value is None:
        return Decimal(0)
    if not isinstance(value, TieredPrices):
        return value
    return next((tier.price for tier in reversed(value.tiers) if start >= tier.start), value.base)


def _nano(usd: Decimal) -> int:
    """Rounded up to a whole nano-dollar per million tokens."""
    return int(-(-usd * NANO_PER_USD // 1))
