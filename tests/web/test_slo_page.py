"""The page of targets: what it says of waits that were seen and foretold, and what it answers to "what if"."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from uuid import UUID

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from scheduler.models import Attempt, ForecastLog, Pool, Snapshot
from tests.conftest import LiveDatabase
from tests.support.work import make_bucket, make_semaphore
from tests.web.conftest import SignIn

PAGE = "/ops/slo/"


@pytest.fixture
def viewer(signed_in: SignIn, snapshot: Snapshot, llm: Pool) -> Client:
    Pool.objects.filter(pk=llm.pk).update(slo={"normal": 3600.0}, slots=40, slots_max=40)
    return signed_in("viewer")


def seen(html: str) -> list[str]:
    """The cells of the waits that were seen."""
    part = html[html.index('id="seen-h"') : html.index('id="record-h"')]
    return [" ".join(re.sub(r"<[^>]+>", " ", cell).split()) for cell in re.findall(r"<td[^>]*>(.*?)</td>", part)]


def ended(llm: Pool, number: int, *, waited_s: float, ago_s: float = 60.0) -> None:
    """First attempts of class normal that ended so long ago and had waited so long."""
    now = datetime.now(UTC)
    start = now - timedelta(seconds=ago_s + 1)
    common = {"number": 1, "pool_id": llm.pk, "tenant_id": 1, "priority": 2, "worker_id": UUID(int=1)}
    Attempt.objects.bulk_create(
        Attempt(
            **common,
            task_id=n,
            lease_id=int(ago_s) * 1000 + n,
            ready_at=start - timedelta(seconds=waited_s),
            started_at=start,
            finished_at=now - timedelta(seconds=ago_s),
            outcome="succeeded",
        )
        for n in range(number)
    )


def test_without_enough_starts_it_gives_their_number_and_no_wait(viewer: Client, llm: Pool) -> None:
    ended(llm, 7, waited_s=2.0)
    few = "not enough data 7 starts"
    assert seen(viewer.get(PAGE).content.decode()) == ["normal", few, few, "—", "100 %"]


def test_with_enough_starts_it_gives_their_wait_and_how_many_kept_the_target(viewer: Client, llm: Pool) -> None:
    ended(llm, 20, waited_s=4.0)
    ended(llm, 5, waited_s=7200.0, ago_s=1830.0)
    ended(llm, 100, waited_s=9.0, ago_s=4000.0)  # too long ago to matter
    cells = seen(viewer.get(PAGE).content.decode())
    assert cells[1] == "4.0 s 20 starts"
    assert cells[2].endswith("25 starts")
    assert cells[3:] == ["improving", "80 %"]


def test_the_record_says_how_many_came_true_and_when_that_is_too_few(viewer: Client, llm: Pool) -> None:
    assert "Not enough data: 0 predictions" in viewer.get(PAGE).content.decode()
    said = {"pool_id": llm.pk, "priority": 2, "task_id": 1, "ready_at": 1.0, "raw_p50_s": 1, "raw_p90_s": 1}
    ForecastLog.objects.bulk_create(
        ForecastLog(
            **said, p50_s=0.5 if n < 20 else 30.0, p90_s=1.0 if n < 20 else 40.0, wait_s=0.9 if n < 20 else 60.0
        )
        for n in range(30)
    )
    html = viewer.get(PAGE).content.decode()
    assert "Of 30 predictions of the last hour, 67 % came true" in html
    assert "read the bands as too narrow" in html
    assert re.search(r"up to 1 s</th><td[^>]*>20</td><td[^>]*>100 %", html)
    assert re.search(r"up to 60 s</th><td[^>]*>10</td><td[^>]*>0 %</td><td[^>]*>0 %</td><td[^>]*>50 %", html)


@pytest.mark.parametrize(
    ("query", "field", "says"),
    [
        ("of=resource:openai&value=x", "value", "Write a number"),
        ("of=resource:openai&value=-1", "value", "rate must be from 0"),
        ("of=resource:gpu&value=1.5", "value", "Write a whole number."),
        ("of=resource:nope&value=1", "of", "Choose one of these."),
        ("of=tenant:x&value=1", "of", "Choose one of these."),
        ("of=pool:nope&value=1", "of", "Choose one of these."),
        ("of=pool:llm&value=99999999", "value", "slots must be from 0"),
    ],
)
def test_a_question_that_makes_no_sense_is_told_so_beside_the_field(
    live_database: LiveDatabase, request: pytest.FixtureRequest, query: str, field: str, says: str
) -> None:
    client: Client = request.getfixturevalue("viewer")
    make_bucket("openai", rate=1.0, burst=1.0)
    make_semaphore("gpu", 2)
    response = client.get(f"{PAGE}?{query}")
    html = response.content.decode()
    assert response.status_code == 422
    fault = re.search(rf'id="{field}-fault">([^<]*)<', html)
    assert fault
    assert says in fault[1]


@pytest.mark.parametrize("query", ["of=resource:openai&value=5", "of=resource:gpu&value=0", "of=pool:llm&value=3"])
def test_what_if_looks_ahead_and_keeps_the_question(
    live_database: LiveDatabase, request: pytest.FixtureRequest, query: str
) -> None:
    client: Client = request.getfixturevalue("viewer")
    make_bucket("openai", rate=1.0, burst=1.0)
    make_semaphore("gpu", 2)
    response = client.get(f"{PAGE}?{query}")
    html = response.content.decode()
    assert response.status_code == 200
    assert "What it would do" in html
    assert f'value="{query.split("=")[1].split("&", maxsplit=1)[0]}" selected' in html


def test_it_asks_the_same_number_of_questions_whatever_there_is(viewer: Client, llm: Pool) -> None:
    def questions() -> int:
        with CaptureQueriesContext(connection) as captured:
            viewer.get(PAGE)
        return len(captured)

    questions()
    before = questions()
    for n in range(5):
        make_bucket(f"limit-{n}", rate=1.0, burst=1.0)
        Pool.objects.create(name=f"pool-{n}", executor="python")
    ended(llm, 10, waited_s=1.0)
    assert questions() == before <= 12
