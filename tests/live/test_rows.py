"""How pools are put into sections, and what engines and workers are called."""

from __future__ import annotations

from typing import Any

from scheduler.live.board import Board, read_board
from scheduler.live.rows import pool_rows, pool_sections
from scheduler.live.workforce import worker_rows
from tests.live import sample


def board(**changes: Any) -> Board:
    return read_board(9, sample.AS_OF_S, sample.body(**changes))


def test_the_kind_with_the_most_trouble_comes_first_and_one_alone_has_no_heading() -> None:
    paused = {"state": "paused", "executor": "tools"}
    pools = pool_rows(board(pools=[sample.pool("a"), sample.pool("b"), sample.pool("z", **paused)]))
    said = [(kind, [row.pool.name for row in rows]) for kind, rows in pool_sections(pools)]
    assert said == [("tools", ["z"]), ("llm", ["a", "b"])]
    assert [kind for kind, _ in pool_sections(pool_rows(board(pools=[sample.pool("a")])))] == [""]


def test_a_worker_goes_by_its_name_and_says_how_it_stands() -> None:
    workers = [
        {**sample.worker("id-1", leader=True), "name": "vm:1"},
        {**sample.worker("id-2", draining=True), "name": "vm:0"},
        sample.worker("id-3"),
    ]
    said = [(row.worker.name, row.chip.word) for row in worker_rows(board(workers=workers).workers)]
    assert said == [("vm:1", "Leads"), ("id-3", "Ready"), ("vm:0", "Draining")]
