"""Replays work in virtual time, through the planner that production runs."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf
from random import Random
from typing import NamedTuple

from scheduler.policy.forward import Forward
from scheduler.replay.settings import Setup
from scheduler.replay.world import Work, set_stage


class Fate(NamedTuple):
    """What became of one request, in seconds of the trace. None: it did not start, or not end."""

    arrived_s: float
    started_s: float | None = None
    ended_s: float | None = None
    succeeded: bool = True
    attempts: int = 1

    @property
    def wait_s(self) -> float | None:
        """Seconds from arrival to first start."""
        return None if self.started_s is None else self.started_s - self.arrived_s


@dataclass(frozen=True, slots=True)
class Played:
    """A replay: the work, what became of each piece, and how it was found out."""

    setup: Setup
    works: tuple[Work, ...]
    fates: tuple[Fate, ...]
    how: str
    notes: tuple[str, ...] = ()


def play(works: tuple[Work, ...], setup: Setup) -> Played:
    """Let all work come and end."""
    stage = set_stage(works, setup)
    run = Forward(stage.scene, stage.arrivals, draw=Random(setup.seed).random)  # noqa: S311 - backoff, not secrets
    run.advance(inf)
    fates = [Fate(work.request.at_s) for work in works]
    for job in run.started:
        fates[job.label] = Fate(works[job.label].request.at_s, job.started_at, job.ended_at, attempts=job.attempts)
    return Played(setup, works, tuple(fates), "in virtual time")
