"""The console's socket: who may watch, what is sent first, pause and resume, and what ends it."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Coroutine, Iterator
from typing import Any
from urllib.parse import urlencode

import pytest
from channels.db import database_sync_to_async
from channels.testing import WebsocketCommunicator
from django.conf import settings
from django.contrib.auth.models import Permission, User
from django.test import Client

from cronoq_app.asgi import application
from scheduler.consumers import ops, rounds
from scheduler.live import hub
from scheduler.live.feed import feed
from scheduler.live.frames import Key
from scheduler.live.newest import newest
from scheduler.models import BoundAccount, Snapshot
from tests.conftest import LiveDatabase
from tests.live import sample
from tests.support import loops
from tests.support.work import make_tenant

ORIGIN = "http://testserver"


@pytest.fixture(autouse=True)
def committed(live_database: LiveDatabase) -> Iterator[None]:
    newest.frame(Key("overview"))  # the first drawing of a process reads templates: not while a socket waits for it
    newest.forget()
    yield
    newest.forget()


def cookie_of(*codenames: str) -> str:
    """The cookie of a signed-in person with these permissions."""
    user = User.objects.create_user("ada")
    user.user_permissions.set(Permission.objects.filter(codename__in=codenames))
    client = Client()
    client.force_login(user)
    return f"{settings.SESSION_COOKIE_NAME}={client.cookies[settings.SESSION_COOKIE_NAME].value}"


def add_snapshot(**changes: Any) -> Snapshot:
    return Snapshot.objects.create(body=sample.body(**changes))


def socket(cookie: str = "", *, origin: str = ORIGIN, **question: str) -> WebsocketCommunicator:
    headers = [(b"origin", origin.encode()), (b"cookie", cookie.encode())]
    query = urlencode({"page": "overview", "scope": "", **question})
    return WebsocketCommunicator(application, f"/ws/ops/?{query}", [header for header in headers if header[1]])


async def close_code(client: WebsocketCommunicator) -> int:
    while True:
        output = await client.receive_output(timeout=10)
        if output["type"] == "websocket.close":
            return int(output["code"])


def beat_of(frame: str | bytes) -> dict[str, str]:
    text = str(frame)
    return dict(re.findall(r'data-(\w+)="([^"]*)"', text[: text.index("</i>")]))


def run(scenario: Callable[[], Coroutine[Any, Any, None]]) -> None:
    """Run it, and close what the sockets' thread opened: the test client keeps Channels from doing so."""
    loops.run(scenario())


def test_a_stranger_is_accepted_and_told_to_sign_in() -> None:
    async def scenario() -> None:
        client = socket()
        assert (await client.connect())[0]
        assert await close_code(client) == 4401

    run(scenario)


def test_a_person_without_the_permission_is_told_so() -> None:
    cookie = cookie_of()

    async def scenario() -> None:
        client = socket(cookie)
        await client.connect()
        assert await close_code(client) == 4403

    run(scenario)


@pytest.mark.parametrize(("page", "scope"), [("overview", ""), ("pools", ""), ("pool", "llm"), ("task", "llm")])
def test_a_bound_account_watches_no_page_of_others_whatever_it_may_do(page: str, scope: str) -> None:
    cookie = cookie_of("view_console", "view_own_tenant")
    BoundAccount.objects.create(user=User.objects.get(), tenant_id=make_tenant("globex"))

    async def scenario() -> None:
        client = socket(cookie, page=page, scope=scope)
        await client.connect()
        assert await close_code(client) == 4403

    run(scenario)


def test_an_account_that_is_bound_while_it_watches_is_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    cookie = cookie_of("view_console", "view_own_tenant")
    add_snapshot()
    monkeypatch.setattr(rounds, "ASK_AGAIN_S", 0.05)

    def bind() -> None:
        BoundAccount.objects.create(user=User.objects.get(), tenant_id=make_tenant("globex"))

    async def scenario() -> None:
        client = socket(cookie)
        await client.connect()
        await client.receive_from(timeout=10)
        await database_sync_to_async(bind)()
        assert await close_code(client) == 4403

    run(scenario)


@pytest.mark.parametrize("origin", ["https://evil.example", "http://testserver:81", ""])
def test_another_origin_is_refused(origin: str) -> None:
    cookie = cookie_of("view_console")

    async def scenario() -> None:
        connected, _ = await socket(cookie, origin=origin).connect()
        assert not connected

    run(scenario)


