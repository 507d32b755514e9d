"""Decides what an attempt is billed when it ends, whoever ends it and whatever became of it.

What was used is billed as it was reported. An attempt that says itself that it failed, and reports no use, cost
nothing; one that ended without a word (timed out, lost, stopped) is billed for its input and what can have come. It is
never zero for want of a report, and never decides who pays: that is `budget`. Calls that were charged while it ran are
billed one by one; where there are any, nothing is guessed besides.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from scheduler.policy.money import parse_usd
from scheduler.policy.prices import (
    Buckets,
    PriceTable,
    buckets_of,
    clamped_output,
    cost_of,
    table_as_json,
    table_from_json,
    unseen,
)
from scheduler.policy.types import Outcome

CALL_LINE: Final = 0
TIME_LINE: Final = 1
CHARGED_LINE: Final = 2
"""The first of the calls that were charged while the attempt ran."""
MICRO: Final = 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Pricing:
    """How a task's cost was estimated, kept with it. `table` None: no model is called, and `most` is what it may cost.

    `tier` is the service tier that the request names; `output_rate` nano-dollars per million tokens of output.
    """

    most: int
    model: str | None = None
    provider: str = ""
    base_url: str | None = None
    tier: str | None = None
    table: PriceTable | None = None
    input_likely: int = 0
    input_cost: int = 0
    output_most: int = 0
    output_rate: int = 0

    def max_output_tokens(self, reserved: int) -> int | None:
        """What may be written for this much; None where no model is called, or it writes nothing."""
        if self.table is None or self.output_most <= 0:
            return None
        return clamped_output(
            reserved=reserved,
            input_cost=self.input_cost,
            output_most=self.output_most,
            output_rate=self.output_rate,
        )

    def as_json(self) -> dict[str, object]:
        """As it is kept; `read_pricing` is its inverse."""
        kept: dict[str, object] = {"most": self.most}
        if self.table is not None:
            kept |= {"bands": table_as_json(self.table), "source": self.table.source}
        for name in _KEPT:
            if getattr(self, name):
                kept[name] = getattr(self, name)
        return kept


_KEPT: Final = ("model", "provider", "base_url", "tier", "input_likely", "input_cost", "output_most", "output_rate")


def read_pricing(kept: Mapping[str, Any]) -> Pricing:
    """What was kept with a task."""
    table = table_from_json(kept["bands"], kept["source"]) if "bands" in kept else None
    return Pricing(most=kept["most"], table=table, **{name: kept[name] for name in _KEPT if name in kept})


class Ended(NamedTuple):
    """An attempt that has ended. `began`: it was under way, so that what it did not report may still have cost.

    `table` holds the prices at its start; `worker_second_nano` is what the pool's workers cost; `usage` what
    it reported at its end; `charged` what its calls were charged while it ran, each with the prices of its model.
    """

    outcome: Outcome
    began: bool
    elapsed_s: float
    reserved: int
    pricing: Pricing | None
    table: PriceTable | None
    worker_second_nano: int | None
    usage: Mapping[str, Any] | None = None
    charged: tuple[tuple[Mapping[str, Any], PriceTable | None], ...] = ()


class Line(NamedTuple):
    """One line of the bill, in nano-dollars. `source`: how far the use is known; `price_source`: whose price it is."""

    line: int
    cost: int
    source: str
    price_source: str
    usage: Mapping[str, Any] | None = None
    model: str | None = None


def began(outcome: Outcome, said: bool | None) -> bool:  # noqa: FBT001 - what was said, if anything
    """Whether an attempt was under way when it ended: as it says, else a hand-back was not and everything else was."""
    return outcome is not Outcome.RELEASED if said is None else said


def bill(ended: Ended) -> list[Line]:
    """The lines of an attempt; none for one that cost nothing and achieved nothing."""
    lines = []
    call = _call(ended, ended.pricing)
    if call is not None:
        lines.append(call)
    if ended.worker_second_nano is not None and ended.began:
        micros = int(max(0.0, ended.elapsed_s) * MICRO)
        cost = -(-micros * ended.worker_second_nano // MICRO)
        lines.append(Line(TIME_LINE, cost, "reported", "operator"))
    for place, (usage, table) in enumerate(ended.charged, CHARGED_LINE):
        line = _charged(ended, usage, table)
        if line is not None:
            lines.append(line._replace(line=place))
    return lines


def _charged(ended: Ended, usage: Mapping[str, Any], table: PriceTable | None) -> Line | None:
    """A call that was charged; None where it has no price of its own, as in work at a flat price."""
    said = _said(ended, usage)
    if said is not None or ended.pricing is None or table is None:
        return said
    cost = cost_of(table, buckets_of(usage))
    return Line(CHARGED_LINE, cost, _source(usage), table.source, usage, _model(usage, ended.pricing))


def _call(ended: Ended, pricing: Pricing | None) -> Line | None:
    """What was called, if anything: of work that is priced by its worker's time alone only what it says itself."""
    usage = ended.usage
    said = None if usage is None else _said(ended, usage)
    if said is not None:
        return said
    if pricing is None or (pricing.table is None and ended.worker_second_nano is not None):
        return None
    if usage is None:
        return _unreported(ended, pricing)
    table = ended.table or pricing.table
    if table is None:
        # A flat price: what was used does not change it.
        return Line(CALL_LINE, ended.reserved, "estimated", "operator", usage)
    used, source = buckets_of(usage), _source(usage)
    cost = cost_of(table, used)
    if source == "unknown":
        cost = max(cost, cost_of(table, _unseen(ended, pricing)))
    return Line(CALL_LINE, cost, source, table.source, usage, _model(usage, pricing))


def _said(ended: Ended, usage: Mapping[str, Any]) -> Line | None:
    """A call whose cost its worker knows and says."""
    if not isinstance(usage.get("cost_usd"), str):
        return None
    pricing = ended.pricing
    cost = _said_cost(usage["cost_usd"], ended.reserved if pricing is None else pricing.most)
    return Line(CALL_LINE, cost, _source(usage), "reported", usage, None if pricing is None else pricing.model)


def _unreported(ended: Ended, pricing: Pricing) -> Line | None:
    if ended.outcome is Outcome.FAILED or not ended.began:
        return None
    table = ended.table or pricing.table
    if ended.charged and table is not None:
        return None
    if table is None:
        return Line(CALL_LINE, ended.reserved, "unknown", "operator")
    used = _unseen(ended, pricing)
    return Line(CALL_LINE, cost_of(table, used), "unknown", table.source, used._asdict(), pricing.model)


def _unseen(ended: Ended, pricing: Pricing) -> Buckets:
    return unseen(pricing.input_likely, pricing.output_most, ended.elapsed_s)


def _said_cost(text: str, most: int) -> int:
    """What a worker says that it cost; what cannot be read is taken for the most that it may."""
    try:
        return parse_usd(text)
    except ValueError:
        return most


def _source(usage: Mapping[str, Any]) -> str:
    source = usage.get("source")
    return source if source in ("reported", "estimated", "unknown") else "reported"


def _model(usage: Mapping[str, Any], pricing: Pricing) -> str | None:
    model = usage.get("model")
    return model[:200] if isinstance(model, str) and model else pricing.model
