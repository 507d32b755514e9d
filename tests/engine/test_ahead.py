"""Looking ahead in a process of its own: the same answer, a fault that costs one forecast, an end with its engine."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from random import Random

import pytest

from scheduler.engine.ahead import ROOT, Ahead, LookedInVain
from scheduler.policy.forecast import foretell
from scheduler.policy.scene import Scene, Waiting
from tests.policy.test_forecast import RATED, lane, learned, scene
from tests.support.waiting import wait_until


@pytest.fixture
def ahead() -> Iterator[Ahead]:
    process = Ahead()
    yield process
    process.close()


def busy() -> Scene:
    """Something to foretell: tasks that wait behind a rate."""
    return replace(scene(), waiting={lane(demand=RATED): tuple(Waiting(0.0, (1.0,), 1.0) for _ in range(20))})


def pid_of(ahead: Ahead) -> int:
    process = ahead._process
    assert process is not None
    return process.pid


def test_it_foretells_what_would_be_foretold_here(ahead: Ahead) -> None:
    found, took_s = ahead.foretell(busy(), learned())
    here = foretell(busy(), learned(), draw=Random(1).random)
    assert took_s > 0.0
    assert found.as_of == here.as_of
    assert found.seats.keys() == here.seats.keys()
    assert found.seats


def test_one_that_is_killed_costs_a_forecast_and_is_started_again(ahead: Ahead) -> None:
    ahead.foretell(busy(), learned())
    before = pid_of(ahead)
    os.kill(before, signal.SIGKILL)
    with pytest.raises(LookedInVain, match="has ended"):
        ahead.foretell(busy(), learned())
    assert ahead.foretell(busy(), learned())[0].seats
    assert pid_of(ahead) != before


def test_a_look_that_takes_too_long_is_given_up() -> None:
    hasty = Ahead(processor_s_max=0.001)
    with pytest.raises(LookedInVain, match="has ended"):
        hasty.foretell(busy(), learned())
    hasty.close()


def test_a_closed_one_is_not_started_again(ahead: Ahead) -> None:
    ahead.foretell(busy(), learned())
    ahead.close()
    with pytest.raises(LookedInVain):
        ahead.foretell(busy(), learned())


def test_it_ends_when_whoever_started_it_is_gone() -> None:
    command = [sys.executable, "-m", "scheduler.engine.ahead", "60"]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, cwd=ROOT)
    assert process.stdin is not None
    process.stdin.close()
    wait_until(lambda: process.poll() is not None, what="the process to end")
    assert process.returncode == 0
