"""When cron expressions run: corners of the calendar, and clocks that change, in both directions."""

from __future__ import annotations

from datetime import datetime
from itertools import islice, pairwise
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scheduler.policy.cron import Cron, newest_runs, next_run, parse, runs, utc_offset_s

ZONES = ["UTC", "America/New_York", "Europe/Berlin", "Australia/Lord_Howe", "Asia/Kathmandu", "America/Santiago"]


def cron(text: str) -> Cron:
    found = parse(text)
    assert isinstance(found, Cron), found
    return found


def moment(zone: str, text: str) -> float:
    return datetime.fromisoformat(text).replace(tzinfo=ZoneInfo(zone)).timestamp()


def shown(text: str, zone: str, after: str, count: int) -> list[str]:
    """The next runs as the clocks of the zone show them, with their offset."""
    tz = ZoneInfo(zone)
    ahead = islice(runs(cron(text), tz, after=moment(zone, after)), count)
    return [datetime.fromtimestamp(at, tz).isoformat(timespec="minutes") for at in ahead]


@pytest.mark.parametrize(
    ("zone", "text", "after", "expected"),
    [
        # Clocks go forward: a time that is jumped over runs at the jump, an interval leaves it out.
        ("America/New_York", "30 2 * * *", "2026-03-07T03:00", ["2026-03-08T03:00-04:00", "2026-03-09T02:30-04:00"]),
        ("America/New_York", "0,30 2 * * *", "2026-03-07T03:00", ["2026-03-08T03:00-04:00", "2026-03-09T02:00-04:00"]),
        ("Europe/Berlin", "15 2 * * *", "2026-03-28T03:00", ["2026-03-29T03:00+02:00", "2026-03-30T02:15+02:00"]),
        ("Europe/Berlin", "0 * * * *", "2026-03-29T00:30", ["2026-03-29T01:00+01:00", "2026-03-29T03:00+02:00"]),
        ("Australia/Lord_Howe", "15 2 * * *", "2026-10-03T03:00", ["2026-10-04T02:30+11:00", "2026-10-05T02:15+11:00"]),
        ("Australia/Lord_Howe", "*/15 * * * *", "2026-10-04T01:31",
         ["2026-10-04T01:45+10:30", "2026-10-04T02:30+11:00"]),
        ("Australia/Lord_Howe", "*/20 5 * * *", "2026-10-03T12:00",
         ["2026-10-04T05:00+11:00", "2026-10-04T05:20+11:00"]),
        # Clocks go back: a time that comes twice runs the first time, an interval both times.
        ("America/New_York", "30 1 * * *", "2026-10-31T02:00", ["2026-11-01T01:30-04:00", "2026-11-02T01:30-05:00"]),
        ("America/New_York", "0 * * * *", "2026-11-01T00:30", ["2026-11-01T01:00-04:00", "2026-11-01T01:00-05:00"]),
        ("Europe/Berlin", "30 2 * * *", "2026-10-24T03:00", ["2026-10-25T02:30+02:00", "2026-10-26T02:30+01:00"]),
        ("Europe/Berlin", "30 * * * *", "2026-10-25T02:00", ["2026-10-25T02:30+02:00", "2026-10-25T02:30+01:00"]),
        ("Australia/Lord_Howe", "45 1 * * *", "2026-04-04T12:00", ["2026-04-05T01:45+11:00", "2026-04-06T01:45+10:30"]),
        ("Australia/Lord_Howe", "*/15 * * * *", "2026-04-05T01:31",
         ["2026-04-05T01:45+11:00", "2026-04-05T01:30+10:30"]),
        # The calendar.
        ("Europe/Berlin", "0 0 29 2 *", "2026-01-01T00:00", ["2028-02-29T00:00+01:00", "2032-02-29T00:00+01:00"]),
        ("America/New_York", "59 23 31 12 *", "2026-12-31T23:59", ["2027-12-31T23:59-05:00", "2028-12-31T23:59-05:00"]),
        ("UTC", "*/30 * * * * *", "2026-12-31T23:59:10", ["2026-12-31T23:59+00:00", "2027-01-01T00:00+00:00"]),
    ],
)  # fmt: skip
def test_runs(zone: str, text: str, after: str, expected: list[str]) -> None:
    assert shown(text, zone, after, len(expected)) == expected


