"""Connections are kept for the next call, within bounds, and none is left behind."""

from __future__ import annotations

import asyncio

import httpx2 as httpx
import pytest

from scheduler.engine.executors import connections
from scheduler.engine.executors.connections import Connections
from tests.support.canned import CannedServer, answer, canned_server


async def call(client: httpx.AsyncClient, canned: CannedServer) -> None:
    assert (await client.post(canned.url, json={})).status_code == 200


def test_what_was_idle_beyond_the_bounds_is_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "IDLE_CONNECTIONS_MAX", 2)

    async def use() -> None:
        async with canned_server(answer({})) as canned, httpx.AsyncClient(transport=Connections(proxy=None)) as client:
            await asyncio.gather(*(call(client, canned) for _ in range(5)))
            for _ in range(3):
                await canned.closed.acquire()
            await asyncio.gather(*(call(client, canned) for _ in range(2)))
            assert canned.connections == 5

    asyncio.run(use())


def test_what_was_idle_for_too_long_is_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "IDLE_S_MAX", -1.0)

    async def use() -> None:
        async with canned_server(answer({})) as canned, httpx.AsyncClient(transport=Connections(proxy=None)) as client:
            await call(client, canned)
            await canned.closed.acquire()

    asyncio.run(use())


def test_a_call_that_is_in_flight_at_the_end_still_closes_its_connection() -> None:
    async def use() -> None:
        async with canned_server(answer({})) as canned:
            client = httpx.AsyncClient(transport=Connections(proxy=None))
            async with client.stream("POST", canned.url, json={}) as response:
                await client.aclose()
                assert await response.aread() == b"{}"
            await canned.closed.acquire()

    asyncio.run(use())


def test_a_body_that_cannot_be_closed_takes_its_connection_with_it() -> None:
    """As when the task is cancelled at that moment; a connection in an unknown state is not used again."""
    given_up: list[bool] = []

    class Stuck(httpx.AsyncByteStream):
        async def aclose(self) -> None:
            raise asyncio.CancelledError

    async def give_back() -> None:
        raise AssertionError

    async def give_up() -> None:
        given_up.append(True)

    async def use() -> None:
        with pytest.raises(asyncio.CancelledError):
            await connections._Returning(Stuck(), give_back, give_up).aclose()

    asyncio.run(use())
    assert given_up
