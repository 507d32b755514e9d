"""The poll fallback: the same frame as the socket's, and nothing when nothing changed."""

from __future__ import annotations

import pytest
from django.db import OperationalError
from django.test import Client

from scheduler.live.frames import Key
from scheduler.live.newest import newest
from scheduler.models import Snapshot
from tests.web.conftest import SignIn

URL = "/ops/_live/overview/"


def test_a_stranger_to_the_page_gets_all_of_it(signed_in: SignIn, snapshot: Snapshot) -> None:
    response = signed_in("viewer").get(URL)
    html = response.content.decode()
    assert response["ETag"] == f'"{snapshot.seq}"'
    assert float(response["X-Live-Age"]) >= 0
    assert html.startswith('<i hx-swap-oob="true" id="live-beat"')
    assert '<div hx-swap-oob="true" id="live"' in html
    assert newest.frame(Key("overview")).html.removeprefix("<div") in html.replace(' hx-swap-oob="true"', "")


def test_a_page_of_the_same_shape_gets_contents_only(signed_in: SignIn, snapshot: Snapshot) -> None:
    frame = newest.frame(Key("overview"))
    html = signed_in("viewer").get(URL, {"seq": "0", "shape": frame.shape}).content.decode()
    assert "<section" not in html
    assert html.count('hx-swap-oob="true"') == len(frame.leaves()) + 1


def test_nothing_new_is_no_content(signed_in: SignIn, snapshot: Snapshot) -> None:
    client = signed_in("viewer")
    frame = newest.frame(Key("overview"))
    response = client.get(URL, {"seq": str(frame.seq), "shape": frame.shape})
    assert (response.status_code, response.content) == (204, b"")
    assert response["X-Live-Age"]
    assert client.get(URL, headers={"if-none-match": response["ETag"]}).status_code == 304


def test_a_board_that_could_not_be_read_anew_is_said_to_be_the_last(
    signed_in: SignIn, snapshot: Snapshot, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = signed_in("viewer")
    assert "X-Live-Lost" not in client.get(URL)
    monkeypatch.setattr(newest, "_read", unanswered)
    monkeypatch.setattr(newest, "_due_at_s", float("-inf"))
    response = client.get(URL)
    assert response["X-Live-Lost"] == "yes"
    assert 'data-lost="yes"' in response.content.decode()
    assert ">The database does not answer. These are the last numbers" in client.get("/ops/").content.decode()


def unanswered() -> None:
    message = "the connection is closed"
    raise OperationalError(message)


def test_unknown_pages_and_misplaced_scopes_are_not_found(signed_in: SignIn, snapshot: Snapshot) -> None:
    client: Client = signed_in("viewer")
    assert client.get("/ops/_live/secrets/").status_code == 404
    assert client.get("/ops/_live/pool/").status_code == 404
    assert client.get("/ops/_live/pool/?scope=llm").status_code == 200
