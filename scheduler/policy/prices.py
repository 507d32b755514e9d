"""Decides what a call of a model costs: at most, before it is made, and exactly, from what it used.

Both are one function (`cost_of`) over one table of prices, so that an estimate cannot forget what the bill will know
(long input, a dearer service tier, cache writes). It never guesses a price: whose price is unknown has no table.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from scheduler.policy.money import MTOK, per_mtok

OUTPUT_DEFAULT_TOKENS: Final = 4_096
"""What a call that names no limit of its output may write, where a budget needs one and its pool names none."""
USEFUL_OUTPUT_TOKENS: Final = 64
"""An answer is not worth starting if it must be shorter than this (or than a quarter of what was asked)."""
UNSEEN_TOKENS_PER_S: Final = 50
"""What a model is taken to have written per second while nobody saw it."""


class Rates(NamedTuple):
    """Nano-dollars per million tokens, by what the tokens are."""

    input: int
    cache_read: int
    cache_write: int
    cache_write_1h: int
    output: int
    reasoning: int


class Buckets(NamedTuple):
    """Tokens of one call; no token is in two of them."""

    input_uncached: int = 0
    cache_read: int = 0
    cache_write: int = 0
    cache_write_1h: int = 0
    output_visible: int = 0
    output_reasoning: int = 0

    @property
    def input_total(self) -> int:
        """What went in, cached or not."""
        return sum(self[:4])


class Band(NamedTuple):
    """The rates of calls with more than so many input tokens."""

    above: int
    rates: Rates


@dataclass(frozen=True, slots=True)
class PriceTable:
    """The prices of a model, by how long the input is; ascending, the first one for any length.

    `source` says whose they are: `catalog`, `operator` or `ceiling`.
    """

    bands: tuple[Band, ...]
    source: str = "catalog"

    def rates_for(self, input_total: int) -> Rates:
        """The rates of a call with so much input. All of it is priced at them, not only what is above the line."""
        return next(band.rates for band in reversed(self.bands) if input_total > band.above or band is self.bands[0])

    @property
    def is_free(self) -> bool:
        """Whether nothing that it could be used for costs anything."""
        return not any(any(band.rates) for band in self.bands)


def flat(
    input_: int,
    output: int,
    *,
    cache_read: int | None = None,
    cache_write: int | None = None,
    cache_write_1h: int | None = None,
    source: str = "operator",
) -> PriceTable:
    """A table of one band. What is not named costs what it is a kind of: cached input as input."""
    write = input_ if cache_write is None else cache_write
    rates = Rates(
        input_,
        input_ if cache_read is None else cache_read,
        write,
        write if cache_write_1h is None else cache_write_1h,
        output,
        output,
    )
    return PriceTable((Band(-1, rates),), source)


def cost_of(table: PriceTable, used: Buckets) -> int:
    """Nano-dollars of a call that used this. A begun nano-dollar counts whole."""
    rates = table.rates_for(used.input_total)
    return per_mtok(sum(tokens * rate for tokens, rate in zip(used, rates, strict=True)))


class Asked(NamedTuple):
    """What a call may use at most, as far as its request says.

    `input_most` bounds its input from above, `input_likely` is nearer the truth. `output_most` None: it names no limit.
    `writes_1h`: it asks to keep its input in the long-lived cache, which is dearer.
    """

    input_most: int
    input_likely: int
    output_most: int | None
    answers: int = 1
    writes_1h: bool = False
    has_output: bool = True


@dataclass(frozen=True, slots=True)
class Estimate:
    """What a call costs at most, and below what it is not worth starting; `input_cost` is its share of the input."""

    most: int
    least: int
    input_cost: int
    output_most: int
    output_rate: int


def estimate(table: PriceTable, asked: Asked, *, output_default: int = OUTPUT_DEFAULT_TOKENS) -> Estimate:
    """The bounds of a call: its whole input at the dearest way of reading it in, its whole output."""
    rates = table.rates_for(asked.input_most)
    ways = (
        Buckets(input_uncached=asked.input_most),
        Buckets(cache_write=asked.input_most),
        Buckets(cache_write_1h=asked.input_most if asked.writes_1h else 0),
    )
    input_cost = max(cost_of(table, way) for way in ways)
    single = 0 if not asked.has_output else output_default if asked.output_most is None else asked.output_most
    output = single * max(1, asked.answers)
    rate = max(rates.output, rates.reasoning)
    useful = min(output, max(USEFUL_OUTPUT_TOKENS, output // 4))
    return Estimate(
        most=input_cost + per_mtok(output * rate),
        least=input_cost + per_mtok(useful * rate),
        input_cost=input_cost,
        output_most=single,
        output_rate=rate * max(1, asked.answers),
    )


def clamped_output(*, reserved: int, input_cost: int, output_most: int, output_rate: int) -> int:
    """Output tokens that what is reserved pays for, at most what was asked; `output_rate` is per million tokens."""
    if output_rate <= 0:
        return output_most
    return min(output_most, max(0, reserved - input_cost) * MTOK // output_rate)


def unseen(asked_input: int, output_most: int, elapsed_s: float) -> Buckets:
    """What a call is taken to have used whose end nobody saw: its input, and what can be written in that time."""
    return Buckets(
        input_uncached=asked_input, output_visible=min(output_most, int(max(0.0, elapsed_s) * UNSEEN_TOKENS_PER_S))
    )


def buckets_of(usage: Mapping[str, object]) -> Buckets:
    """The buckets of a usage record; what it does not name, or what is no count, is 0.

    One that has no buckets may say `input_tokens` and `output_tokens`, as providers do.
    """
    if not any(name in usage for name in Buckets._fields):
        return Buckets(
            input_uncached=_count(usage.get("input_tokens")), output_visible=_count(usage.get("output_tokens"))
        )
    return Buckets(*(_count(usage.get(name)) for name in Buckets._fields))


def _count(value: object) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else 0


def table_as_json(table: PriceTable) -> list[list[int]]:
    """The table as it is kept with a task."""
    return [[band.above, *band.rates] for band in table.bands]


def table_from_json(bands: Sequence[Sequence[int]], source: str) -> PriceTable:
    """The table that was kept."""
    return PriceTable(tuple(Band(above, Rates(*rates)) for above, *rates in bands), source)
