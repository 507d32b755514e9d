"""Importing the SDK brings in nothing of the product, and touches nothing."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from scheduler import sdk
from tests.support.processes import ROOT, environment

LOOK = "import json, sys; from scheduler import sdk; sdk.Scheduler([]); print(json.dumps(sorted(sys.modules)))"


def test_importing_the_sdk_needs_no_django_and_leaves_no_files(tmp_path: Path) -> None:
    looked = subprocess.run(
        [sys.executable, "-c", LOOK],
        cwd=tmp_path,
        env=environment(PYTHONPATH=str(ROOT)),
        check=True,
        capture_output=True,
        text=True,
    )
    names = set(json.loads(looked.stdout))
    ours = {name for name in names if name.startswith("scheduler")}
    assert {name for name in ours if name != "scheduler" and not name.startswith("scheduler.sdk")} == set()
    assert "scheduler.sdk.embedded" not in ours
    assert not names & {"django", "psycopg", "channels", "ninja", "cronoq_app", "httpx2", "websockets"}
    assert list(tmp_path.iterdir()) == []


def test_workers_and_clients_are_there_on_first_use_and_other_names_are_not() -> None:
    assert sdk.Worker.__module__ == "scheduler.sdk.worker"
    assert sdk.Client.__module__ == "scheduler.sdk.remote.client"
    assert {name for name in sdk.__all__ if not hasattr(sdk, name)} == set()
    assert not hasattr(sdk, "Wroker")
