"""The pages: what they show, what they cost, and what they say when there is nothing to show."""

from __future__ import annotations

import psycopg
import pytest
from django.db import DataError, InterfaceError, OperationalError
from django.test import Client
from django.urls import reverse
from pytest_django import DjangoAssertNumQueries

from scheduler.live.newest import newest
from scheduler.models import Pool, Snapshot
from scheduler.policy.types import TaskId
from scheduler.web.broken import is_away
from tests.live import sample
from tests.web.conftest import SignIn


def coming_from(cause: psycopg.Error) -> OperationalError:
    """As Django raises what the driver raised."""
    error = OperationalError()
    error.__cause__ = cause
    return error


PAGES = ["/ops/", "/ops/pools/", "/ops/pools/llm/", "/ops/resources/"]


@pytest.mark.parametrize("path", PAGES)
def test_a_page_is_whole_without_scripts(path: str, signed_in: SignIn, llm: Pool, snapshot: Snapshot) -> None:
    response = signed_in("viewer").get(path)
    html = response.content.decode()
    assert response.status_code == 200
    assert "1,0" in html or "openai" in html
    assert "Live updates need JavaScript" in html
    assert 'style="' not in html
    assert "no-store" in response["Cache-Control"]


@pytest.mark.parametrize("path", PAGES)
def test_a_page_costs_a_fixed_handful_of_queries(
    path: str, signed_in: SignIn, llm: Pool, django_assert_max_num_queries: DjangoAssertNumQueries
) -> None:
    client = signed_in("viewer")
    Snapshot.objects.create(body=sample.body(pools=[sample.pool(f"p{n}") for n in range(200)]))
    with django_assert_max_num_queries(12):
        client.get(path)


def test_the_first_paint_says_which_frame_it_is(signed_in: SignIn, snapshot: Snapshot) -> None:
    html = signed_in("viewer").get("/ops/").content.decode()
    assert f'data-seq="{snapshot.seq}"' in html
    assert 'ws-connect="/ws/ops/?page=overview&amp;scope="' in html


def test_no_snapshot_says_how_to_get_one(signed_in: SignIn) -> None:
    assert "none has run on this database" in signed_in("viewer").get("/ops/").content.decode()


def test_a_system_without_pools_says_that_and_not_that_it_is_broken(signed_in: SignIn, db: None) -> None:
    Snapshot.objects.create(body=sample.quiet_body())
    html = signed_in("viewer").get("/ops/").content.decode()
    assert "No pool exists yet" in html
    assert "No attempt has failed recently" in html


def test_old_numbers_are_labelled(signed_in: SignIn, snapshot: Snapshot) -> None:
    newest.look()
    Snapshot.objects.update(as_of="2026-01-01T00:00:00Z")
    newest.forget()
    html = signed_in("viewer").get("/ops/").content.decode()
    assert "These numbers are old" in html
    assert "2026-01-01 00:00:00 UTC" in html


def test_an_unknown_pool_offers_near_names(signed_in: SignIn, snapshot: Snapshot) -> None:
    response = signed_in("viewer").get("/ops/pools/embedings/")
    assert response.status_code == 404
    assert '<a href="/ops/pools/embeddings/">' in response.content.decode()


@pytest.mark.parametrize("name", ["\x00", "a" * 300, "日本", "..", "a%2Fb"])
def test_odd_pool_names_are_not_found(name: str, signed_in: SignIn, snapshot: Snapshot) -> None:
    assert signed_in("viewer").get(reverse("ops:pools") + name + "/").status_code in {404, 200}


def test_a_pool_that_the_snapshot_lacks_says_so(signed_in: SignIn, snapshot: Snapshot) -> None:
    Pool.objects.create(name="fresh", executor="python")
    html = signed_in("viewer").get("/ops/pools/fresh/").content.decode()
    assert "The newest snapshot does not have this pool" in html


def test_a_viewer_sees_no_form_but_learns_the_permission(signed_in: SignIn, llm: Pool, snapshot: Snapshot) -> None:
    html = signed_in("viewer").get("/ops/pools/llm/").content.decode()
    assert "pause-form" not in html
    assert "scheduler.operate_pool" in html


def test_a_pool_says_what_was_decided_about_its_slots(signed_in: SignIn, llm: Pool, snapshot: Snapshot) -> None:
    html = signed_in("viewer").get("/ops/pools/llm/").content.decode()
    assert "autoscaled · should have 240" in html
    assert "The limit openai supports only 222" in html


def test_a_pool_leads_to_the_tasks_that_wait_longest(signed_in: SignIn, task: TaskId, snapshot: Snapshot) -> None:
    html = signed_in("viewer").get("/ops/pools/llm/").content.decode()
    assert f'<a href="/ops/tasks/{task}/">task {task}</a>' in html


def test_an_unknown_address_is_a_sentence(db: None) -> None:
    response = Client().get("/nowhere/")
    assert response.status_code == 404
    assert "There is nothing at this address" in response.content.decode()


def test_a_broken_page_is_a_sentence(signed_in: SignIn, snapshot: Snapshot, monkeypatch: pytest.MonkeyPatch) -> None:
    client = signed_in("viewer")
    client.raise_request_exception = False
    monkeypatch.setattr(newest, "frame", lambda _key: 1 / 0)
    response = client.get("/ops/")
    assert response.status_code == 500
    assert "The scheduler itself runs on" in response.content.decode()


@pytest.mark.parametrize(
    ("error", "away"),
    [
        (OperationalError(), True),
        (InterfaceError(), True),
        (coming_from(psycopg.errors.AdminShutdown()), True),
        (coming_from(psycopg.errors.TooManyConnections()), True),
        (coming_from(psycopg.errors.QueryCanceled()), False),
        (coming_from(psycopg.errors.DeadlockDetected()), False),
        (DataError(), False),
    ],
)
def test_only_a_database_that_does_not_answer_is_called_away(error: Exception, away: bool) -> None:
    assert is_away(error) is away


def test_the_documents_stay_small(signed_in: SignIn, llm: Pool, snapshot: Snapshot) -> None:
    client = signed_in("viewer")
    assert all(len(client.get(path).content) < 40_000 for path in PAGES)
