"""The event feed: who may listen, what is told, and that reconnecting loses and repeats nothing."""

from __future__ import annotations

import asyncio
import random
import threading
from collections import defaultdict
from collections.abc import Callable, Coroutine, Iterator
from itertools import pairwise
from typing import Any, Final

import orjson
import psycopg
import pytest
from channels.testing import WebsocketCommunicator
from django.db import connections

from cronoq_app.asgi import application
from scheduler.consumers import feed
from scheduler.live.events import in_thread
from scheduler.models import Event, EventFresh, EventListener, Pool, Task
from scheduler.policy import flow
from scheduler.policy.states import MOVES, TaskState
from scheduler.policy.types import TenantId
from scheduler.services.events import announce, forget_events, publish
from scheduler.services.tokens import create_token, forget_tokens, revoke_token
from tests.conftest import LiveDatabase
from tests.support import loops
from tests.support.work import HandWorker, make_pool, make_tenant, submit_tasks

Frame = dict[str, Any]
RECONNECTS: Final = 10


@pytest.fixture
def acme(live_database: LiveDatabase) -> Iterator[TenantId]:
    forget_tokens()
    tenant = make_tenant("acme")
    make_pool()
    yield tenant
    forget_tokens()


def token(tenant: str | None = "acme", scope: str = "read") -> str:
    return create_token(scopes=[scope], tenant=tenant, actor="test").text


def socket(text: str, **question: object) -> WebsocketCommunicator:
    query = "&".join(f"{name}={value}" for name, value in question.items())
    return WebsocketCommunicator(
        application, f"/ws/feed/?{query}", [(b"authorization", f"Bearer {text}".encode())] if text else []
    )


async def opened(text: str, **question: object) -> tuple[WebsocketCommunicator, Frame]:
    """An open socket, and the first thing it said."""
    client = socket(text, **question)
    assert (await client.connect(timeout=10))[0]
    return client, await said(client)


async def said(client: WebsocketCommunicator) -> Frame:
    frame: Frame = orjson.loads(await client.receive_from(timeout=10))
    return frame


async def close_code(client: WebsocketCommunicator) -> int:
    while True:
        output = await client.receive_output(timeout=10)
        if output["type"] == "websocket.close":
            return int(output["code"])


def run(scenario: Callable[[], Coroutine[Any, Any, None]]) -> None:
    """Run it, and close what the sockets' thread opened: the test client keeps Channels from doing so."""
    loops.run(scenario())


def succeed_all(worker: HandWorker) -> None:
    worker.succeed(worker.start())


def test_transitions_are_told_as_they_happen(acme: TenantId) -> None:
    text = token()

    async def scenario() -> None:
        client, hello = await opened(text)
        assert hello["type"] == "hello"
        (task,) = await in_thread(lambda: submit_tasks(acme, kind="chat", key="k"))
        worker = await in_thread(lambda: HandWorker({pool_id(): 1}))
        await in_thread(succeed_all, worker)
        frames = [await said(client) for _ in range(3)]
        assert [(f["task"], f["from"], f["state"], f["attempt"]) for f in frames] == [
            (task, None, "ready", 0),
            (task, "ready", "running", 1),
            (task, "running", "succeeded", 1),
        ]
        assert frames[0] | {"at": "", "seq": 0} == {
            "type": "task.ready", "seq": 0, "at": "", "tenant": "acme", "task": task, "state": "ready", "from": None,
            "attempt": 0, "pool": "p", "kind": "chat", "key": "k",
        }  # fmt: skip
        assert hello["seq"] < frames[0]["seq"] < frames[1]["seq"] < frames[2]["seq"]
        await client.disconnect()

    run(scenario)


def pool_id() -> Any:
    return Pool.objects.get(name="p").pk


