"""Rehearsals on a small scale: the whole story with real processes, its engines killed on the way."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import LiveDatabase
from tests.support.processes import ROOT, environment


@pytest.mark.acceptance
@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize(("name", "scale"), [("campaign", "0.02"), ("tickets", "0.024")])
def test_a_rehearsal_keeps_its_promises(name: str, scale: str, live_database: LiveDatabase, tmp_path: Path) -> None:
    command = [sys.executable, "manage.py", "rehearse", name, "--scale", scale, "--json", "--keep-logs", str(tmp_path)]
    environ = environment(DATABASE_URL=live_database.url, CRONOQ_DATA_DIR=str(tmp_path / "data"))
    environ |= {
        "CRONOQ_SECRET_KEY": "a secret key for a rehearsal, long enough to be accepted by the checks",
        "CRONOQ_ALLOWED_HOSTS": "127.0.0.1",
        "CRONOQ_ORIGINS": "http://127.0.0.1",
    }
    done = subprocess.run(command, cwd=ROOT, env=environ, capture_output=True, text=True, timeout=580, check=False)
    assert done.stdout, done.stderr
    verdict = json.loads(done.stdout)
    broken = [promise for promise in verdict["promises"] if not promise["kept"]]
    assert (done.returncode, broken) == (0, []), done.stderr
    assert verdict["kept"]
