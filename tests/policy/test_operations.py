"""What an operation may be asked to do, to which tasks, and how fast."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scheduler.policy.filters import Filter, Is, Key
from scheduler.policy.operations import (
    BATCH_MAX,
    CHANGES,
    ITEMS_MAX,
    SKIPS,
    TAKES,
    Asked,
    Change,
    Found,
    OperationKind,
    OperationState,
    Skip,
    allow,
    decide_item,
    faults_in_operation,
    may_change,
    narrow,
)
from scheduler.policy.states import TaskState

K, S = OperationKind, TaskState


@pytest.mark.parametrize(
    ("kind", "found", "skip"),
    [
        (K.REPLAY, Found(S.DEAD_LETTERED), None),
        (K.REPLAY, Found(S.SHED), None),
        (K.REPLAY, Found(S.FAILED, discarded=True), Skip.DISCARDED),
        (K.REPLAY, Found(S.RUNNING), Skip.ACTIVE),
        (K.REPLAY, Found(S.SUCCEEDED), Skip.NOT_DEAD),
        (K.REPLAY, None, Skip.GONE),
        (K.CANCEL, Found(S.RUNNING), None),
        (K.CANCEL, Found(S.BLOCKED), None),
        (K.CANCEL, Found(S.SUCCEEDED), Skip.ENDED),
        (K.DISCARD, Found(S.FAILED), None),
        (K.DISCARD, Found(S.FAILED, discarded=True), Skip.DISCARDED),
        (K.DISCARD, Found(S.MISSED), Skip.NOT_DEAD),
        (K.DISCARD, Found(S.READY), Skip.ACTIVE),
        (K.RESTORE, Found(S.FAILED, discarded=True), None),
        (K.RESTORE, Found(S.FAILED), Skip.KEPT),
    ],
)
def test_each_task_is_judged_when_its_turn_comes(kind: OperationKind, found: Found | None, skip: Skip | None) -> None:
    assert decide_item(kind, found) is skip


@pytest.mark.parametrize("kind", list(OperationKind))
@pytest.mark.parametrize("state", list(TaskState))
def test_a_state_that_a_kind_does_not_take_is_skipped(kind: OperationKind, state: TaskState) -> None:
    discarded = kind is OperationKind.RESTORE
    assert (decide_item(kind, Found(state, discarded)) is None) is (state in TAKES[kind])


def test_a_filter_without_states_is_narrowed_to_those_the_kind_is_for() -> None:
    bare = Filter((Is(Key.POOL, ("p",)), Is(Key.STATE, ("running",), negated=True)))
    assert narrow(K.REPLAY, bare).values_of(Key.STATE) == ("dead",)
    assert narrow(K.REPLAY, bare).terms[1:] == bare.terms
    said = Filter((Is(Key.STATE, ("shed",)),))
    assert narrow(K.REPLAY, said) == said


def test_every_skip_has_words() -> None:
    assert set(SKIPS) == set(Skip)


@given(st.floats(0.01, 5_000.0), st.lists(st.floats(0.0, 30.0), min_size=1, max_size=60), st.floats(0.0, 5_000.0))
def test_the_rate_is_kept_over_any_sequence_of_looks(rate: float, looks: list[float], credit: float) -> None:
    credit = min(credit, max(1.0, rate))
    began, done, passed_s = credit, 0, 0.0
    for since_s in looks:
        allowed = allow(rate=rate, credit=credit, since_s=since_s)
        assert 0 <= allowed.items <= BATCH_MAX
        done, credit, passed_s = done + allowed.items, allowed.credit, passed_s + since_s
        assert done <= began + rate * passed_s + 1e-6


def test_a_slow_rate_comes_to_its_turn_and_a_clock_that_went_back_gives_nothing() -> None:
    assert allow(rate=0.5, credit=0.0, since_s=1.9).items == 0
    assert allow(rate=0.5, credit=0.95, since_s=0.2).items == 1
    assert allow(rate=100.0, credit=0.0, since_s=-5.0) == (0, 0.0)


def test_changes_lead_where_they_say() -> None:
    assert may_change(Change.ABORT, OperationState.STARTING)
    assert may_change(Change.RESUME, OperationState.ABORTED)
    assert not any(may_change(change, OperationState.DONE) for change in CHANGES)
    assert not may_change(Change.PAUSE, OperationState.PAUSED)


GOOD = Asked(rate=10.0, reason="mended", shown=100, typed="")


def test_what_is_asked_for_clearly_is_taken() -> None:
    assert faults_in_operation(GOOD) == ()
    assert faults_in_operation(GOOD._replace(shown=12_431, typed=" 12,431 ")) == ()


@pytest.mark.parametrize(
    ("asked", "field", "says"),
    [
        (GOOD._replace(rate=0.0), "rate", "more than 0"),
        (GOOD._replace(rate=float("nan")), "rate", "more than 0"),
        (GOOD._replace(reason="  "), "reason", "Say why"),
        (GOOD._replace(reason="x" * 201), "reason", "at most 200 characters"),
        (GOOD._replace(reason="a\x00"), "reason", "This text"),
        (GOOD._replace(shown=0), "filter", "nothing to do"),
        (GOOD._replace(shown=ITEMS_MAX + 1, typed=str(ITEMS_MAX + 1)), "filter", "narrow the filter"),
        (GOOD._replace(shown=101), "typed", "Type 101"),
        (GOOD._replace(shown=101, typed="102"), "typed", "Type 101"),
        (GOOD._replace(shown=101, typed="9" * 30), "typed", "Type 101"),
    ],
)
def test_each_fault_is_said_beside_its_field(asked: Asked, field: str, says: str) -> None:
    (fault,) = faults_in_operation(asked)
    assert fault.loc == (field,)
    assert says in fault.msg
