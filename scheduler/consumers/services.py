"""Decides who may open a socket that is for services, not for people: a bearer token in the header, and its scopes.

Such a socket uses no session and no cookie. A page of another origin cannot send the header: its origin says nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from scheduler.live.events import in_thread
from scheduler.services.tokens import Principal, authenticate, recall

UNAUTHENTICATED: Final = 4401
FORBIDDEN: Final = 4403

_SCHEME: Final = "bearer "


def token_of(scope: Mapping[str, Any]) -> str:
    """The token in `Authorization: Bearer …`; empty when there is none."""
    for name, value in scope["headers"]:
        if name == b"authorization":
            text = value.decode("latin-1")
            return text[len(_SCHEME) :].strip() if text.lower().startswith(_SCHEME) else ""
    return ""


async def admit(token: str, scope_name: str) -> Principal | int:
    """Who opens the socket, or the code to close it with."""
    known = recall(token)
    caller = await in_thread(authenticate, token) if known is None else known.caller
    if caller is None:
        return UNAUTHENTICATED
    return caller if scope_name in caller.scopes else FORBIDDEN
