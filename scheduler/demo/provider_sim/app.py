"""The routes of the simulated provider: its APIs, and the levers beside them.

Decides which path does what. It must never let a lever's request count as a request to the provider.
"""

from __future__ import annotations

import hmac
import json
from collections.abc import Callable, Mapping
from http import HTTPStatus
from typing import Final

from scheduler.demo.provider_sim.api import Api, Json
from scheduler.demo.provider_sim.asks import Refused
from scheduler.demo.provider_sim.chat_api import ChatApi
from scheduler.demo.provider_sim.embeddings_api import EmbeddingsApi
from scheduler.demo.provider_sim.faults import parse_faults
from scheduler.demo.provider_sim.generation import Generation, reply
from scheduler.demo.provider_sim.http1 import Exchange
from scheduler.demo.provider_sim.http_request import Request
from scheduler.demo.provider_sim.messages_api import MessagesApi
from scheduler.demo.provider_sim.openai_manners import error
from scheduler.demo.provider_sim.responses_api import ResponsesApi
from scheduler.demo.provider_sim.settings import MODELS
from scheduler.demo.provider_sim.state import State
from scheduler.demo.provider_sim.wire_formats import Headers, http_date

APIS: Final[Mapping[str, Api]] = {
    "/v1/chat/completions": ChatApi(),
    "/v1/embeddings": EmbeddingsApi(),
    "/v1/responses": ResponsesApi(),
    "/v1/messages": MessagesApi(),
}


class App:
    """Answers requests on one state."""

    def __init__(self, state: State) -> None:
        self._state = state
        self._levers: Mapping[tuple[str, str], Callable[[Request], object]] = {
            ("GET", "/healthz"): lambda _request: {"status": "ok"},
            ("GET", "/v1/models"): lambda _request: _models(int(state.wall_clock())),
            ("GET", "/stats"): self._stats,
            ("GET", "/limits"): lambda _request: state.door.settings.as_json(),
            ("POST", "/limits"): self._set_limits,
            ("GET", "/faults"): lambda _request: state.script.as_json(),
            ("POST", "/faults"): self._set_faults,
            ("POST", "/reset"): self._reset,
        }

    async def __call__(self, request: Request, exchange: Exchange) -> None:
        """Answer one request."""
        headers: Headers = [("date", http_date(self._state.wall_clock()))]
        api = APIS.get(request.path)
        if api is not None and request.method == "POST":
            headers.append((api.manners.request_id_header, f"req_{self._state.next_id():012x}"))
            await self._generate(api, request, exchange, headers)
            return
        status, value = self._pull(request)
        exchange.reply(status, [*headers, ("content-type", "application/json")], json.dumps(value).encode())

    async def _generate(self, api: Api, request: Request, exchange: Exchange, headers: Headers) -> None:
        state, key = self._state, api.manners.key_of(request)
        try:
            self._check_key(key)
            ask = api.parse(request, state.settings)
        except Refused as refused:
            state.stats.answer(state.stats.arrive("?", api.name, now=state.now()), refused.status, cause="invalid")
            reply(exchange, refused.status, headers, api.manners.invalid(refused))
            return
        arrival = state.stats.arrive(ask.model, api.name, now=state.now())
        await Generation(state, api, ask, key, exchange, headers, arrival).serve()

    def _pull(self, request: Request) -> tuple[int, object]:
        lever = self._levers.get((request.method, request.path))
        if lever is None:
            known = request.path in APIS or any(path == request.path for _, path in self._levers)
            status = HTTPStatus.METHOD_NOT_ALLOWED if known else HTTPStatus.NOT_FOUND
            return status, error(f"No {request.method} {request.path[:100]} here.", type_="invalid_request_error")
        try:
            return HTTPStatus.OK, lever(request)
        except (ValueError, RecursionError) as fault:
            return HTTPStatus.BAD_REQUEST, error(str(fault), type_="invalid_request_error")

    def _check_key(self, given: str) -> None:
        key = self._state.settings.api_key
        if key is not None and not hmac.compare_digest(given.encode(), key.encode()):
            raise Refused(HTTPStatus.UNAUTHORIZED, "Incorrect API key provided.", code="invalid_api_key")

    def _stats(self, request: Request) -> object:
        return self._state.stats.as_json(now=self._state.now(), arrivals="arrivals=0" not in request.query)

    def _set_limits(self, request: Request) -> object:
        self._state.set_limits(self._state.door.settings.edited(json.loads(request.body)))
        return self._state.door.settings.as_json()

    def _set_faults(self, request: Request) -> object:
        self._state.set_faults(parse_faults(json.loads(request.body)))
        return self._state.script.as_json()

    def _reset(self, _request: Request) -> object:
        self._state.reset()
        return {"status": "ok"}


def _models(created: int) -> Json:
    return {
        "object": "list",
        "data": [{"id": name, "object": "model", "created": created, "owned_by": "simulator"} for name in MODELS],
    }