@pytest.mark.parametrize("question", [{"page": "secrets"}, {"page": "pool"}, {"scope": "x"}, {"page": ""}])
def test_an_unknown_page_is_a_bad_request(question: dict[str, str]) -> None:
    async def scenario() -> None:
        client = socket(**question)
        await client.connect()
        assert await close_code(client) == ops.BAD_REQUEST

    run(scenario)


def test_the_first_message_is_what_the_page_lacks() -> None:
    cookie, snapshot = cookie_of("view_console"), add_snapshot()
    frame = newest.frame(Key("overview"))

    async def first(**question: str) -> str:
        client = socket(cookie, **question)
        await client.connect()
        text = await client.receive_from(timeout=10)
        await client.disconnect()
        return str(text)

    async def scenario() -> None:
        whole = await first()
        assert beat_of(whole)["seq"] == str(snapshot.seq)
        assert whole.endswith("".join([frame.html, *frame.beside]))
        same = await first(seq=str(snapshot.seq), shape=frame.shape)
        assert len(same) <= 200
        leaves = await first(seq="0", shape=frame.shape)
        assert "<section" not in leaves
        assert (await first(seq="¼")).endswith("".join([frame.html, *frame.beside]))

    run(scenario)


def test_a_new_snapshot_sends_what_changed() -> None:
    cookie = cookie_of("view_console")
    add_snapshot(seq=1000)

    async def scenario() -> None:
        client = socket(cookie)
        await client.connect()
        first = await client.receive_from(timeout=10)
        await database_sync_to_async(add_snapshot)(seq=1001)
        second = await client.receive_from(timeout=10)
        assert int(beat_of(second)["seq"]) == int(beat_of(first)["seq"]) + 1
        assert 'id="figure-waiting"' in second
        assert len(second) < len(first) / 2
        await client.disconnect()
        assert feed().hub.viewers() == 0

    run(scenario)


def test_silence_is_broken_by_a_small_beat(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hub, "BEAT_EVERY_S", 0.1)
    monkeypatch.setattr(hub, "PASS_EVERY_S", 0.02)
    cookie = cookie_of("view_console")
    add_snapshot()

    async def scenario() -> None:
        client = socket(cookie)
        await client.connect()
        await client.receive_from(timeout=10)
        for _ in range(3):
            assert len(await client.receive_from(timeout=10)) <= 200
        await client.disconnect()

    run(scenario)


def test_pause_stops_frames_and_resume_sends_what_was_missed() -> None:
    cookie = cookie_of("view_console")
    add_snapshot(seq=1000)

    async def scenario() -> None:
        client = socket(cookie)
        await client.connect()
        await client.receive_from(timeout=10)
        await client.send_to('{"do": "pause"}')
        await until(lambda: feed().hub.viewers() == 0)
        await database_sync_to_async(add_snapshot)(seq=1001)
        await client.send_to('{"do": "resume"}')
        newest.forget()
        text = await client.receive_from(timeout=10)
        assert 'id="figure-waiting"' in text
        assert feed().hub.viewers() == 1
        await client.disconnect()

    run(scenario)


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(10):
        while not condition():  # noqa: ASYNC110 - the hub has no event to wait for
            await asyncio.sleep(0)


@pytest.mark.parametrize(
    ("message", "code"),
    [
        ("x" * 1025, ops.BAD_REQUEST),
        ("{", ops.BAD_REQUEST),
        ('{"do": "delete"}', ops.BAD_REQUEST),
        ('{"do": ["pause"]}', ops.BAD_REQUEST),
        ("[]", ops.BAD_REQUEST),
    ],
)
def test_anything_else_ends_it(message: str, code: int) -> None:
    cookie = cookie_of("view_console")

    async def scenario() -> None:
        client = socket(cookie)
        await client.connect()
        await client.receive_from(timeout=10)
        await client.send_to(message)
        assert await close_code(client) == code

    run(scenario)


def revoke() -> None:
    User.objects.get().user_permissions.clear()


def sign_out() -> None:
    User.objects.update(is_active=False)


def change_password() -> None:
    user = User.objects.get()
    user.set_password("another")
    user.save()


@pytest.mark.parametrize(("change", "code"), [(revoke, 4403), (sign_out, 4401), (change_password, 4401)])
def test_an_open_socket_is_asked_again(change: Callable[[], None], code: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rounds, "ASK_AGAIN_S", 0.2)
    cookie = cookie_of("view_console")
    add_snapshot()

    async def scenario() -> None:
        client = socket(cookie)
        await client.connect()
        await client.receive_from(timeout=10)
        await database_sync_to_async(change)()
        assert await close_code(client) == code
        assert feed().hub.viewers() == 0

    run(scenario)
