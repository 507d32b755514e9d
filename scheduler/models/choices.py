"""How an enumeration becomes the choices of a column."""

from __future__ import annotations

from enum import Enum


def choices(values: type[Enum]) -> list[tuple[str, str]]:
    """Each value with itself as its label."""
    return [(str(v.value), str(v.value)) for v in values]
