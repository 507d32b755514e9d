"""Messages to many sockets: the straight way under Daphne, and ASGI's under any other server."""

from __future__ import annotations

import asyncio
import socket
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from websockets.sync.client import connect

from scheduler.consumers.lines import AsgiLine, line_to
from scheduler.live.viewers import Message
from tests.consumers.line_app import AT_MOST
from tests.support.processes import ROOT, environment, free_port, running
from tests.support.waiting import wait_until


def is_open(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def test_under_daphne_messages_go_straight_whole_and_in_order_until_the_reader_is_behind(tmp_path: Path) -> None:
    port, length = free_port(), 60_000
    command = [
        sys.executable,
        "-m",
        "daphne",
        "-b",
        "127.0.0.1",
        "-p",
        str(port),
        "tests.consumers.line_app:application",
    ]
    with running(command, tmp_path / "web", environ=environment(), cwd=ROOT):
        wait_until(lambda: is_open(port), timeout_s=60)
        with connect(f"ws://127.0.0.1:{port}/", max_size=None, proxy=None, compression=None) as client:
            for _ in range(2):
                client.send(str(length))
                got = []
                while not (text := str(client.recv(timeout=30))).startswith("StraightLine"):
                    got.append(text)
                assert text == f"StraightLine {len(got)}"
                assert 0 < len(got) < AT_MOST
                assert got == [f"{number:<{length}}" for number in range(len(got))]


def test_elsewhere_a_message_goes_when_the_one_before_is_gone() -> None:
    sent: list[str] = []

    async def scenario() -> None:
        free = asyncio.Event()

        async def send(message: Mapping[str, Any]) -> None:
            await free.wait()
            sent.append(message["text"])
            if message["text"] == "b":
                raise ConnectionResetError

        line = line_to(send)
        assert isinstance(line, AsgiLine)
        assert line.write(Message("a"))
        await asyncio.sleep(0)
        assert not line.write(Message("passed over"))
        free.set()
        for text in ("b", "c"):
            async with asyncio.timeout(10):
                while not line.write(Message(text)):  # noqa: ASYNC110 - as below
                    await asyncio.sleep(0)
        async with asyncio.timeout(10):
            while len(sent) < 3:  # noqa: ASYNC110 - a line has no event to wait for
                await asyncio.sleep(0)

    asyncio.run(scenario())
    assert sent == ["a", "b", "c"]
