"""What the books look like to those who read them: prices, costs, alerts. Nano-dollars, times in Unix seconds.

Decides nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple


@dataclass(frozen=True, slots=True, kw_only=True)
class PriceSettings:
    """What a model costs, in nano-dollars per million tokens, in [valid_from, valid_to); None from: from now on."""

    model: str
    provider: str = ""
    input: int
    output: int
    cache_read: int | None = None
    cache_write: int | None = None
    cache_write_1h: int | None = None
    valid_from: float | None = None
    valid_to: float | None = None


class PriceRow(NamedTuple):
    """An operator's price."""

    id: int
    settings: PriceSettings
    version: int


class CostRow(NamedTuple):
    """What was spent on something, in nano-dollars; `total`: on everything. None: not asked by that."""

    tenant: str | None
    pool: str | None
    kind: str | None
    model: str | None
    total: bool
    cost: int
    charged: int
    waste: int
    successes: int


class AlertRow(NamedTuple):
    """An alert as it is shown. Times in Unix seconds."""

    id: int
    scope: str
    scope_id: int
    tenant: str
    threshold: float
    limit: int
    spent: int
    at: float
    period_start: float | None
    period_end: float | None


class TopUpRow(NamedTuple):
    """What was added to a budget for a while. `ended_at`: somebody ended it before `ends_at`."""

    id: int
    amount: int
    starts_at: float
    ends_at: float
    ended_at: float | None
    actor: str
    reason: str
    in_force: bool
