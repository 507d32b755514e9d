"""Dollars that may be missing, in requests and answers: text outside, nano-dollars inside, never a float."""

from __future__ import annotations

from scheduler.policy.money import format_usd, parse_usd


def nano(text: str | None) -> int | None:
    """Nano-dollars of dollars as text; None stays None."""
    return None if text is None else parse_usd(text)


def usd(amount: int | None) -> str | None:
    """Dollars as text of nano-dollars; None stays None."""
    return None if amount is None else format_usd(amount)