@pytest.mark.parametrize(
    "text", ["", "* * * *", "61 * * * *", "0 0 30 2 *", "@daily", "* * * * * * *", "é * * * *", "1 " * 150]
)
def test_what_is_no_expression_is_said_in_words(text: str) -> None:
    assert isinstance(parse(text), str)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("61 * * * *", "'61' is no minute. Write 0 to 59,"),
        ("0 0 * * mon-xyz", "'mon-xyz' is no day-of-week. Write 0 to 7 (both are Sunday) or SUN to SAT,"),
        ("0 0 0 * *", "'0' is no day-of-month."),
        ("61 * * * * *", "'61' is no second."),
        ("0 0 31 2 *", "This expression never comes true."),
    ],
)
def test_a_fault_names_the_part_that_is_wrong_and_what_may_stand_there(text: str, said: str) -> None:
    assert str(parse(text)).startswith(said)


def test_an_expression_that_never_comes_true_is_none() -> None:
    never = "0 0 */29 2 MON#5"
    assert parse(never) == "This expression never comes true."
    for text in (never, "*/5 * */29 2 MON#5"):
        assert list(runs(Cron(text), ZoneInfo("Europe/Berlin"), after=0.0)) == []


@given(
    zone=st.sampled_from(ZONES),
    text=st.sampled_from(["*/7 * * * *", "0,30 1-3 * * *", "30 2 * * *", "0 */6 * * *", "15 0 2 * * *", "0 12 29 2 *"]),
    after=st.integers(0, 2_500_000_000),
)
def test_runs_ascend_and_do_not_depend_on_where_one_looks_from(zone: str, text: str, after: int) -> None:
    tz = ZoneInfo(zone)
    ahead = list(islice(runs(cron(text), tz, after=after), 6))
    assert ahead[0] > after
    assert all(one < other for one, other in pairwise(ahead))
    for one, other in pairwise(ahead):
        assert next_run(cron(text), tz, after=one) == other
        assert next_run(cron(text), tz, after=other - 0.25) == other


@given(zone=st.sampled_from(ZONES), after=st.integers(0, 2_500_000_000))
def test_a_daily_time_runs_once_on_every_date(zone: str, after: int) -> None:
    tz = ZoneInfo(zone)
    dates = [datetime.fromtimestamp(at, tz).date() for at in islice(runs(cron("30 1 * * *"), tz, after=after), 200)]
    assert all((other - one).days == 1 for one, other in pairwise(dates))


@given(
    zone=st.sampled_from(ZONES),
    text=st.sampled_from(["* * * * * *", "*/7 * * * *", "30 2 * * *", "0 0 1 * *"]),
    since=st.integers(1_700_000_000, 1_800_000_000),
    span=st.integers(0, 90_000),
    most=st.integers(1, 20),
)
def test_the_newest_runs_are_the_last_of_all(zone: str, text: str, since: int, span: int, most: int) -> None:
    tz, expression = ZoneInfo(zone), cron(text)
    until = since + min(span, 2_000 if text.startswith("* ") else span)
    every = [at for at in islice(runs(expression, tz, after=since - 1), 2_100) if at <= until]
    assert newest_runs(expression, tz, since=since, until=until, count_max=most) == (every[-most:], len(every) > most)


def test_offsets_change_with_the_season() -> None:
    berlin = ZoneInfo("Europe/Berlin")
    assert utc_offset_s(berlin, moment("Europe/Berlin", "2026-01-01T00:00")) == 3600.0
    assert utc_offset_s(berlin, moment("Europe/Berlin", "2026-07-01T00:00")) == 7200.0
