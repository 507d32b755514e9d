"""The page of a shared limit: what it says, and every way to change it with its refusals and its undo."""

from __future__ import annotations

import re
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from scheduler.models import AuditEvent, Pool, Resource, Snapshot
from scheduler.policy.types import PoolId
from scheduler.store import resources as store
from tests.conftest import LiveDatabase
from tests.support.work import HandWorker, make_bucket, make_semaphore, make_tenant, submit_tasks
from tests.web.conftest import WithPermissions

PAGE = "/ops/resources/openai/"
FORM = {"rate": "50", "burst": "100", "margin": "0", "lasts": "", "reason": ""}


@pytest.fixture
def editor(with_permissions: WithPermissions, snapshot: Snapshot) -> Client:
    make_bucket("openai", rate=50.0, burst=100.0)
    return with_permissions({"scheduler.view_console", "scheduler.edit_resource_limit"})


def text(client: Client, path: str = PAGE) -> str:
    return client.get(path).content.decode()


def version() -> int:
    return Resource.objects.get(name="openai").version


def save(client: Client, **changes: Any) -> Any:
    return client.post(f"{PAGE}save/", {**FORM, "version": version(), **changes})


def undo(client: Client) -> Any:
    """Press Undo on the page that the last action led to."""
    html = text(client)
    toast = html[html.index('id="toast"') :].split("</form>")[0]
    values = dict(re.findall(r'<input type="hidden" name="(\w+)" value="([^"]*)"', toast))
    action = re.search(r'action="([^"]+)"', toast)
    assert action
    return client.post(action[1], values)


def declared() -> tuple[float, float]:
    row = Resource.objects.get(name="openai")
    return row.rate, row.burst


def test_the_page_says_how_it_stands_who_waits_and_who_holds(
    with_permissions: WithPermissions, snapshot: Snapshot, llm: Pool
) -> None:
    make_semaphore("gpu-local", 1)
    tasks = submit_tasks(make_tenant(), 3, pool="llm", resources={"gpu-local": 1.0})
    HandWorker({PoolId(llm.pk): 5}).start()
    html = text(with_permissions({"scheduler.view_console"}), "/ops/resources/gpu-local/")
    assert "5 permits are free; 0 tasks wait." in html  # as the newest snapshot has it
    assert "1 of 1 held, the longest for" in html
    assert f'href="/ops/tasks/{tasks[0]}/"' in html
    waits = html[html.index("Who waits for it") : html.index("Who holds it")]
    assert ">2<" in waits
    assert "scheduler.edit_resource_limit" in html
    assert "<form" not in html[html.index('class="panel act"') : html.index('class="stack"')]


def test_a_page_asks_the_database_the_same_number_of_questions_however_many_wait(editor: Client, llm: Pool) -> None:
    def questions() -> int:
        with CaptureQueriesContext(connection) as captured:
            text(editor)
        return len(captured)

    text(editor)
    before = questions()
    tenant = make_tenant()
    submit_tasks(tenant, 20, pool="llm", resources={"openai": 1.0})
    HandWorker({PoolId(llm.pk): 10}).start()
    assert questions() == before <= 12


def test_an_edit_is_saved_audited_and_taken_back(editor: Client) -> None:
    response = save(editor, rate="60", low="20")
    assert (response.status_code, response["Location"]) == (303, PAGE)
    assert declared() == (60.0, 100.0)
    assert Resource.objects.get(name="openai").ceilings == {"low": 0.2}
    event = AuditEvent.objects.get(action="resource.edit")
    assert (event.actor, event.source) == ("somebody", "ui")
    assert undo(editor).status_code == 303
    assert declared() == (50.0, 100.0)
    assert Resource.objects.get(name="openai").ceilings is None


def test_an_undo_after_another_change_is_refused(editor: Client) -> None:
    save(editor, rate="60")
    page = text(editor)
    save(editor, burst="120", rate="60")
    toast = page[page.index('id="toast"') :].split("</form>")[0]
    values = dict(re.findall(r'<input type="hidden" name="(\w+)" value="([^"]*)"', toast))
    assert editor.post(f"{PAGE}save/", values).status_code == 409
    assert declared() == (60.0, 120.0)


