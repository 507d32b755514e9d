"""One request for an answer, from the door to the last byte.

Decides the order of things: faults at the door, limits, the time it takes, faults on the way, the answer. The place in
flight is given back before the last byte is written, so a client that keeps to the limit never meets its own shadow.
How any of it is worded is the API's.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Final

from scheduler.demo.provider_sim.api import Api, Json
from scheduler.demo.provider_sim.asks import Answer, Ask
from scheduler.demo.provider_sim.faults import Fault, Strike
from scheduler.demo.provider_sim.http1 import Exchange
from scheduler.demo.provider_sim.limits import Bucket, Refusal
from scheduler.demo.provider_sim.prompt_cache import Cached
from scheduler.demo.provider_sim.state import State
from scheduler.demo.provider_sim.stats import Arrival
from scheduler.demo.provider_sim.wire_formats import Headers, retry_after_headers

CLIENT_CLOSED_REQUEST: Final = 499
FIRST_TOKEN_SHARE: Final = 0.3
AT_THE_DOOR: Final = frozenset({"throttle", "slow_down", "quota", "error", "overload", "reset"})


@dataclass(slots=True)
class Generation:
    """One request that was understood, of one account."""

    state: State
    api: Api
    ask: Ask
    account: str
    exchange: Exchange
    headers: Headers
    arrival: Arrival
    cached: Cached = field(default_factory=Cached)

    async def serve(self) -> None:
        """Strike, admit, take time, answer."""
        state, ask = self.state, self.ask
        strike = state.script.strike(model=ask.model, prompt=ask.prompt, now=state.now(), chance=state.chance)
        if strike is not None:
            state.stats.faults[strike.fault.kind] += 1
            if strike.fault.kind in AT_THE_DOOR:
                self._refuse_by_fault(strike)
                return
        self.cached = state.cache.look_up(self.account, ask.model, ask.marks)
        admission = state.door.enter(ask.model, ask.draw(self.cached), now=state.now(), account=self.account)
        self.headers += self._rate_headers()
        if isinstance(admission, Refusal):
            self._refuse_by_limit(admission)
            return
        state.stats.enter()
        state.stats.take_in(self.api.name, ask.input_tokens, cached=self.cached.read)

        def leave() -> None:
            admission.made(ask.output_tokens, now=state.now())
            if admission.leave():
                # However much of it arrives, the whole answer was made and is billed.
                state.stats.give_out(self.api.name, ask.output_tokens)
                state.stats.leave()

        try:
            await self._answer(strike.fault if strike is not None else None, leave)
        except asyncio.CancelledError:
            # The client left. A provider goes on and bills the answer all the same.
            state.stats.answer(self.arrival, CLIENT_CLOSED_REQUEST)
            raise
        finally:
            leave()

    async def _answer(self, fault: Fault | None, leave: Callable[[], None]) -> None:
        kind = None if fault is None else fault.kind
        if fault is not None and kind == "hang":
            await self._hang(fault)
            return
        state, ask = self.state, self.ask
        drawn_s = state.draw_latency_s(ask.model) if ask.latency_s is None else ask.latency_s
        latency_s = drawn_s + (fault.extra_s if fault is not None else 0.0)
        answer = Answer(
            ask, state.next_id(), int(state.wall_clock()), cached=self.cached, tells_usage=kind != "no_usage"
        )
        if ask.streams:
            await self._stream(answer, latency_s, kind, leave)
            return
        await asyncio.sleep(latency_s)
        body = json.dumps(self.api.whole(answer)).encode()
        headers = [*self.headers, ("content-type", "application/json"), *self._processing(latency_s)]
        leave()
        self._log(HTTPStatus.OK, kind)
        if kind == "cut":
            self.exchange.reply_partly(HTTPStatus.OK, headers, body, sent=len(body) // 2)
            return
        self.exchange.reply(HTTPStatus.OK, headers, b'{"id": "chatcmpl-' if kind == "malformed" else body)

    async def _stream(self, answer: Answer, latency_s: float, kind: str | None, leave: Callable[[], None]) -> None:
        """The head at once, the first token after a part of the latency, the rest evenly over what is left."""
        events = self.api.events(answer)
        if kind in ("cut", "stream_error", "malformed"):
            events = events[: max(2, len(events) * 2 // 3)]
        pause_s = latency_s * (1 - FIRST_TOKEN_SHARE) / max(1, len(events) - 1)
        await asyncio.sleep(latency_s * FIRST_TOKEN_SHARE)
        self.exchange.start(
            HTTPStatus.OK, [*self.headers, ("content-type", "text/event-stream"), *self._processing(latency_s)]
        )
        for event in events[:-1]:
            self.exchange.write(event)
            await asyncio.sleep(pause_s)
        leave()
        self._log(HTTPStatus.OK, kind)
        if kind == "cut":
            self.exchange.write(events[-1])
            self.exchange.break_off()
            return
        last = {"stream_error": self.api.stream_error, "malformed": b'data: {"id": "chatcmpl-\n\n'}
        self.exchange.end(events[-1] + last.get(kind or "", self.api.end))

    async def _hang(self, fault: Fault) -> None:
        await asyncio.sleep(fault.for_each_s if fault.for_each_s is not None else 24 * 3600.0)
        self._log(CLIENT_CLOSED_REQUEST, fault.kind)
        self.exchange.break_off()

    def _refuse_by_limit(self, refusal: Refusal) -> None:
        if refusal.cause != "too_large":
            self.headers += retry_after_headers(refusal.retry_after_s, "both", now=self.state.wall_clock())
        body = self.api.manners.over_limit(refusal, self.ask.model)
        self._reply(HTTPStatus.TOO_MANY_REQUESTS, body, cause=refusal.cause)

    def _refuse_by_fault(self, strike: Strike) -> None:
        fault, delay_s = strike.fault, strike.retry_after_s
        if fault.kind == "reset":
            self._log(CLIENT_CLOSED_REQUEST, fault.kind)
            self.exchange.reset()
            return
        status, body = self.api.manners.struck(fault, delay_s, self.ask.model)
        if delay_s is not None and fault.kind != "quota":
            self.headers += retry_after_headers(delay_s, fault.retry_after_format, now=self.state.wall_clock())
        self._reply(status, body, cause=fault.kind)

    def _reply(self, status: int, body: Mapping[str, object], *, cause: str) -> None:
        self._log(status, cause)
        reply(self.exchange, status, self.headers, body)

    def _log(self, status: int, cause: str | None) -> None:
        self.state.stats.answer(self.arrival, status, cause=cause)

    def _processing(self, latency_s: float) -> Headers:
        return self.api.manners.processing_headers(latency_s)

    def _rate_headers(self) -> Headers:
        """Of each limit the bucket that is nearest to its end, as of now."""
        buckets: dict[str, Bucket] = {}
        for quota in self.state.door.quotas(self.ask.model, now=self.state.now(), account=self.account):
            for name, bucket in quota.buckets.items():
                nearest = buckets.get(name)
                buckets[name] = bucket if nearest is None or bucket.level < nearest.level else nearest
        return self.api.manners.rate_headers(buckets, now=self.state.wall_clock())


def reply(exchange: Exchange, status: int, headers: Headers, body: Mapping[str, object] | Json) -> None:
    """A whole answer in JSON."""
    exchange.reply(status, [*headers, ("content-type", "application/json")], json.dumps(body).encode())
