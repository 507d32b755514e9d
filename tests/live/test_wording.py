"""How numbers, durations and times read."""

from __future__ import annotations

import pytest

from scheduler.live import wording


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "—"),
        (0, "0"),
        (1284, "1,284"),
        (999_999, "999,999"),
        (1_240_000, "1.24 M"),
        (10**12, "1,000.00 G"),
        (-3, "-3"),
    ],
)
def test_counts(value: float | None, text: str) -> None:
    assert wording.count(value) == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (None, "—"),
        (-4, "0.0 s"),
        (0.42, "0.4 s"),
        (42.4, "42 s"),
        (59.7, "1 min"),
        (252, "4 min 12 s"),
        (7500, "2 h 5 min"),
        (86_400 * 3 + 3600 * 4, "3 d 4 h"),
    ],
)
def test_durations_keep_the_two_units_that_matter(seconds: float | None, text: str) -> None:
    assert wording.duration(seconds) == text


@pytest.mark.parametrize(
    ("fraction", "text"), [(0, "0 %"), (0.001, "< 1 %"), (0.5, "50 %"), (0.999, "99 %"), (1, "100 %")]
)
def test_percent_never_rounds_to_nothing_or_to_all(fraction: float, text: str) -> None:
    assert wording.percent(fraction) == text


def test_rates_keep_their_decimal_so_that_the_width_is_steady() -> None:
    assert [wording.rate(value) for value in (0, 48.62, 100, 1234.5)] == ["0.0", "48.6", "100", "1,234"]


def test_amounts_drop_a_decimal_that_says_nothing() -> None:
    assert [wording.amount(value) for value in (None, 20.0, 0.4, -0.01, 250.4)] == ["—", "20", "0.4", "0", "250"]


def test_times_are_utc_and_say_so() -> None:
    assert wording.clock(1_795_000_000) == "11:06:40"
    assert wording.clock_utc(None) == "—"
    assert wording.day_and_clock(1_795_000_000) == "2026-11-18 11:06:40 UTC"
    assert wording.machine(1_795_000_000.9) == "2026-11-18T11:06:40Z"
    assert wording.machine(None) == ""


def test_long_lists_of_names_are_cut() -> None:
    assert wording.name_list(["a", "b"]) == "a, b"
    assert wording.name_list(["a", "b", "c", "d", "e"]) == "a, b, c and 2 more"


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(None, wording.NONE), (0.44, "0.4 s"), (42.2, "42 s"), (1290.0, "21 min"), (7500.0, "2 h"), (270_000.0, "3 d")],
)
def test_a_glance_keeps_one_unit(seconds: float | None, text: str) -> None:
    assert wording.glance(seconds) == text
