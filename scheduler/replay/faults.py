"""How a trace or settings are refused: as a whole, with every fault that was found, up to a bound."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

FAULTS_MAX: Final = 20


class ReplayRefused(Exception):
    """The input cannot be used. `faults` are sentences that name the place."""

    def __init__(self, what: str, faults: list[str]) -> None:
        super().__init__("\n  ".join([what, *faults]))
        self.faults = tuple(faults)


@dataclass(slots=True)
class Faults:
    """Faults while they are collected."""

    found: list[str] = field(default_factory=list)

    @property
    def is_full(self) -> bool:
        """Whether looking further would say nothing new."""
        return len(self.found) >= FAULTS_MAX

    def add(self, sentence: str) -> None:
        """Note one."""
        if not self.is_full:
            self.found.append(sentence)

    def refuse_if_any(self, what: str) -> None:
        """Raise ReplayRefused with what was found."""
        if self.found:
            more = [f"(looked no further after {FAULTS_MAX} faults)"] if self.is_full else []
            raise ReplayRefused(what, [*self.found, *more])
