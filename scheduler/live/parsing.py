"""Reads single values of a stored snapshot, whatever an engine of another release wrote there. It never fails."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Final

NAME_CHARS_MAX: Final = 200
UNIX_S_MAX: Final = 32_503_680_000  # the year 3000

Json = Mapping[str, Any]


def map_of(item: Json, key: str) -> Json:
    """The object under this key; an empty one when there is none."""
    value = item.get(key)
    return value if isinstance(value, Mapping) else {}


def items_of(item: Json, key: str) -> list[Json]:
    """The objects of the list under this key."""
    value = item.get(key)
    return [entry for entry in value if isinstance(entry, Mapping)] if isinstance(value, list) else []


def number_of(item: Json, key: str) -> float | None:
    """A finite number; None for anything else."""
    value = item.get(key)
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        return None
    return float(value)


def time_of(item: Json, key: str) -> float | None:
    """Unix seconds that a calendar has."""
    value = number_of(item, key)
    return value if value is not None and 0 <= value <= UNIX_S_MAX else None


def whole_of(item: Json, key: str) -> int:
    """A whole number; 0 when there is none."""
    return int(number_of(item, key) or 0)


def series_of(item: Json, key: str) -> tuple[float, ...]:
    """The last minute of a series."""
    value = item.get(key)
    if not isinstance(value, list):
        return ()
    return tuple(float(entry) for entry in value[-60:] if isinstance(entry, int | float) and math.isfinite(entry))


def name_of(item: Json, key: str) -> str:
    """A name, cut to what a page can show."""
    return text_of(item, key, NAME_CHARS_MAX)


def text_of(item: Json, key: str, chars_max: int) -> str:
    """A text without control characters, cut to so many characters."""
    value = item.get(key)
    if value is None:
        return ""
    text = "".join(char if char.isprintable() else " " for char in str(value)[: chars_max + 1])
    return text if len(text) <= chars_max else text[: chars_max - 1] + "…"


def texts_of(item: Json, key: str, chars_max: int) -> tuple[str, ...]:
    """The texts of the list under this key, each as `text_of` reads one."""
    value = item.get(key)
    return tuple(text_of({key: each}, key, chars_max) for each in value) if isinstance(value, list) else ()
