"""Text stays text: whatever is stored, asked for or sent to be watched, no page lets it become markup."""

from __future__ import annotations

import pytest
from django.test import Client

from scheduler.live.pages import LIVE_PAGES, OF_A_TENANT, SCOPED
from scheduler.models import Snapshot
from scheduler.policy.types import TaskId
from tests.web import hostile
from tests.web.conftest import WithPermissions
from tests.web.test_access import DECLARED, OPEN_TO_ALL, POSTS, ROUTES, url_of

READABLE = sorted(ROUTES.keys() - OPEN_TO_ALL - POSTS - {"poll"})
ASKED = ("q", "filter", "sort", "tenant", "pool", "kind", "state", "after", "before", "name", "cursor", "by", "next")

ADDED = {
    "kill-confirm": {"scope": "tenant", "name": hostile.TEXT},
    "operation-new": {"kind": "discard", "filter": "state:dead"},
    "tasks-fresh": {"since": "0"},
    "search": {"q": hostile.TEXT},
}
"""What the addresses of some pages must say besides."""


@pytest.fixture
def watcher(with_permissions: WithPermissions) -> Client:
    """Somebody who may see everything, where everything is hostile."""
    Snapshot.objects.create(body=hostile.body())
    return with_permissions(DECLARED)


def test_what_is_found_would_be_found() -> None:
    for drawn in ("{}", '<a title="{}">x</a>', "<a title='{}'>x</a>", '<a href="{}">x</a>'):
        assert hostile.faults_in(drawn.format(hostile.TEXT))
    assert hostile.faults_in('<a href=" JavaScript:evil">x</a>')
    assert hostile.faults_in("evil 49")
    assert not hostile.faults_in("&lt;evil a&gt;")


def test_stored_text_stays_text_on_every_page(watcher: Client) -> None:
    parts = hostile.cast()
    faults: dict[str, object] = {}
    silent = set()
    for route in READABLE:
        response = watcher.get(url_of(route, 0, **parts), ADDED.get(route))
        if not response["Content-Type"].startswith("text/html"):
            continue
        html = response.content.decode()
        if response.status_code != 200 or hostile.faults_in(html):
            faults[route] = (response.status_code, hostile.faults_in(html))
        if "&lt;evil a&gt;" not in html:
            silent.add(route)
    assert faults == {}
    assert silent == {"settings", "tasks-fresh", "schedule-new", "webhook-tested"}


def test_what_is_asked_for_stays_text(watcher: Client, task: TaskId) -> None:
    query = dict.fromkeys(ASKED, hostile.TEXT)
    without_filter = query | {"filter": ""}
    for route in READABLE:
        url = url_of(route, task)
        for asked in (query, without_filter):
            response = watcher.get(url, asked)
            assert response.status_code < 500, route
            if response["Content-Type"].startswith("text/html"):
                assert hostile.faults_in(response.content.decode()) == [], route


@pytest.mark.parametrize("page", sorted(LIVE_PAGES))
def test_what_is_watched_stays_text(page: str, watcher: Client) -> None:
    scope = {"scope": " " + hostile.TEXT[1:]} if page in SCOPED else {}
    response = watcher.get(f"/ops/_live/{page}/", scope)
    html = response.content.decode()
    assert response.status_code == 200
    assert hostile.faults_in(html) == []
    assert "\u202e" not in html
    assert ("&lt;evil a&gt;" in html) is (page not in {"still", "counts", *OF_A_TENANT})
