"""What a rehearsal promises, what was seen, and whether the promise was kept.

Decides how verdicts are told: a table for people, one object for programs. It must never soften a verdict: a promise
that could not be looked at is broken.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Promise:
    """One line of the verdict: what was asked for, and what was seen, both in words."""

    name: str
    seen: str
    kept: bool


@dataclass(frozen=True, slots=True)
class Verdict:
    """All promises of one rehearsal, and facts worth knowing that promise nothing. `took_s` is wall-clock seconds."""

    rehearsal: str
    story: str
    promises: tuple[Promise, ...]
    facts: tuple[tuple[str, str], ...]
    took_s: float

    @property
    def kept(self) -> bool:
        """Whether every promise was kept; no promise at all is none kept."""
        return bool(self.promises) and all(promise.kept for promise in self.promises)

    def as_json(self) -> dict[str, Any]:
        """One object for programs."""
        return {
            "rehearsal": self.rehearsal,
            "story": self.story,
            "kept": self.kept,
            "promises": [asdict(promise) for promise in self.promises],
            "facts": dict(self.facts),
            "took_s": round(self.took_s, 3),
        }

    def as_text(self) -> str:
        """The table for people."""
        rows = [("kept" if promise.kept else "BROKEN", promise.name, promise.seen) for promise in self.promises]
        broken = sum(not promise.kept for promise in self.promises)
        if broken:
            end = f"{broken} of {len(self.promises)} promises were broken."
        else:
            end = "Every promise was kept." if self.promises else "Nothing was promised."
        facts = [("", name, value) for name, value in self.facts]
        title = f"{self.rehearsal}: {self.story} ({minutes(self.took_s)})"
        return "\n".join([title, "", *_aligned(rows), *(["", *_aligned(facts)] if facts else []), "", end])


def minutes(seconds: float) -> str:
    """How long, for people."""
    whole = round(seconds)
    return f"{whole} s" if whole < 60 else f"{whole // 60} min {whole % 60:02} s"  # noqa: PLR2004 - seconds of a minute


def _aligned(rows: Sequence[tuple[str, str, str]]) -> list[str]:
    mark = max(len(row[0]) for row in rows)
    name = max(len(row[1]) for row in rows)
    return [f"  {row[0]:<{mark}}  {row[1]:<{name}}  {row[2]}".rstrip() for row in rows]
