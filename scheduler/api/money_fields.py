"""Dollars in requests and answers: text outside, nano-dollars inside, never a float."""

from __future__ import annotations

from decimal import Decimal
from typing import Annotated, Final

from pydantic import Field

from scheduler.api.fields import Text

NANO: Final = 10**9
Usd = Annotated[Text, Field(pattern=r"^\d{1,9}(\.\d{1,9})?$", description="US dollars, as text: 12.50")]


def nano(usd: str | None) -> int | None:
    """Dollars as text in nano-dollars."""
    return None if usd is None else int(Decimal(usd) * NANO)


def usd(amount: int | None) -> str | None:
    """Nano-dollars as dollars."""
    return None if amount is None else f"{Decimal(amount) / NANO:.9f}".rstrip("0").rstrip(".")