def test_a_conflict_shows_both_and_keeps_the_input(editor: Client) -> None:
    seen = version()
    save(editor, rate="60", reason="more quota")
    response = save(editor, rate="55", version=seen)
    html = response.content.decode()
    assert response.status_code == 409
    assert "somebody changed openai at" in html
    assert "“more quota”" in html
    assert re.search(r'data-label="Now" class="num">60</td><td[^>]*><b>55</b>', html)
    assert 'value="55"' in html
    assert f'name="version" value="{seen + 1}"' in html
    assert declared() == (60.0, 100.0)


@pytest.mark.parametrize(
    ("changes", "field", "says"),
    [
        ({"rate": "fast"}, "rate", "Write a number"),
        ({"rate": "-1"}, "rate", "rate must be from 0"),
        ({"rate": "nan"}, "rate", "Write a number"),
        ({"margin": "100"}, "margin", "A margin is a fraction"),
        ({"rate": "0"}, "reason", "stops all that needs it"),
        ({"rate": "76"}, "reason", "more than half"),
        ({"lasts": "3600"}, "rate", "This is what is declared"),
        ({"lasts": "until", "rate": "40", "until": "soon"}, "until", "Write a day and a time"),
        ({"lasts": "until", "rate": "40", "until": "2001-01-01T00:00"}, "until", "within a year from now"),
        ({"lasts": "3600", "margin": "5", "rate": "40"}, "margin", "cannot be changed for a while"),
        ({"low": "x"}, "low", "Write a number"),
    ],
)
def test_what_cannot_be_is_refused_beside_its_field(
    editor: Client, changes: dict[str, str], field: str, says: str
) -> None:
    response = save(editor, **changes)
    html = response.content.decode()
    assert response.status_code == 422
    fault = re.search(rf'id="{field}-fault">([^<]*)<', html)
    assert fault
    assert says in fault[1]
    assert declared() == (50.0, 100.0)
    assert not AuditEvent.objects.exists()


def test_for_a_while_other_figures_go_first_and_can_be_lifted(editor: Client) -> None:
    assert save(editor, rate="40", lasts="3600").status_code == 303
    (row,) = store.load(["openai"])
    assert (row.view.rate, row.declared.rate) == (40.0, 50.0)
    assert row.override is not None
    assert "Other figures go first until" in text(editor)
    save(editor, rate="45", lasts="lifted")
    undo(editor)
    (row,) = store.load(["openai"])
    assert row.override is not None
    assert row.override.rate == 40.0
    assert row.override.until is not None
    editor.post(f"{PAGE}lift/", {"version": version()})
    assert store.load(["openai"])[0].override is None
    undo(editor)
    assert store.load(["openai"])[0].view.rate == 40.0


def test_lifting_what_somebody_changed_is_refused(editor: Client) -> None:
    save(editor, rate="40", lasts="3600")
    seen = version()
    save(editor, rate="45", lasts="3600")
    assert editor.post(f"{PAGE}lift/", {"version": seen}).status_code == 409
    assert store.load(["openai"])[0].view.rate == 45.0


def test_pause_needs_a_reason_and_is_taken_back(editor: Client) -> None:
    assert editor.post(f"{PAGE}pause/", {"reason": " "}).status_code == 422
    editor.post(f"{PAGE}pause/", {"reason": "no credit"})
    assert store.load(["openai"])[0].pause is not None
    undo(editor)
    assert store.load(["openai"])[0].pause is None
    undo(editor)
    assert editor.post(f"{PAGE}pause/", {"reason": "again"}).status_code == 409
    pause = store.load(["openai"])[0].pause
    assert pause is not None
    assert pause.reason == "no credit"


@pytest.mark.parametrize("action", ["edit/", "save/", "preview/", "lift/", "pause/", "resume/", "breaker/", "pace/"])
def test_an_unknown_limit_is_not_found(editor: Client, action: str) -> None:
    url = f"/ops/resources/opena/{action}"
    response = editor.get(url) if action == "edit/" else editor.post(url, {"reason": "x"})
    assert response.status_code == 404
    assert "There is no resource named “opena”." in response.content.decode()


def test_a_preview_says_what_would_change_and_changes_nothing(
    live_database: LiveDatabase, request: pytest.FixtureRequest
) -> None:
    client: Client = request.getfixturevalue("editor")  # its rows are committed, as the preview needs them
    response = client.post(f"{PAGE}preview/", {**FORM, "version": version(), "rate": "10"})
    html = response.content.decode()
    assert response.status_code == 200
    assert "What it would do" in html
    assert 'value="10"' in html
    assert declared() == (50.0, 100.0)
    assert client.post(f"{PAGE}preview/", {**FORM, "rate": "-3"}).status_code == 422
