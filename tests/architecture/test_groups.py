"""What is marked to share a test process does: each group of tests starts what it needs once."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.support.processes import ROOT, environment

MARKED = """
import os
import pathlib
import pytest

@pytest.mark.parametrize("n", range(12))
@pytest.mark.parametrize("group", [pytest.param(g, marks=pytest.mark.xdist_group(g)) for g in ("one", "two")])
def test_it(group, n):
    with open(pathlib.Path(__file__).with_name(group), "a") as ran:
        ran.write(f"{os.environ['PYTEST_XDIST_WORKER']}\\n")
"""


def test_the_tests_of_a_group_run_in_one_process_and_keep_their_names(tmp_path: Path) -> None:
    (tmp_path / "test_marked.py").write_text(MARKED, encoding="utf-8")
    plugins = ["-p", "no:django", "-p", "no:randomly", "-p", "tests.support.groups"]
    command = [sys.executable, "-m", "pytest", "-c", "/dev/null", "--rootdir", str(tmp_path), *plugins]
    run = subprocess.run(
        [*command, "-n", "2", "--dist", "loadgroup", "-v", str(tmp_path)],
        cwd=ROOT,
        env=environment(PYTHONPATH=str(ROOT)),
        check=False,
        capture_output=True,
        text=True,
    )
    assert run.returncode == 0, run.stdout + run.stderr
    ran = [(tmp_path / group).read_text(encoding="utf-8").split() for group in ("one", "two")]
    assert [(len(workers), len(set(workers))) for workers in ran] == [(12, 1), (12, 1)]
    assert "test_marked.py::test_it[one-0]" in run.stdout
    assert "@one" not in run.stdout
