"""The example programs do what they say, and the durable one survives being killed."""

from __future__ import annotations

import asyncio
import importlib
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import LiveDatabase
from tests.sdk.examples.durable import PIECES
from tests.support.processes import ROOT, environment, running
from tests.support.waiting import wait_until

OUTCOMES: dict[str, Any] = {
    "priorities": ["first", "critical", "high", "normal", "low"],
    "deadlines": ["first", "low, urgent", "high", "low"],
    "pipeline": {
        "fetch": "fetch",
        "parse": "failed",
        "publish": "skipped",
        "alert": "alert after {'parse': 'failed'}",
        "clean up": "clean up after {'parse': 'failed', 'fetch': 'succeeded'}",
        "calm": "skipped",
    },
    "recurring": {"distinct": True, "named": True, "removed": [True, False]},
    "retries": {
        "throttled": "attempt 3",
        "bad": "failed: no such model",
        "hopeless": "dead_lettered: ConnectionError: the line is down",
        "fragile": "dead_lettered: ConnectionError: the line is down",
    },
    "cancellation": {
        "noticed": True,
        "ends": ["cancelled", "cancelled"],
        "answers": [True, True, False],
        "status": "cancelled",
    },
    "events": {
        "moves": [("ready", 0), ("running", 1), ("retrying", 1), ("running", 2), ("succeeded", 2)],
        "lagged": 2,
        "rest": ["succeeded"],
    },
    "batch": {
        "refused": "unknown_pool",
        "squares": [0, 1, 4, 9, 16],
        "same": True,
        "duplicates": [True] * 5,
        "runs": [0, 1, 2, 3, 4],
    },
    "capacity": [1, 3, 4],
}


@pytest.mark.parametrize("name", list(OUTCOMES))
def test_an_example_does_what_it_says(name: str, live_database: LiveDatabase) -> None:
    example = importlib.import_module(f"tests.sdk.examples.{name}")
    assert asyncio.run(example.main()) == OUTCOMES[name]


def test_tenants_share_by_weight(live_database: LiveDatabase) -> None:
    example = importlib.import_module("tests.sdk.examples.tenants")
    order = asyncio.run(example.main())
    assert 8 <= order.count("gold") <= 10 - 1, order


@pytest.mark.acceptance
def test_a_program_that_is_killed_in_the_middle_loses_nothing(live_database: LiveDatabase, tmp_path: Path) -> None:
    journal, output = tmp_path / "journal", tmp_path / "output"
    command = [sys.executable, "-m", "tests.sdk.examples.durable", str(journal)]
    environ = environment(DATABASE_URL=live_database.url, PYTHONPATH=str(ROOT))

    def lines() -> list[str]:
        return journal.read_text().splitlines() if journal.exists() else []

    with running(command, output, environ=environ) as program:
        wait_until(lambda: lines().count("did 5") or len(lines()) > 12, what="some of the work")
        program.kill()
    done_before = {line for line in lines() if line.startswith("did")}
    assert 0 < len(done_before) < PIECES
    with running(command, output, environ=environ) as program:
        assert program.wait(60.0) == 0
    assert output.read_text().split()[-1] == str(PIECES)
    assert {line for line in lines() if line.startswith("did")} == {f"did {n}" for n in range(PIECES)}
    # Whatever had been reported is not done again: at most what ran at that moment, and reports that were under way.
    assert len(lines()) <= 2 * PIECES + 2 * 3 * 2
