"""What forecasts promise, in virtual time: on invented workloads nine in ten waits are inside, the middle is near."""

from __future__ import annotations

from functools import cache

import pytest

from scheduler.bench.traffic import WORKLOADS, walk
from scheduler.policy.calibration import report
from scheduler.policy.hindsight import Hindsight

SECONDS = 300.0
CASES = ("bursty", "failing", "limited")


@cache
def walked(name: str) -> Hindsight:
    return walk(WORKLOADS[name], seconds=SECONDS, seed=1, every_s=10.0)


@pytest.mark.parametrize("name", CASES)
def test_nine_in_ten_waits_are_inside_the_band_and_the_middle_is_near(name: str) -> None:
    found = report(walked(name).outcomes)
    assert found.n_telling > 100, "a workload that never waits shows nothing"
    assert found.inside_p90 is not None
    assert 0.85 <= found.inside_p90 <= 0.97
    assert found.median_error is not None
    assert found.median_error <= 0.30
    assert len(walked(name).run.ended) == len(walked(name).run.started)