def test_a_tenant_hears_of_its_own_tasks_and_who_may_see_all_of_all(acme: TenantId) -> None:
    globex = make_tenant("globex")
    own, other, every = token(), token("globex"), token(None)

    async def scenario() -> None:
        clients = [(await opened(text))[0] for text in (own, other, every)]
        await in_thread(submit_tasks, globex)
        await in_thread(submit_tasks, acme)
        await in_thread(announce, None, "alert.test", {"x": 1})
        assert (await said(clients[0]))["tenant"] == "acme"
        assert (await said(clients[1]))["tenant"] == "globex"
        frames = [await said(clients[2]) for _ in range(3)]
        assert [f["tenant"] for f in frames] == ["globex", "acme", None]
        assert (frames[2]["type"], frames[2]["data"]) == ("alert.test", {"x": 1})
        for client in clients[:2]:
            assert await client.receive_nothing(timeout=0.3)
        for client in clients:
            await client.disconnect()

    run(scenario)


@pytest.mark.parametrize(("text", "code"), [("", 4401), ("cq_x_yyyyyyyyyyyyyyyyyyyy", 4401), ("submit", 4403)])
def test_only_a_token_that_may_read_listens(acme: TenantId, text: str, code: int) -> None:
    given = token(scope="submit") if text == "submit" else text

    async def scenario() -> None:
        client = socket(given)
        await client.connect(timeout=10)
        assert await close_code(client) == code

    run(scenario)


def test_a_place_that_is_none_and_a_message_that_is_none_end_it(acme: TenantId) -> None:
    text = token()

    async def scenario() -> None:
        client, error = await opened(text, after="-1")
        assert error["code"] == 4400
        assert await close_code(client) == 4400
        for message in ("x", "[]", '{"ack": "1"}', '{"ack": true}', '{"ack": 1}' + " " * 2000):
            client, _ = await opened(text)
            await client.send_to(text_data=message)
            assert await close_code(client) == 4400

    run(scenario)


