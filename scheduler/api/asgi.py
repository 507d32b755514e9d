"""Serves the API without the console's middleware: no session, no cookies, no forms, no thread per request.

Every middleware of Django that is not async costs a change of thread on the way in and another on the way out; for a
submission that was four fifths of its cost. Here every view is async, and those that ask the database do it in a pool
of few threads, so that no crowd of clients can take all connections. It must never decide what a request means.
"""

from __future__ import annotations

import asyncio
import io
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final

from django.core.handlers.asgi import ASGIHandler
from django.core.handlers.exception import convert_exception_to_response
from django.http import HttpRequest, HttpResponse, HttpResponseNotAllowed

from scheduler.api.answers import JSON
from scheduler.api.bodies import BATCH_BYTES_MAX, too_large
from scheduler.api.polling import Poll, answer_poll, plain_poll
from scheduler.api.problems import answer, answer_error, answer_not_allowed

Scope = Mapping[str, Any]
Receive = Callable[[], Awaitable[Mapping[str, Any]]]
Send = Callable[[Mapping[str, Any]], Awaitable[None]]

PREFIX: Final = "/api/"
WITH_PAGES: Final = frozenset({"/api/v1/docs", "/api/v1/openapi.json"})
"""Looked at in a browser, and so served with the headers that pages have."""


def is_for_api(path: str) -> bool:
    """Whether this handler serves the path."""
    return path.startswith(PREFIX) and path not in WITH_PAGES


class ApiHandler(ASGIHandler):
    """Django's ASGI handler with nothing between the server and the view."""

    def load_middleware(self, is_async: bool = False) -> None:  # noqa: ARG002, FBT001, FBT002 - Django's signature
        """The chain that Django would build from an empty MIDDLEWARE."""
        self._view_middleware: list[Any] = []
        self._template_response_middleware: list[Any] = []
        self._exception_middleware: list[Any] = []
        self._middleware_chain = convert_exception_to_response(
            self._get_response_async  # type: ignore[attr-defined]  # the stubs leave it out
        )

    async def send_response(self, response: Any, send: Any) -> None:
        """Send an answer with the headers that Django's middleware would add, and refusals all of one form."""
        if isinstance(response, HttpResponseNotAllowed):
            response = answer_not_allowed(response["Allow"])
        response.headers.setdefault("Content-Length", str(len(response.content)))
        response.headers.setdefault("X-Content-Type-Options", "nosniff")
        response.headers.setdefault("Cache-Control", "no-store")
        await super().send_response(response, send)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request in the event loop; a client that hangs up ends its view."""
        body = await _read(receive)
        if body is None:
            return
        if isinstance(body, HttpResponse):
            await self.send_response(body, send)
            return
        poll = plain_poll(scope, body)
        view = asyncio.ensure_future(self._respond(scope, body) if poll is None else _answer(poll))
        hung_up = asyncio.ensure_future(receive())
        try:
            await asyncio.wait((view, hung_up), return_when=asyncio.FIRST_COMPLETED)
            if view.done():
                await self.send_response(view.result(), send)
        finally:
            hung_up.cancel()
            view.cancel()

    async def _respond(self, scope: Scope, body: bytes) -> Any:
        request, fault = self.create_request(scope, io.BytesIO(body))
        return fault if request is None else await self.get_response_async(request)


async def _answer(poll: Poll) -> HttpResponse:
    try:
        return HttpResponse(await answer_poll(poll), content_type=JSON)
    except Exception as error:  # noqa: BLE001 - the edge: whatever was raised becomes its answer
        return answer(HttpRequest(), error)


async def _read(receive: Receive) -> bytes | HttpResponse | None:
    """The body; the refusal of one that is larger than any may be; None when the client hung up."""
    parts: list[bytes] = []
    size = 0
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            return None
        parts.append(message.get("body", b""))
        size += len(parts[-1])
        if size > BATCH_BYTES_MAX:
            return answer_error(too_large(size, BATCH_BYTES_MAX))
        if not message.get("more_body", False):
            return b"".join(parts)
