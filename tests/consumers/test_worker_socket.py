"""The workers' socket: who is let in, and what is said to those who are not."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from typing import Any

import pytest
from channels.testing import WebsocketCommunicator

from cronoq_app.asgi import application
from scheduler.consumers.worker import worker_socket
from scheduler.services.tokens import create_token
from tests.support import loops
from tests.support.work import make_pool, make_tenant

pytestmark = pytest.mark.usefixtures("live_database")

HELLO = {"type": "hello", "protocol": 1, "owner": "me", "pools": ["p"], "slots": 2}


def talk(*messages: dict[str, Any]) -> list[Any]:
    """What comes back, until there is a word for each message or the socket is closed with a code."""

    async def whole() -> list[Any]:
        client = WebsocketCommunicator(application, "/ws/worker/")
        assert (await client.connect(timeout=20))[0]
        heard: list[Any] = []
        for message in messages:
            await client.send_to(text_data=json.dumps(message))
            output = await client.receive_output(timeout=20)
            heard.append(json.loads(output["text"]))
            if isinstance(heard[-1], dict) and heard[-1]["type"] == "error":
                heard.append((await client.receive_output(timeout=20))["code"])
        await client.disconnect()
        return heard

    return loops.run(whole())


def test_a_worker_is_let_in_by_its_token_and_told_its_id() -> None:
    make_tenant()
    make_pool(executor="remote")
    token = create_token(scopes=["work"], tenant="acme", actor="test").text
    ready, beat, stale = talk(
        HELLO | {"token": token},
        {"type": "heartbeat", "leases": [5]},
        {"type": "complete", "lease_id": 5, "result": 1},
    )
    assert (ready["type"], ready["granted_slots"], ready["protocol"]) == ("ready", {"p": 2}, 1)
    assert (beat["kept"], beat["lost"]) == ([], [5])
    assert (stale["type"], stale["stale"], stale["code"]) == ("settled", True, "stale_lease")


@pytest.mark.parametrize(
    ("changes", "scopes", "code"),
    [
        ({"token": "cq_unknown_0123456789abcdef"}, ["work"], 4401),
        ({}, ["read"], 4403),
        ({"protocol": 9}, ["work"], 4406),
        ({"pools": ["nowhere"]}, ["work"], 4400),
        ({"type": "drain"}, ["work"], 4400),
    ],
)
def test_others_hear_why_not(changes: dict[str, Any], scopes: list[str], code: int) -> None:
    make_tenant()
    make_pool(executor="remote")
    token = create_token(scopes=scopes, tenant="acme", actor="test").text
    error, closed = talk({**HELLO, "token": token, **changes})
    assert (error["type"], closed) == ("error", code)


def test_several_messages_share_a_frame_where_the_worker_takes_it() -> None:
    make_tenant()
    make_pool(executor="remote")
    token = create_token(scopes=["work"], tenant="acme", actor="test").text
    reports: Any = [{"type": "complete", "lease_id": n} for n in (5, 6)]
    ready, together = talk(HELLO | {"token": token, "batches": True}, reports)
    assert ready["batches"]
    assert [(each["type"], each["lease_id"], each["stale"]) for each in together] == [
        ("settled", 5, True),
        ("settled", 6, True),
    ]
    _, alone = talk(HELLO | {"token": token}, reports)
    assert (alone["type"], alone["lease_id"]) == ("settled", 5)


def test_a_process_that_leaves_tells_its_workers_to_come_again() -> None:
    async def leave_while_connected() -> list[Mapping[str, Any]]:
        said: asyncio.Queue[Mapping[str, Any]] = asyncio.Queue()
        heard: asyncio.Queue[Mapping[str, Any]] = asyncio.Queue()
        heard.put_nowait({"type": "websocket.connect"})
        serving = asyncio.create_task(worker_socket({"type": "websocket", "headers": []}, heard.get, said.put))
        assert (await said.get())["type"] == "websocket.accept"
        serving.cancel()
        with pytest.raises(asyncio.CancelledError):
            await serving
        return [said.get_nowait() for _ in range(said.qsize())]

    told = loops.run(leave_while_connected())
    assert json.loads(told[-2]["text"])["code"] == "going_away"
    # Daphne makes an error of the code that would say so, and leaves the line open.
    assert told[-1] == {"type": "websocket.close", "code": 1000}
