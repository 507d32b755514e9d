"""Decides how a message that many sockets get is written to each of them. Nothing here waits for a socket.

ASGI's `send` costs Daphne some 120 us a message: it is encoded and framed again for each socket, and the reactor is
asked to watch each for a moment when it can be written to. Where the server is Daphne without TLS, a message goes,
framed once, straight to the socket when nothing else is on its way there, for some 25 us; what the socket does not take
at once is left to the reactor. Any other server is sent messages as ASGI says.
"""

from __future__ import annotations

import asyncio
import socket
import sys
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from functools import partial
from typing import Any, Final

from scheduler.live.viewers import Line, Message

Scope = Mapping[str, Any]
Receive = Callable[[], Awaitable[Mapping[str, Any]]]
Send = Callable[[Mapping[str, Any]], Awaitable[None]]

UNREAD_BYTES: Final = 65_536
"""What the system keeps for a reader that is slow; more would be old when it is read."""


def line_to(send: Send) -> Line:
    """The cheapest way to the socket behind an ASGI `send`."""
    protocol = _daphne_protocol(send)
    if protocol is not None and _is_plain(protocol.transport):
        return StraightLine(protocol, protocol.transport)
    return AsgiLine(send)


def _daphne_protocol(send: Send) -> Any:
    """What serves this socket, if the server is Daphne: an application is given a method of the server, bound to it."""
    daphne = sys.modules.get("daphne.ws_protocol")
    bound = send.args[0] if isinstance(send, partial) and len(send.args) == 1 else None
    return bound if daphne is not None and isinstance(bound, daphne.WebSocketProtocol) else None


def _is_plain(transport: object) -> bool:
    """Whether what is written goes to the socket as it is: TLS is a layer around the transport, or a mode of it."""
    abstract = sys.modules["twisted.internet.abstract"]
    return isinstance(transport, abstract.FileDescriptor) and not getattr(transport, "TLS", False)


class AsgiLine:
    """By the server's `send`, in a task of its own, since it may wait."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self._sending: asyncio.Task[None] | None = None

    def write(self, message: Message) -> bool:
        """See `Line`."""
        if self._sending is not None and not self._sending.done():
            return False
        self._sending = asyncio.create_task(self._say(message.text))
        return True

    async def _say(self, text: str) -> None:
        # Servers differ in what they raise for a socket that has gone; who receives is told of that too.
        with suppress(OSError, RuntimeError):
            await self._send({"type": "websocket.send", "text": text})


class StraightLine:
    """To the socket itself, unless something waits in the transport's buffer: a rest of ours, or a server's ping."""

    def __init__(self, protocol: Any, transport: Any) -> None:
        self._protocol = protocol
        self._transport = transport
        transport.getHandle().setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, UNREAD_BYTES)

    def write(self, message: Message) -> bool:
        """See `Line`. A socket that is ending takes everything, and forgets it."""
        transport = self._transport
        if self._protocol.state != self._protocol.STATE_OPEN:
            return True
        if transport in transport.reactor.getWriters():
            return False
        data = message.wire
        written = transport.writeSomeData(data)
        # An exception in place of a number says that the connection is lost, which the reactor notices by itself.
        if isinstance(written, int) and 0 <= written < len(data):
            transport.write(data[written:])
        return True
