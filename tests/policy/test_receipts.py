"""An effect is made once, however often its step is tried."""

from __future__ import annotations

import pytest

from scheduler.policy.receipts import Claim, ClaimAnswer, ClaimState, decide_claim, downstream_key
from scheduler.policy.types import LeaseId, RunId

ME, OTHER = LeaseId(2), LeaseId(1)


@pytest.mark.parametrize(
    ("known", "answer"),
    [
        (Claim(ClaimState.DONE, OTHER, holder_lives=False), ClaimAnswer.DONE),
        (Claim(ClaimState.DONE, ME, holder_lives=True), ClaimAnswer.DONE),
        (Claim(ClaimState.ABANDONED, OTHER, holder_lives=False), ClaimAnswer.NEW),
        (Claim(ClaimState.CLAIMED, ME, holder_lives=True), ClaimAnswer.NEW),
        (Claim(ClaimState.CLAIMED, ME, holder_lives=True, unsure=True), ClaimAnswer.UNKNOWN),
        (Claim(ClaimState.CLAIMED, OTHER, holder_lives=True), ClaimAnswer.IN_PROGRESS),
        (Claim(ClaimState.CLAIMED, OTHER, holder_lives=False), ClaimAnswer.UNKNOWN),
    ],
)
def test_a_claim_is_answered_by_what_became_of_the_last_one(known: Claim, answer: ClaimAnswer) -> None:
    assert decide_claim(known, ME) is answer


def test_the_downstream_key_is_the_same_for_every_try_and_another_for_every_step() -> None:
    assert downstream_key(RunId(1), "pay") == downstream_key(RunId(1), "pay")
    keys = {downstream_key(RunId(run), step) for run in (1, 2) for step in ("pay", "refund", "x" * 200)}
    assert len(keys) == 6
    assert all(len(key) <= 80 and key.isascii() for key in keys)
