"""What of a snapshot is about money: what all tenants burn per hour, and those who burn most.

It must never fail on a snapshot, and never makes an amount of what is not a whole number.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

ROWS_MAX: Final = 10
_CHARS_MAX: Final = 64
_NANO_MAX: Final = 10**18


@dataclass(frozen=True, slots=True)
class SpenderView:
    """One of the tenants that burn most. Nano-dollars, `burn` per hour; `limit` None: none."""

    tenant: str
    burn: int
    spent: int
    limit: int | None
    state: str


@dataclass(frozen=True, slots=True)
class Spending:
    """What all tenants burn, in nano-dollars per hour, and the fastest of them."""

    burn: int
    spenders: tuple[SpenderView, ...]


NOTHING_SPENT: Final = Spending(0, ())


def read_spending(item: Mapping[str, Any]) -> Spending:
    """The part of a snapshot; what is missing or odd is nothing."""
    rows = item.get("tenants")
    found = [_spender(row) for row in rows if isinstance(row, Mapping)] if isinstance(rows, list) else []
    return Spending(_nano(item, "burn") or 0, tuple(row for row in found if row.tenant)[:ROWS_MAX])


def _spender(row: Mapping[str, Any]) -> SpenderView:
    return SpenderView(
        _word(row, "tenant"),
        _nano(row, "burn") or 0,
        _nano(row, "spent") or 0,
        _nano(row, "limit"),
        _word(row, "state"),
    )


def _nano(row: Mapping[str, Any], key: str) -> int | None:
    value = row.get(key)
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= _NANO_MAX else None


def _word(row: Mapping[str, Any], key: str) -> str:
    value = row.get(key)
    return "".join(sign for sign in value if sign.isprintable())[:_CHARS_MAX] if isinstance(value, str) else ""
