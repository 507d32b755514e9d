"""How likely a wait is to be within a target."""

from __future__ import annotations

from math import inf

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scheduler.policy.calibration import Band
from scheduler.policy.chance import chance_within

SECONDS = st.floats(0.0, 900.0)


@pytest.mark.parametrize(
    ("band", "target_s", "chance"),
    [
        (Band(2.0, 10.0), 2.0, 0.5),
        (Band(2.0, 10.0), 10.0, 0.9),
        (Band(0.0, 0.0), 1.0, 1.0),
        (Band(5.0, 5.0), 1.0, 0.0),
        (Band(inf, inf), 60.0, 0.0),
        (Band(5.0, inf), 60.0, 0.5),
        (Band(5.0, inf), 4.0, 0.0),
    ],
)
def test_quantiles_are_what_they_say(band: Band, target_s: float, chance: float) -> None:
    assert chance_within(band, target_s) == pytest.approx(chance, abs=1e-6)


@given(SECONDS, SECONDS, SECONDS, SECONDS)
def test_a_longer_target_is_never_less_likely(p50_s: float, more_s: float, target_s: float, later_s: float) -> None:
    band = Band(p50_s, p50_s + more_s)
    assert 0.0 <= chance_within(band, target_s) <= chance_within(band, target_s + later_s) <= 1.0
