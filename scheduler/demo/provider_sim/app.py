"""The routes of the simulated provider: its API, and the levers beside it.

Decides which path does what. It must never let a lever's request count as a request to the provider.
"""

from __future__ import annotations

import hmac
import json
from collections.abc import Callable, Mapping
from http import HTTPStatus

from scheduler.demo.provider_sim import bodies
from scheduler.demo.provider_sim.asks import Ask, Refused, parse_chat, parse_embeddings
from scheduler.demo.provider_sim.faults import parse_faults
from scheduler.demo.provider_sim.generation import Generation
from scheduler.demo.provider_sim.http1 import Exchange
from scheduler.demo.provider_sim.http_request import Request
from scheduler.demo.provider_sim.settings import MODELS
from scheduler.demo.provider_sim.state import State
from scheduler.demo.provider_sim.wire_formats import Headers, http_date


class App:
    """Answers requests on one state."""

    def __init__(self, state: State) -> None:
        self._state = state
        self._asks: Mapping[str, Callable[[bytes], Ask]] = {
            "/v1/chat/completions": lambda body: parse_chat(body, state.settings),
            "/v1/embeddings": parse_embeddings,
        }
        self._levers: Mapping[tuple[str, str], Callable[[Request], object]] = {
            ("GET", "/healthz"): lambda _request: {"status": "ok"},
            ("GET", "/v1/models"): lambda _request: bodies.models(MODELS, created=int(state.wall_clock())),
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
        parse = self._asks.get(request.path)
        if parse is not None and request.method == "POST":
            headers.append(("x-request-id", f"req_{self._state.next_id():012x}"))
            await self._generate(parse, request, exchange, headers)
            return
        status, value = self._pull(request)
        exchange.reply(status, [*headers, ("content-type", "application/json")], json.dumps(value).encode())

    async def _generate(
        self, parse: Callable[[bytes], Ask], request: Request, exchange: Exchange, headers: Headers
    ) -> None:
        state = self._state
        try:
            self._check_key(request)
            ask = parse(request.body)
        except Refused as refused:
            state.stats.answer(state.stats.arrive("?", now=state.now()), refused.status, cause="invalid")
            body = json.dumps(refused.body).encode()
            exchange.reply(refused.status, [*headers, ("content-type", "application/json")], body)
            return
        arrival = state.stats.arrive(ask.model, now=state.now())
        await Generation(state, ask, exchange, headers, arrival).serve()

    def _pull(self, request: Request) -> tuple[int, object]:
        lever = self._levers.get((request.method, request.path))
        if lever is None:
            known = request.path in self._asks or any(path == request.path for _, path in self._levers)
            status = HTTPStatus.METHOD_NOT_ALLOWED if known else HTTPStatus.NOT_FOUND
            return status, bodies.error(
                f"No {request.method} {request.path[:100]} here.", type_="invalid_request_error"
            )
        try:
            return HTTPStatus.OK, lever(request)
        except (ValueError, RecursionError) as error:
            return HTTPStatus.BAD_REQUEST, bodies.error(str(error), type_="invalid_request_error")

    def _check_key(self, request: Request) -> None:
        key = self._state.settings.api_key
        given = request.headers.get("authorization", "")
        if key is not None and not hmac.compare_digest(given.encode(), f"Bearer {key}".encode()):
            raise Refused(HTTPStatus.UNAUTHORIZED, bodies.INVALID_KEY)

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
