"""Decides how much of its parents' results a task is handed: in the order in which it named them, up to a size."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

UPSTREAM_BYTES_MAX: Final = 262_144
"""Of all results that one attempt is handed."""


class Outcome(NamedTuple):
    """What became of a parent. `bytes` is the size of its result, `result` its JSON text unless that was too large."""

    name: str
    state: str
    bytes: int | None
    result: str | None


@dataclass(frozen=True, slots=True)
class Handed:
    """One parent as the child sees it. `truncated_bytes` is the size of a result that is left out."""

    name: str
    state: str
    result: str | None
    truncated_bytes: int | None = None


def hand_over(outcomes: Sequence[Outcome], *, bytes_max: int = UPSTREAM_BYTES_MAX) -> list[Handed]:
    """What the child gets. A result that does not fit any more is left out whole; smaller ones after it still come."""
    left = bytes_max
    handed = []
    for outcome in outcomes:
        size = len(outcome.result.encode()) if outcome.result is not None else outcome.bytes
        if size is None:
            handed.append(Handed(outcome.name, outcome.state, None))
        elif outcome.result is None or size > left:
            handed.append(Handed(outcome.name, outcome.state, None, size))
        else:
            left -= size
            handed.append(Handed(outcome.name, outcome.state, outcome.result))
    return handed
