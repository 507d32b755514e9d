"""Times on people's clocks: three zones, the days on which clocks change, and when a month's money begins anew."""

from __future__ import annotations

from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest
from django.utils import timezone

from scheduler.live.tenant import ahead, in_zone
from scheduler.policy.periods import period_at
from scheduler.web import times


def at(text: str) -> float:
    return datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp()


@pytest.mark.parametrize(
    ("zone", "moment", "says"),
    [
        ("UTC", "2026-03-08T09:59:59", "2026-03-08 09:59:59 UTC"),
        ("Asia/Seoul", "2026-03-08T15:00:00", "2026-03-09 00:00:00 KST"),
        # Spring: two o'clock does not exist. Autumn: half past one comes twice.
        ("America/Los_Angeles", "2026-03-08T09:59:59", "2026-03-08 01:59:59 PST"),
        ("America/Los_Angeles", "2026-03-08T10:00:00", "2026-03-08 03:00:00 PDT"),
        ("America/Los_Angeles", "2026-11-01T08:30:00", "2026-11-01 01:30:00 PDT"),
        ("America/Los_Angeles", "2026-11-01T09:30:00", "2026-11-01 01:30:00 PST"),
        ("America/Sao_Paulo", "2026-11-01T09:30:00", "2026-11-01 06:30:00 UTC-03"),
    ],
)
def test_a_moment_is_told_on_the_clock_that_hangs_there_then(zone: str, moment: str, says: str) -> None:
    with timezone.override(ZoneInfo(zone)):
        assert times.day_and_clock(at(moment)) == says
        assert times.clock(at(moment)) == says.split(" ", 1)[1]


@pytest.mark.parametrize(
    ("zone", "moment", "says", "comes_in"),
    [
        ("UTC", "2026-11-30T23:59:00", "1 Dec 2026 00:00 UTC", "in 1 min"),
        ("Asia/Seoul", "2026-11-29T15:00:00", "1 Dec 2026 00:00 Asia/Seoul", "in 1 d"),
        # This month has an hour more than days: the label stays midnight, the wait is of real hours.
        ("America/Los_Angeles", "2026-10-31T08:00:00", "1 Nov 2026 00:00 America/Los_Angeles", "in 23 h"),
        ("America/Los_Angeles", "2026-11-01T07:00:00", "1 Dec 2026 00:00 America/Los_Angeles", "in 30 d 1 h"),
        # Its clocks skipped midnight of that first of October.
        ("America/Asuncion", "2023-10-01T03:30:00", "1 Oct 2023 01:00 America/Asuncion", "in 30 min"),
    ],
)
def test_the_label_of_a_budgets_reset_is_the_reset_that_happens(
    zone: str, moment: str, says: str, comes_in: str
) -> None:
    now = at(moment)
    _, end = period_at(now, zone)
    label = in_zone(end, zone)
    assert (label.text, ahead(end, now)) == (says, comes_in)
    told = datetime.strptime(label.text.rsplit(" ", 1)[0], "%d %b %Y %H:%M").replace(tzinfo=ZoneInfo(zone)).timestamp()
    assert told == datetime.fromisoformat(label.machine).timestamp()
    assert period_at(told - 1, zone) == period_at(now, zone), "the month goes on until then"
    assert period_at(told, zone)[0] == told, "and the next one begins"
