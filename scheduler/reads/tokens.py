"""Tokens for those who give them out: whose they are, what they open, and when they were used last."""

from __future__ import annotations

from scheduler.store import tokens as store
from scheduler.store.tokens import TokenEntry

__all__ = ["TokenEntry", "list_tokens"]


def list_tokens(*, before: int | None, rows_max: int) -> list[TokenEntry]:
    """The newest first; also those that open nothing any more."""
    return store.load(before=before, rows_max=rows_max)
