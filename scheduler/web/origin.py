"""Names every request of the console, and lets the audit say from which request and address a change came."""

from __future__ import annotations

import secrets
from collections.abc import Callable
from typing import Final

from django.http import HttpRequest
from django.http.response import HttpResponseBase

from scheduler.services.changes import coming_from

HEADER: Final = "X-Request-ID"


def origin_middleware(get_response: Callable[[HttpRequest], HttpResponseBase]) -> Callable[..., HttpResponseBase]:
    """A request keeps the name that a proxy gave it, or gets one; its answer says it."""

    def respond(request: HttpRequest) -> HttpResponseBase:
        given = request.headers.get(HEADER, "")
        name = given if given.isascii() and given.isprintable() and 0 < len(given) <= 64 else secrets.token_hex(8)  # noqa: PLR2004 - the audit's column
        with coming_from(request.META.get("REMOTE_ADDR"), name):
            response = get_response(request)
        response.headers[HEADER] = name
        return response

    return respond
