"""Decides what several records of use come to in all, and whether one may be kept.

A record is what a call of a model, or of anything else, has used: counts by name, the `model`, perhaps `cost_usd`.
It never says what that costs: that is `charges`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from decimal import Decimal, InvalidOperation
from typing import Any, Final

CHARGES_MAX: Final = 1_000
"""Of one attempt, while it runs."""
USAGE_BYTES_MAX: Final = 16_384
CALL_CHARS_MAX: Final = 100


def in_all(usages: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """One record for several: counts are added, and of the rest that is kept in which all agree."""
    counts: Counter[str] = Counter()
    for usage in usages:
        counts.update({name: n for name, n in usage.items() if isinstance(n, int) and not isinstance(n, bool)})
    first = usages[0] if usages else {}
    rest = {
        name: value
        for name, value in first.items()
        if name not in counts and name != "cost_usd" and all(other.get(name) == value for other in usages)
    }
    said = [cost for usage in usages if (cost := _cost(usage)) is not None]
    return rest | dict(counts) | ({"cost_usd": f"{sum(said):f}"} if said else {})


def _cost(usage: Mapping[str, Any]) -> Decimal | None:
    """What it says that it cost, where that can be read."""
    try:
        cost = Decimal(str(usage["cost_usd"]))
    except (KeyError, InvalidOperation):
        return None
    return cost if cost.is_finite() else None
