"""Decides what a claim for an effect is answered, so that an effect is made once however often its step is tried.

An effect is claimed before it is made and committed after. What nobody can know from here is whether a claimer that
died in between has made it: then the answer is `unknown`, and the same downstream key lets the receiver tell.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from enum import StrEnum

from scheduler.policy.types import LeaseId, RunId


class ClaimState(StrEnum):
    """Where an effect stands."""

    CLAIMED = "claimed"
    DONE = "done"
    ABANDONED = "abandoned"


class ClaimAnswer(StrEnum):
    """What a claimer is told: make the effect; it is made already; another is at it; another died over it."""

    NEW = "new"
    DONE = "done"
    IN_PROGRESS = "in_progress"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Claim:
    """An effect as it is on record. `holder_lives`: the attempt that claimed it still runs."""

    state: ClaimState
    lease: LeaseId
    holder_lives: bool
    unsure: bool = False


def decide_claim(known: Claim, lease: LeaseId) -> ClaimAnswer:
    """The answer to a claim by an attempt that runs now, for an effect that is on record.

    A claimer that asks again (its first answer may have been lost) is answered the same again.
    """
    if known.state is ClaimState.DONE:
        return ClaimAnswer.DONE
    if known.state is ClaimState.ABANDONED:
        return ClaimAnswer.NEW
    if known.lease == lease:
        return ClaimAnswer.UNKNOWN if known.unsure else ClaimAnswer.NEW
    return ClaimAnswer.IN_PROGRESS if known.holder_lives else ClaimAnswer.UNKNOWN


def downstream_key(run: RunId, step: str) -> str:
    """The key to hand to whoever makes the effect: the same for a step of a run, whoever asks and however often."""
    return f"cq-{run}-{hashlib.sha256(step.encode()).hexdigest()[:32]}"
