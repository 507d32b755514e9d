"""Signing in: redirects, faults, the throttle, and the look that needs no account."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from django.contrib.auth.models import User
from django.test import Client

from scheduler.models import SignInCount
from tests.web.conftest import PASSWORD

URL = "/ops/sign-in/"


def attempt(client: Client, password: str, name: str = "viewer", address: str = "127.0.0.1") -> int:
    return client.post(
        URL, {"username": name, "password": password, "next": "/ops/pools/"}, REMOTE_ADDR=address
    ).status_code


def test_signing_in_returns_to_where_one_was(person: Callable[[str], User]) -> None:
    person("viewer")
    client = Client()
    assert client.get("/ops/pools/")["Location"] == "/ops/sign-in/?next=/ops/pools/"
    response = client.post(URL, {"username": "viewer", "password": PASSWORD, "next": "/ops/pools/"})
    assert response["Location"] == "/ops/pools/"


def test_a_foreign_next_is_not_followed(person: Callable[[str], User]) -> None:
    person("viewer")
    response = Client().post(URL, {"username": "viewer", "password": PASSWORD, "next": "https://evil.example/"})
    assert response["Location"] == "/ops/"


def test_a_wrong_password_says_no_more_than_that(person: Callable[[str], User]) -> None:
    person("viewer")
    known = Client().post(URL, {"username": "viewer", "password": "no"}).content.decode()
    unknown = Client().post(URL, {"username": "ghost", "password": "no"}).content.decode()
    for html in (known, unknown):
        assert "do not match an active account" in html
        assert "no" not in html[html.index('type="password"') :].split(">")[0].replace("autocomplete", "")


def test_five_failures_make_the_next_try_wait(person: Callable[[str], User]) -> None:
    person("viewer")
    client = Client()
    assert [attempt(client, "wrong") for _ in range(5)] == [422] * 5
    response = client.post(URL, {"username": "viewer", "password": PASSWORD})
    assert response.status_code == 429
    assert 0 < int(response["Retry-After"]) <= 30
    assert "Too many failed attempts. Try again in" in response.content.decode()


def test_one_name_or_address_does_not_lock_out_another(person: Callable[[str], User]) -> None:
    person("viewer")
    client = Client()
    for _ in range(6):
        attempt(client, "wrong", name="ghost")
    assert attempt(client, PASSWORD) == 302
    for _ in range(6):
        attempt(Client(), "wrong", address="198.51.100.7")
    assert attempt(Client(), PASSWORD, address="198.51.100.8") == 302


def test_success_forgives(person: Callable[[str], User]) -> None:
    person("viewer")
    for _ in range(3):
        for _ in range(4):
            attempt(Client(), "wrong")
        assert attempt(Client(), PASSWORD) == 302


def test_another_spelling_is_the_same_name(person: Callable[[str], User]) -> None:
    """The form strips and composes what it is given, so each of these is a guess at the same account."""
    person("viewer")
    for name in ("viewer", " viewer", "viewer ", "\uff56iewer", "Viewer"):
        assert attempt(Client(), "wrong", name=name) == 422
    assert attempt(Client(), PASSWORD, name="viewer\t") == 429


def test_whether_an_account_exists_changes_nothing(person: Callable[[str], User]) -> None:
    person("viewer")
    answers = [[attempt(Client(), "wrong", name=name) for _ in range(7)] for name in ("viewer", "ghost")]
    assert answers[0] == answers[1]


def test_the_counts_tell_neither_names_nor_addresses(person: Callable[[str], User]) -> None:
    person("viewer")
    attempt(Client(), "wrong", address="198.51.100.7")
    kept = str(list(SignInCount.objects.values()))
    assert "viewer" not in kept
    assert "198.51" not in kept


def test_sign_out_ends_the_session(person: Callable[[str], User]) -> None:
    client = Client()
    client.force_login(person("viewer"))
    assert client.post("/ops/sign-out/")["Location"] == URL
    assert client.get("/ops/").status_code == 302


@pytest.mark.parametrize(("theme", "kept"), [("dark", "dark"), ("light", "light"), ("<b>", "system")])
def test_the_look_is_kept_for_this_browser(theme: str, kept: str, db: None) -> None:
    client = Client()
    response = client.post("/ops/look/", {"theme": theme, "next": "/ops/sign-in/"})
    assert (response.status_code, response["Location"]) == (303, URL)
    assert f'data-theme="{kept}"' in client.get(URL).content.decode()


def test_shortcuts_can_be_switched_off_without_losing_the_theme(db: None) -> None:
    client = Client()
    client.post("/ops/look/", {"theme": "dark"})
    client.post("/ops/look/", {"shortcuts": "off", "next": "//evil.example"})
    html = client.get(URL).content.decode()
    assert 'data-theme="dark"' in html
    assert 'data-shortcuts="off"' in html