def test_a_token_that_is_revoked_stops_listening(acme: TenantId, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(feed, "ASK_AGAIN_S", 0.05)
    text = token()

    async def scenario() -> None:
        client, _ = await opened(text)
        await in_thread(lambda: revoke_token(text.split("_")[1], actor="test"))
        assert await close_code(client) == 4401

    run(scenario)


def test_silence_is_broken_by_a_heartbeat_with_the_newest_place(
    acme: TenantId, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(feed, "HEARTBEAT_EVERY_S", 0.2)
    make_tenant("globex")
    text = token("globex")

    async def scenario() -> None:
        client, hello = await opened(text)
        beat = await said(client)
        assert (beat["type"], beat["seq"]) == ("heartbeat", hello["seq"])
        every, _ = await opened(await in_thread(token, None))
        await in_thread(submit_tasks, acme, 3)
        newest = [await said(every) for _ in range(3)][-1]["seq"]
        while (beat := await said(client))["seq"] < newest:
            assert beat["type"] == "heartbeat"
        for each in (client, every):
            await each.disconnect()

    run(scenario)


def test_what_is_not_kept_any_more_is_told_as_lost(acme: TenantId, configure: Callable[..., Any]) -> None:
    text = token()

    async def scenario() -> None:
        client, hello = await opened(text)
        await in_thread(submit_tasks, acme, 5)
        last = [await said(client) for _ in range(5)][-1]["seq"]
        await client.disconnect()
        configure(event_keep_s=0.0)
        await in_thread(forget_events)
        again, _ = await opened(text, after=hello["seq"])
        lost = await said(again)
        assert (lost["type"], lost["after"], lost["until"]) == ("lost", hello["seq"], last)
        await again.disconnect()
        # Nothing was told while nobody listened for long, either.
        await in_thread(lambda: EventListener.objects.update(until="2020-01-01T00:00:00Z"))
        await in_thread(submit_tasks, acme, 1)
        assert not await in_thread(EventFresh.objects.exists)
        late, _ = await opened(text, after=last - 1)
        assert (await said(late))["type"] == "lost"
        await late.disconnect()

    run(scenario)


def test_who_does_not_read_is_told_and_dropped_and_goes_on_where_it_was(
    acme: TenantId, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(flow, "WINDOW_BYTES", 2_000)
    monkeypatch.setattr(flow, "PACE_BYTES_PER_S", 0.0)
    monkeypatch.setattr(flow, "BEHIND_MAX_S", 0.3)
    text = token()

    async def scenario() -> None:
        client, _ = await opened(text)
        tasks = await in_thread(submit_tasks, acme, 100)
        got = []
        while (frame := await said(client))["type"] == "task.ready":
            got.append(frame)
        assert len(got) < 20
        assert (frame["type"], frame["code"]) == ("error", 4408)
        assert await close_code(client) == 4408
        again, _ = await opened(text, after=got[-1]["seq"])
        while len(got) < len(tasks):
            got.append(await said(again))
            await again.send_to(text_data=orjson.dumps({"ack": got[-1]["seq"]}).decode())
        assert [frame["task"] for frame in got] == tasks
        await again.disconnect()

    run(scenario)


def test_a_transaction_that_is_open_for_long_keeps_back_nobody_else_s_events(
    acme: TenantId, live_database: LiveDatabase
) -> None:
    text = token()

    async def scenario() -> None:
        client, _ = await opened(text)
        with psycopg.connect(live_database.url) as slow:
            # It has told of its own already, under an id before the others'.
            slow.execute("INSERT INTO event_fresh (type, tenant_id, at) VALUES ('alert.slow', %s, now())", [acme])
            (task,) = await in_thread(submit_tasks, acme)
            first = await said(client)
            assert first["task"] == task
            slow.commit()
        second = await said(client)
        assert (second["type"], second["seq"]) == ("alert.slow", first["seq"] + 1)
        await client.disconnect()

    run(scenario)


class Load:
    """Tasks that succeed and tasks that fail first, from two threads whose transactions commit in any order."""

    def __init__(self, tenant: TenantId) -> None:
        self._tenant = tenant
        self._over = threading.Event()
        self._worker = HandWorker({pool_id(): 10})
        self._threads = [threading.Thread(target=each) for each in (self._work, self._beside)]

    def begin(self) -> None:
        for thread in self._threads:
            thread.start()

    def end(self) -> None:
        for thread in self._threads:
            thread.join()

    def _work(self) -> None:
        try:
            for _ in range(40):
                submit_tasks(self._tenant, 5)
                leased = self._worker.start()
                self._worker.fail(leased[:1])
                self._worker.succeed(leased[1:])
        finally:
            self._over.set()
            connections.close_all()

    def _beside(self) -> None:
        try:
            while not self._over.is_set():
                submit_tasks(self._tenant, 3)
                publish()
        finally:
            connections.close_all()


async def listened(text: str, load: Load) -> list[Frame]:
    """All that a listener hears that loses its connection ten times, at random."""
    chance = random.Random(7)
    client, hello = await opened(text)
    load.begin()
    seen: list[Frame] = []
    place = hello["seq"]
    for _ in range(RECONNECTS):
        for _ in range(chance.randrange(1, 40)):
            frame = await said(client)
            if frame["type"].startswith("task."):
                seen.append(frame)
                place = frame["seq"]
        await client.disconnect()
        client, hello = await opened(text, after=place)
        assert hello["seq"] == place
    await asyncio.to_thread(load.end)
    await in_thread(publish)
    last = await in_thread(lambda: Event.objects.latest("seq").seq)
    while place < last:
        seen.append(await said(client))
        place = seen[-1]["seq"]
        await client.send_to(text_data=orjson.dumps({"ack": place}).decode())
    await client.disconnect()
    return seen


def test_ten_reconnects_under_load_lose_nothing_repeat_nothing_and_keep_the_order(acme: TenantId) -> None:
    text, load = token(), Load(acme)
    seen: list[Frame] = []

    async def scenario() -> None:
        seen.extend(await listened(text, load))

    run(scenario)
    places = [frame["seq"] for frame in seen]
    assert places == list(range(places[0], places[0] + len(places)))
    by_task: dict[int, list[Frame]] = defaultdict(list)
    for frame in seen:
        by_task[frame["task"]].append(frame)
    for frames in by_task.values():
        assert frames[0]["from"] is None
        for before, after in pairwise(frames):
            assert after["from"] == before["state"]
            assert TaskState(after["state"]) in MOVES[TaskState(before["state"])]
    assert {task: frames[-1]["state"] for task, frames in by_task.items()} == dict(
        Task.objects.values_list("pk", "state")
    )
