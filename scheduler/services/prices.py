"""Finds what a model costs at a time: what an operator says, else what is published, else a pool's ceiling.

Never makes a price up: a model that nobody has a price for has none.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from scheduler.policy.money import parse_usd
from scheduler.policy.prices import Band, PriceTable, Rates, flat
from scheduler.providers.catalog import published
from scheduler.store import money as store


class PriceBook:
    """The prices of some models."""

    def __init__(self, overrides: Collection[store.PriceOverride]) -> None:
        self._overrides = sorted(overrides, key=lambda each: (bool(each.provider), each.valid_from), reverse=True)

    def find(
        self, model: str, *, at: float, provider: str = "", base_url: str | None = None, tier: str | None = None
    ) -> PriceTable | None:
        """The prices of a model at a time, by Unix seconds. An operator's own go before published ones.

        One for the model at this provider goes before one for the model anywhere; of several, the latest.
        """
        for each in self._overrides:
            if each.model == model and each.provider in ("", provider) and _is_valid(each, at):
                return flat(
                    each.input,
                    each.output,
                    cache_read=each.cache_read,
                    cache_write=each.cache_write,
                    cache_write_1h=each.cache_write_1h,
                )
        found = published(model, at=at, provider=provider, base_url=base_url, tier=tier)
        return None if found is None else PriceTable(tuple(Band(above, Rates(*rates)) for above, rates in found.bands))


def load_book(models: Collection[str]) -> PriceBook:
    """The prices of these models."""
    return PriceBook(store.load_prices_of(sorted(models)) if models else [])


def ceiling_of(config: Mapping[str, object]) -> PriceTable | None:
    """The price that a pool lets a model have that has no other; None where it names none."""
    costs = [config.get(f"ceiling_{way}_usd_per_mtok") for way in ("input", "output")]
    input_, output = (parse_usd(cost) if isinstance(cost, str) else None for cost in costs)
    return None if input_ is None or output is None else flat(input_, output, source="ceiling")


def _is_valid(price: store.PriceOverride, at: float) -> bool:
    return price.valid_from <= at and (price.valid_to is None or at < price.valid_to)
