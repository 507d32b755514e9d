"""Decides how money is written and counted: whole nano-dollars inside, texts in US dollars outside.

It never meets a float: a sum of floats is not the sum that was spent.
"""

from __future__ import annotations

from decimal import Decimal, InvalidOperation
from typing import Final

NANO: Final = 1_000_000_000
"""Nano-dollars in a dollar."""
MTOK: Final = 1_000_000
"""Prices are for so many tokens."""
USD_MAX: Final = 1_000_000_000
"""The largest amount that anybody may name, in dollars; a hundred of them still fit the database's integers."""
_TEXT_MAX: Final = 32


def parse_usd(text: str) -> int:
    """Nano-dollars of a text like "12.50". Raises ValueError with a sentence."""
    try:
        amount = Decimal(text.strip()) if len(text) <= _TEXT_MAX else Decimal("NaN")
    except InvalidOperation:
        amount = Decimal("NaN")
    if not amount.is_finite():
        raise ValueError('Write an amount of dollars as text, like "12.50".')
    if not 0 <= amount <= USD_MAX:
        raise ValueError(f"An amount is at least 0 and at most {USD_MAX} dollars.")
    nano = amount * NANO
    if nano != nano.to_integral_value():
        raise ValueError("An amount has at most nine decimal places: nano-dollars are the smallest unit.")
    return int(nano)


def format_usd(nano: int) -> str:
    """The amount as text: at least two decimal places, at most nine, nothing rounded."""
    sign, whole, rest = "-" if nano < 0 else "", *divmod(abs(nano), NANO)
    return f"{sign}{whole}.{f'{rest:09d}'.rstrip('0').ljust(2, '0')}"


def per_mtok(tokens_times_rate: int) -> int:
    """Nano-dollars of tokens × (nano-dollars per million tokens), a begun nano-dollar counting whole."""
    return -(-tokens_times_rate // MTOK)
