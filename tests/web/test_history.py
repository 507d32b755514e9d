"""The last hour of a pool and of a limit: sampled from pictures by a leading engine, drawn with a table beside it."""

from __future__ import annotations

import re
from datetime import timedelta

import pytest
from django.utils import timezone

from scheduler.models import HistorySample, Pool, Snapshot
from scheduler.reads.history import LastHour, Sample
from scheduler.services.history import KEEP_S, sample_history
from scheduler.web.history_chart import OLDEST, USED, WAITING, hour_charts, hour_table
from tests.support.work import make_bucket
from tests.web.conftest import SignIn
from tests.web.runs_cast import at_most


def hour_of(*samples: Sample) -> LastHour:
    return LastHour(7_200.0, samples)


def test_a_picture_is_sampled_once_and_forgotten_after_an_hour(snapshot: Snapshot) -> None:
    old = timezone.now() - timedelta(seconds=KEEP_S + 5)
    HistorySample.objects.create(kind="pool", name="gone", at=old, waiting=1, used=0.5)
    assert sample_history() == len(snapshot.body["pools"]) + len(snapshot.body["resources"])
    assert sample_history() == 0
    assert not HistorySample.objects.filter(name="gone").exists()
    llm = HistorySample.objects.get(kind="pool", name="llm")
    told = next(pool for pool in snapshot.body["pools"] if pool["name"] == "llm")
    assert llm.waiting == sum(told["waiting"].values())
    assert llm.used == pytest.approx(told["running"] / told["slots"])
    assert llm.oldest_s == told["oldest_waiting_s"]
    limit = HistorySample.objects.get(kind="limit", name="openai")
    assert (limit.waiting, limit.used, limit.oldest_s) == (1002, 0.972, None)


@pytest.mark.django_db
def test_without_a_picture_nothing_is_sampled() -> None:
    assert sample_history() == 0


def test_a_pool_and_a_limit_show_their_hour(signed_in: SignIn, llm: Pool, snapshot: Snapshot) -> None:
    make_bucket("openai", rate=50.0, burst=100.0)
    client = signed_in("viewer")
    assert "No history yet" in client.get("/ops/pools/llm/").content.decode()
    now = timezone.now()
    for ago in range(0, 3_600, 300):
        at = now - timedelta(seconds=ago)
        HistorySample.objects.create(kind="pool", name="llm", at=at, waiting=ago, used=0.5, oldest_s=ago / 60)
        HistorySample.objects.create(kind="limit", name="openai", at=at, waiting=3, used=0.25)
    with at_most(12):
        html = client.get("/ops/pools/llm/").content.decode()
    assert "Waiting over the last hour: highest 3,300, now 0" in html
    assert "Oldest waiting over the last hour: highest 55 s, now 0.0 s" in html
    limit = client.get("/ops/resources/openai/").content.decode()
    assert "In use over the last hour: highest 25 %, now 25 %" in limit
    assert len(re.findall(r"<td class=\"num\">25 %</td>", limit)) >= 12


def test_a_line_is_broken_where_nobody_looked_and_ends_now() -> None:
    hour = hour_of(*(Sample(at, 10, 0.5, None) for at in (3_600.0, 3_615.0, 7_185.0, 7_200.0)))
    (chart,) = hour_charts(hour, [WAITING])
    assert chart.lines == ["0,1 2,1", "598,1 600,1"]
    assert (chart.top, chart.half) == ("10", "5")


def test_the_table_has_the_highest_of_each_five_minutes_newest_first() -> None:
    hour = hour_of(Sample(6_600.0, 1, 0.1, 2.0), Sample(6_615.0, 9, 0.9, None), Sample(6_900.0, 4, 1.0, 5.0))
    table = hour_table(hour, [WAITING, OLDEST, USED])
    assert table.titles == ["Waiting", "Oldest waiting", "In use"]
    assert table.rows == [("01:55:00 UTC", ["4", "5.0 s", "100 %"]), ("01:50:00 UTC", ["9", "2.0 s", "90 %"])]


def test_too_few_samples_make_no_line() -> None:
    assert hour_charts(hour_of(Sample(1.0, 1, 1.0, None)), [WAITING]) == []
