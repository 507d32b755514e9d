"""States are closed, and so are the moves between them."""

from __future__ import annotations

import pytest

from scheduler.policy.states import MOVES, REPLAYABLE, TERMINAL, WAITING, TaskState, may_move

S = TaskState


def test_every_state_waits_runs_or_is_terminal() -> None:
    assert set(TaskState) == WAITING | {S.RUNNING} | TERMINAL
    assert not WAITING & TERMINAL
    assert set(MOVES) == set(TaskState)


def test_only_a_replay_leaves_a_terminal_state_and_only_to_ready() -> None:
    for state in TERMINAL:
        assert MOVES[state] == ({S.READY} if state in REPLAYABLE else set())


def test_every_state_that_is_not_terminal_can_reach_a_terminal_one() -> None:
    for state in WAITING | {S.RUNNING}:
        reached, frontier = {state}, [state]
        while frontier:
            nexts = MOVES[frontier.pop()] - reached
            reached |= nexts
            frontier += nexts
        assert reached & TERMINAL
        assert S.SUCCEEDED in reached


def test_only_ready_tasks_start_and_only_running_ones_succeed() -> None:
    assert [s for s in S if may_move(s, S.RUNNING)] == [S.READY]
    assert [s for s in S if may_move(s, S.SUCCEEDED)] == [S.RUNNING]


@pytest.mark.parametrize("state", sorted(WAITING))
def test_whatever_waits_can_be_cancelled_and_shed(state: TaskState) -> None:
    assert may_move(state, S.CANCELLED)
    assert may_move(state, S.SHED)
    assert not may_move(state, S.FAILED)
