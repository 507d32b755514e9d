"""An application for the tests of lines: told how long, it writes messages without waiting until one is refused."""

from __future__ import annotations

from scheduler.consumers.lines import Receive, Scope, Send, line_to
from scheduler.live.viewers import Message

AT_MOST = 2_000


async def application(scope: Scope, receive: Receive, send: Send) -> None:
    """Numbered messages of the length asked for, then, as ASGI says, by what line they went and how many there were."""
    assert scope["type"] == "websocket"
    line = line_to(send)
    await receive()
    await send({"type": "websocket.accept"})
    while (said := await receive())["type"] == "websocket.receive":
        length, number = int(said["text"]), 0
        while number < AT_MOST and line.write(Message(f"{number:<{length}}")):
            number += 1
        await send({"type": "websocket.send", "text": f"{type(line).__name__} {number}"})
