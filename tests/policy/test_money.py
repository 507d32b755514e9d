"""Amounts, periods and alerts: nothing rounded, nothing lost between two months."""

from __future__ import annotations

from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scheduler.policy.alerts import Crossing, crossed, message_of, message_of_run
from scheduler.policy.money import NANO, USD_MAX, format_usd, parse_usd, per_mtok
from scheduler.policy.periods import SHORTEST_S, period_at
from scheduler.policy.runs import Cap, Near
from scheduler.policy.types import RunId

DAY_S = 86_400.0
ZONES = st.sampled_from(["Asia/Tokyo", "America/Los_Angeles", "UTC", "Australia/Lord_Howe", "America/Asuncion"])


@given(st.integers(0, USD_MAX * NANO))
def test_an_amount_survives_being_written(nano: int) -> None:
    assert parse_usd(format_usd(nano)) == nano


def test_amounts_are_written_with_cents_at_least() -> None:
    assert [format_usd(n) for n in (0, NANO, 12_500_000_000, 54_399_000, 1, -NANO // 2)] == [
        "0.00",
        "1.00",
        "12.50",
        "0.054399",
        "0.000000001",
        "-0.50",
    ]


@pytest.mark.parametrize("text", ["", "x", "NaN", "Infinity", "-1", "0.0000000001", "1000000001", "1" * 40, "1,5"])
def test_what_is_no_amount_is_refused_with_a_sentence(text: str) -> None:
    with pytest.raises(ValueError, match=r"(amount|Write)"):
        parse_usd(text)


def test_a_begun_nano_dollar_counts() -> None:
    assert [per_mtok(n) for n in (0, 1, 1_000_000, 1_000_001)] == [0, 1, 1, 2]


def when(zone: str, *moment: int) -> float:
    return datetime(*moment, tzinfo=ZoneInfo(zone)).timestamp()  # type: ignore[misc,arg-type]  # a date in parts


@pytest.mark.parametrize("zone", ["Asia/Tokyo", "America/Los_Angeles"])
def test_a_month_begins_and_ends_at_the_tenants_midnight(zone: str) -> None:
    end = when(zone, 2028, 3, 1)
    assert period_at(end - 1, zone) == (when(zone, 2028, 2, 1), end)
    assert period_at(end, zone) == (end, when(zone, 2028, 4, 1))
    # 29 February belongs to February.
    assert period_at(when(zone, 2028, 2, 29, 12), zone)[1] == end


def test_months_with_clock_changes_are_an_hour_longer_or_shorter() -> None:
    start, end = period_at(when("America/Los_Angeles", 2026, 3, 20), "America/Los_Angeles")
    assert end - start == 31 * DAY_S - 3_600
    start, end = period_at(when("America/Los_Angeles", 2026, 11, 20), "America/Los_Angeles")
    assert end - start == 30 * DAY_S + 3_600
    # Paraguay's clocks skipped midnight of this first of October: it began at 1:00, which is the same moment.
    start, _ = period_at(when("America/Asuncion", 2023, 10, 5), "America/Asuncion")
    assert datetime.fromtimestamp(start, UTC) == datetime(2023, 10, 1, 4, tzinfo=UTC)


def test_december_is_followed_by_january() -> None:
    assert period_at(when("UTC", 2026, 12, 31), "UTC") == (when("UTC", 2026, 12, 1), when("UTC", 2027, 1, 1))


def test_a_change_of_zone_leaves_no_gap_and_makes_no_short_month() -> None:
    # Tokyo's March ended 16 hours before that of Los Angeles: the rest joins April.
    ended = when("Asia/Tokyo", 2026, 4, 1)
    assert period_at(ended, "America/Los_Angeles", after=ended) == (ended, when("America/Los_Angeles", 2026, 5, 1))
    # The other way round April has begun already, and is a little shorter.
    ended = when("America/Los_Angeles", 2026, 4, 1)
    assert period_at(ended, "Asia/Tokyo", after=ended) == (ended, when("Asia/Tokyo", 2026, 5, 1))
    # A tenant that spent nothing for months begins where the calendar says.
    assert period_at(when("UTC", 2026, 9, 9), "UTC", after=ended) == (when("UTC", 2026, 9, 1), when("UTC", 2026, 10, 1))


@given(st.lists(st.tuples(ZONES, st.floats(0.0, 70 * DAY_S)), min_size=2, max_size=12))
def test_periods_follow_each_other_whatever_the_zones(steps: list[tuple[str, float]]) -> None:
    now, after = when("UTC", 2026, 1, 15), None
    for zone, pause_s in steps:
        start, end = period_at(now, zone, after=after)
        assert start <= now < end
        assert after is None or start >= after
        assert end - start >= SHORTEST_S - 3_600
        # The next one is begun when money is spent after this one's end.
        now, after = end + pause_s, end


def test_a_threshold_is_crossed_once() -> None:
    assert crossed(0, 79, 100, [0.8, 1.0]) == []
    assert crossed(79, 80, 100, [0.8, 1.0]) == [0.8]
    assert crossed(80, 100, 100, [1.0, 0.8]) == [1.0]
    assert crossed(0, 100, 100, [1.0, 0.8]) == [0.8, 1.0]
    assert crossed(0, 100, None, [0.8]) == []


@pytest.mark.parametrize("period", [(0.0, 86_400.0), (None, None)])
def test_an_alert_says_what_was_reached_of_what_and_when(period: tuple[float | None, float | None]) -> None:
    told = message_of(Crossing(7, "tenant", 3, 3, "acme", 0.8, 10 * NANO, 8 * NANO, 3_600.0, *period, "UTC"))
    assert (told["limit_usd"], told["spent_usd"], told["at"]) == ("10.00", "8.00", "1970-01-01T01:00:00Z")
    assert (told["period"] is None) == (period[0] is None)


def test_an_alert_of_a_run_s_cap_says_dollars_of_dollars_and_numbers_of_numbers() -> None:
    cost = message_of_run(RunId(5), Near(Cap.COST, 8.0 * NANO, 10.0 * NANO))
    assert cost == {"run": 5, "cap": "cost", "part": 0.8, "used_usd": "8.00", "most_usd": "10.00"}
    steps = message_of_run(RunId(5), Near(Cap.STEPS, 9.0, 10.0))
    assert steps == {"run": 5, "cap": "steps", "part": 0.9, "used": 9.0, "most": 10.0}
