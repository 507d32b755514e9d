"""A provider's delay is read in every spelling in use, and nonsense is unknown, never zero."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scheduler.providers.delays import DELAY_MAX_S, parse_delay_s, retry_after_s, until_quota_day_ends_s

NOW = datetime(2026, 11, 30, 12, 0, 0, tzinfo=UTC).timestamp()
UNITS = {"h": 3600.0, "m": 60.0, "s": 1.0, "ms": 1e-3, "us": 1e-6, "µs": 1e-6, "μs": 1e-6, "ns": 1e-9}


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        ("59", 59.0),
        ("0", 0.0),
        ("1.5", 1.5),
        (".5", 0.5),
        ("2.", 2.0),
        (" 7 ", 7.0),
        ("1s", 1.0),
        ('"18s"', 18.0),
        ("6m0s", 360.0),
        ("2m59.56s", 179.56),
        ("7.66s", 7.66),
        ("12ms", 0.012),
        ("300µs", 0.0003),
        ("300μs", 0.0003),
        ("1h30m", 5400.0),
        ("24h", DELAY_MAX_S),
        ("2026-11-30T12:00:05Z", 5.0),
        ("2026-11-30T12:00:05.250Z", 5.25),
        ("2026-11-30t13:00:05+01:00", 5.0),
        ("Mon, 30 Nov 2026 12:01:00 GMT", 60.0),
        ("Monday, 30-Nov-26 12:01:00 GMT", 60.0),
        ("Mon Nov 30 12:01:00 2026", 60.0),
    ],
)
def test_every_spelling_is_read(value: str, seconds: float) -> None:
    assert parse_delay_s(value, now=NOW) == pytest.approx(seconds, abs=1e-6)


@pytest.mark.parametrize(
    "value",
    [
        None, "", "-1", "-0.5", "-5s", "nan", "NaN", "inf", "Infinity", "1e3", "1_000", "86401", "24h1s", "99999999999",
        "9" * 400, "soon", "5 s", "s", "1x", "٣", "2026-11-30T11:59:59Z", "2026-02-30T12:00:00Z", "2026-11-30T12:00:05",
        "Mon, 30 Nov 2026 11:00:00 GMT", "Mon, 99 Nov 2026 11:00:00 GMT",
        "Mon, 30 Nov 99999999999999999999 11:00:00 GMT",
        "Wed, 02 Dec 2026 12:00:00 GMT", "Mon, ",
    ],
)  # fmt: skip
def test_what_is_not_believable_is_unknown(value: str | None) -> None:
    assert parse_delay_s(value, now=NOW) is None


@given(st.text(max_size=80))
def test_no_text_raises_or_gives_an_unbelievable_delay(value: str) -> None:
    delay = parse_delay_s(value, now=NOW)
    assert delay is None or 0.0 <= delay <= DELAY_MAX_S


@given(st.lists(st.tuples(st.integers(0, 500), st.sampled_from(sorted(UNITS))), min_size=1, max_size=5))
def test_go_durations_add_up(parts: list[tuple[int, str]]) -> None:
    total = sum(number * UNITS[unit] for number, unit in parts)
    delay = parse_delay_s("".join(f"{number}{unit}" for number, unit in parts), now=NOW)
    assert delay == (pytest.approx(total) if total <= DELAY_MAX_S else None)


@given(st.integers(-300, 300), st.integers(0, 3600))
def test_a_skewed_clock_cancels_out(skew_s: int, delay_s: int) -> None:
    theirs = datetime.fromtimestamp(NOW + skew_s, UTC)
    until = datetime.fromtimestamp(NOW + skew_s + delay_s, UTC)
    headers = {"Date": f"{theirs:%a, %d %b %Y %H:%M:%S} GMT", "Retry-After": f"{until:%a, %d %b %Y %H:%M:%S} GMT"}
    assert retry_after_s(headers, None, now=NOW) == delay_s


def test_milliseconds_go_before_seconds() -> None:
    assert retry_after_s({"retry-after-ms": "1500", "retry-after": "2"}, None, now=NOW) == 1.5


@pytest.mark.parametrize("ms", ["-1", "nan", "", "99999999999", "1s"])
def test_unusable_milliseconds_leave_the_word_to_seconds(ms: str) -> None:
    assert retry_after_s({"retry-after-ms": ms, "retry-after": "2"}, None, now=NOW) == 2.0


def test_an_unusable_date_header_leaves_our_clock() -> None:
    for date in ("yesterday", "x" * 100):
        assert retry_after_s({"Date": date, "Retry-After": "2026-11-30T12:00:05Z"}, None, now=NOW) == 5.0


def test_gemini_tells_the_delay_in_the_body() -> None:
    details = [
        {"@type": "type.googleapis.com/google.rpc.QuotaFailure"},
        {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "18.460s"},
    ]
    error = {"error": {"code": 429, "status": "RESOURCE_EXHAUSTED", "details": details}}
    assert retry_after_s({}, error, now=NOW) == pytest.approx(18.46)
    assert retry_after_s({}, [error], now=NOW) == pytest.approx(18.46)
    assert retry_after_s({"retry-after": "3"}, error, now=NOW) == 3.0


@pytest.mark.parametrize("delay", ["", "-18s", "18", "x" * 100, None, 18, {"seconds": 18}])
def test_an_unusable_retry_info_is_unknown(delay: object) -> None:
    assert retry_after_s({}, {"error": {"details": [{"retryDelay": delay}, "x", None]}}, now=NOW) is None


@pytest.mark.parametrize(
    ("message", "seconds"),
    [
        ("Rate limit reached. Please try again in 20s. Visit our page.", 20.0),
        ("Please try again in 6m0s.", 360.0),
        ("Please try again in 6ms.", 0.006),
        ("Please retry in 18.46s.", 18.46),
        ("Please retry after 86400 seconds.", 86400.0),
        ("please RETRY AFTER 1 second", 1.0),
        ("Try again in 5 minutes", 300.0),
        ("Try again in 250 milliseconds", 0.25),
        ("Try again in 2 hours", 7200.0),
        ("Try again in 25 hours", None),
        ("Try again in a minute", None),
        ("Try again in 5", None),
        ("You have 5s left", None),
    ],
)
def test_a_sentence_is_the_last_resort(message: str, seconds: float | None) -> None:
    assert retry_after_s({}, {"error": {"message": message}}, now=NOW) == seconds
    assert retry_after_s({}, message, now=NOW) == seconds


@pytest.mark.parametrize(
    "body", [None, 5, [], {}, {"error": None}, {"error": "no"}, {"error": {"details": "no"}}, [[]]]
)
def test_a_body_of_any_shape_is_read(body: object) -> None:
    assert retry_after_s({}, body, now=NOW) is None


def test_the_reset_of_a_limit_is_no_delay() -> None:
    assert retry_after_s({"x-ratelimit-reset-requests": "6m0s"}, None, now=NOW) is None


@pytest.mark.parametrize(
    ("now", "hours"),
    [
        ("2026-07-01T07:00:00+00:00", 24.0),
        ("2026-07-01T06:30:00+00:00", 0.5),
        ("2026-01-15T07:30:00+00:00", 0.5),
        # The days on which clocks in that zone change have 23 and 25 hours.
        ("2026-03-08T08:00:00+00:00", 23.0),
        ("2026-11-01T07:00:00+00:00", 25.0),
    ],
)
def test_a_day_s_quota_is_whole_again_at_midnight_in_the_pacific_zone(now: str, hours: float) -> None:
    assert until_quota_day_ends_s(datetime.fromisoformat(now).timestamp()) == hours * 3600
