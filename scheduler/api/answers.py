"""Writes answers: JSON by schema, once per Idempotency-Key for requests that change something."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any, Final

import orjson
from django.http import HttpRequest, HttpResponse
from ninja.renderers import BaseRenderer
from pydantic import BaseModel, ConfigDict

from scheduler.api.access import caller_of
from scheduler.engine.doorbell import ring
from scheduler.services.idempotency import Answer, once

JSON: Final = "application/json"
KEY_HEADER: Final = "Idempotency-Key"
REPEATED_HEADER: Final = "Idempotency-Replayed"
_OPTIONS: Final = orjson.OPT_UTC_Z


class In(BaseModel):
    """A request body: a field that we do not know is refused by name, never ignored."""

    model_config = ConfigDict(extra="forbid")


class Out(BaseModel):
    """An answer."""


class Renderer(BaseRenderer):
    """Ninja's answers, written by orjson."""

    media_type = JSON

    def render(self, request: HttpRequest, data: Any, *, response_status: int) -> bytes:  # noqa: ARG002 - ninja's
        """The JSON text."""
        return to_json(data)


def to_json(data: object) -> bytes:
    """JSON text; times end in Z."""
    return orjson.dumps(data, option=_OPTIONS)


def respond(status: int, body: Out) -> HttpResponse:
    """An answer by its schema."""
    return HttpResponse(to_json(body.model_dump()), status=status, content_type=JSON)


def once_per_key(
    request: HttpRequest,
    act: Callable[[], tuple[int, Out]],
    *,
    kept: Callable[[Out], Out] | None = None,
    rings: bool = True,
) -> HttpResponse:
    """Do `act`, once per Idempotency-Key if the client sent one, then ring for the engine.

    `kept` makes the copy that is stored for repetitions, where the answer holds something that must not be stored.
    """
    key = request.headers.get(KEY_HEADER)
    if key is None:
        status, body = act()
        response = respond(status, body)
    else:
        response = _keyed(request, key, act, kept)
    if rings:
        ring()
    return response


def _keyed(
    request: HttpRequest, key: str, act: Callable[[], tuple[int, Out]], kept: Callable[[Out], Out] | None
) -> HttpResponse:
    fresh: list[Out] = []

    def run() -> Answer:
        status, body = act()
        fresh.append(body)
        return Answer(status, to_json((kept(body) if kept else body).model_dump()).decode())

    caller = caller_of(request)
    scope = f"tenant {caller.tenant_id}" if caller.tenant_id is not None else "all tenants"
    same = b"\n".join((str(request.method).encode(), request.get_full_path().encode(), request.body))
    answer = once(scope, key, same, run)
    # The last one: whatever was made before was undone, and made again.
    body = answer.body.encode() if answer.repeated else to_json(fresh[-1].model_dump())
    response = HttpResponse(body, status=answer.status, content_type=JSON)
    if answer.repeated:
        response[REPEATED_HEADER] = "true"
    return response


def moment(seconds: float) -> datetime:
    """A time for an answer."""
    return datetime.fromtimestamp(seconds, UTC)


def at(seconds: float | None) -> datetime | None:
    """The same for a time that may not be."""
    return None if seconds is None else moment(seconds)
