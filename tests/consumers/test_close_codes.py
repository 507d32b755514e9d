"""Every code that a socket is closed with is one that the server sends: with any other it leaves the line open."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from autobahn.websocket.protocol import WebSocketProtocol

from scheduler.consumers import access, feed, ops
from scheduler.protocol.limits import FINAL, Close

CODES = {
    *(ops.TRY_LATER, ops.BAD_REQUEST),
    *(feed.NORMAL, feed.BAD_REQUEST, feed.SLOW),
    *(verdict.value for verdict in access.Verdict if verdict is not access.Verdict.OK),
    *FINAL,
    Close.NOT_READING,
}


def sent(code: int) -> list[int]:
    """The codes that went out when the server was asked to close with this one."""
    out: list[int] = []
    line: Any = SimpleNamespace(sendCloseFrame=lambda code, **_: out.append(code))
    WebSocketProtocol.sendClose(line, code)
    return out


@pytest.mark.parametrize("code", sorted(map(int, CODES)))
def test_the_server_sends_it(code: int) -> None:
    assert sent(code) == [code]


def test_the_server_makes_an_error_of_others() -> None:
    with pytest.raises(Exception, match="invalid close code"):
        sent(Close.TRY_LATER.value)
