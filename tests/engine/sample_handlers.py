"""Handlers that pools of the tests name in their configuration."""

from __future__ import annotations

import threading

STARTED = threading.Event()
GO_ON = threading.Event()


def first(_ctx: object, payload: object) -> object:
    """Answer as the first; with a payload, only when told to go on."""
    if payload:
        STARTED.set()
        assert GO_ON.wait(10)
    return "first"


def second(_ctx: object, _payload: object) -> object:
    """Answer as the second."""
    return "second"
