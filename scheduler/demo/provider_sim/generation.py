"""One request for a completion or for embeddings, from the door to the last byte.

Decides the order of things: faults at the door, limits, the time it takes, faults on the way, the answer. The place in
flight is given back before the last byte is written, so a client that keeps to the limit never meets its own shadow.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from http import HTTPStatus
from typing import Final

from scheduler.demo.provider_sim import bodies, content
from scheduler.demo.provider_sim.asks import Ask
from scheduler.demo.provider_sim.faults import Fault, Strike
from scheduler.demo.provider_sim.http1 import Exchange
from scheduler.demo.provider_sim.limits import Refusal
from scheduler.demo.provider_sim.state import State
from scheduler.demo.provider_sim.stats import Arrival
from scheduler.demo.provider_sim.wire_formats import Headers, go_duration, retry_after_headers

CLIENT_CLOSED_REQUEST: Final = 499
FIRST_TOKEN_SHARE: Final = 0.3
STREAM_CHUNKS_MAX: Final = 16
AT_THE_DOOR: Final = frozenset({"throttle", "slow_down", "quota", "error", "overload", "reset"})


@dataclass(slots=True)
class Generation:
    """One request that was understood."""

    state: State
    ask: Ask
    exchange: Exchange
    headers: Headers
    arrival: Arrival

    async def serve(self) -> None:
        """Strike, admit, take time, answer."""
        state, ask = self.state, self.ask
        strike = state.script.strike(model=ask.model, prompt=ask.prompt, now=state.now(), chance=state.chance)
        if strike is not None:
            state.stats.faults[strike.fault.kind] += 1
            if strike.fault.kind in AT_THE_DOOR:
                self._refuse_by_fault(strike)
                return
        admission = state.door.enter(ask.model, ask.tokens_at_door, now=state.now())
        self.headers += rate_headers(state, ask.model)
        if isinstance(admission, Refusal):
            self._refuse_by_limit(admission)
            return
        state.stats.enter()
        state.stats.tokens_in += ask.input_tokens

        def leave() -> None:
            if admission.leave():
                state.stats.leave()

        try:
            await self._answer(strike.fault if strike is not None else None, leave)
        except asyncio.CancelledError:
            # The client left. A provider goes on and bills the answer all the same.
            state.stats.tokens_out += ask.output_tokens
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
        if ask.streams:
            await self._stream(latency_s, kind, leave)
            return
        await asyncio.sleep(latency_s)
        body = json.dumps(self._whole_body()).encode()
        headers = [*self.headers, ("content-type", "application/json"), self._processing(latency_s)]
        leave()
        state.stats.tokens_out += ask.output_tokens
        self._log(HTTPStatus.OK, kind)
        if kind == "cut":
            self.exchange.reply_partly(HTTPStatus.OK, headers, body, sent=len(body) // 2)
            return
        self.exchange.reply(HTTPStatus.OK, headers, b'{"id": "chatcmpl-' if kind == "malformed" else body)

    async def _stream(self, latency_s: float, kind: str | None, leave: Callable[[], None]) -> None:
        """The head at once, the first token after a part of the latency, the rest evenly over what is left."""
        events = [f"data: {json.dumps(event)}\n\n".encode() for event in self._chunks()]
        if kind in ("cut", "stream_error", "malformed"):
            events = events[: max(2, len(events) // 2)]
        pause_s = latency_s * (1 - FIRST_TOKEN_SHARE) / max(1, len(events) - 1)
        await asyncio.sleep(latency_s * FIRST_TOKEN_SHARE)
        self.exchange.start(
            HTTPStatus.OK, [*self.headers, ("content-type", "text/event-stream"), self._processing(latency_s)]
        )
        for event in events[:-1]:
            self.exchange.write(event)
            await asyncio.sleep(pause_s)
        leave()
        self._log(HTTPStatus.OK, kind)
        # However much of it arrives, the whole answer was made and is billed.
        self.state.stats.tokens_out += self.ask.output_tokens
        if kind == "cut":
            self.exchange.write(events[-1])
            self.exchange.break_off()
            return
        last = {
            "stream_error": f"data: {json.dumps(bodies.OVERLOADED_503)}\n\n".encode(),
            "malformed": b'data: {"id": "chatcmpl-\n\n',
        }.get(kind or "", b"data: [DONE]\n\n")
        self.exchange.end(events[-1] + last)

    async def _hang(self, fault: Fault) -> None:
        await asyncio.sleep(fault.for_each_s if fault.for_each_s is not None else 24 * 3600.0)
        self._log(CLIENT_CLOSED_REQUEST, fault.kind)
        self.exchange.break_off()

    def _whole_body(self) -> bodies.Json:
        ask = self.ask
        if ask.inputs is not None:
            vectors = [content.embedding(ask.model, each, ask.dimensions) for each in ask.inputs]
            return bodies.embeddings(model=ask.model, vectors=vectors, tokens=ask.input_tokens, as_base64=ask.as_base64)
        return bodies.completion(
            identity=f"chatcmpl-{self.state.next_id():012x}",
            created=int(self.state.wall_clock()),
            model=ask.model,
            text=content.answer_text(ask.model, ask.prompt, ask.output_tokens),
            finish_reason=ask.finish_reason,
            usage=bodies.usage(ask.input_tokens, ask.output_tokens),
        )

    def _chunks(self) -> list[bodies.Json]:
        ask, created = self.ask, int(self.state.wall_clock())
        identity = f"chatcmpl-{self.state.next_id():012x}"
        text = content.answer_text(ask.model, ask.prompt, ask.output_tokens)
        size = content.CHARS_PER_TOKEN * -(-ask.output_tokens // STREAM_CHUNKS_MAX)
        deltas: list[bodies.Json] = [{"role": "assistant", "content": ""}]
        deltas += [{"content": text[at : at + size]} for at in range(0, len(text), size)]
        chunks = [bodies.chunk(identity=identity, created=created, model=ask.model, delta=delta) for delta in deltas]
        chunks.append(
            bodies.chunk(identity=identity, created=created, model=ask.model, delta={}, finish_reason=ask.finish_reason)
        )
        if ask.include_usage:
            usage = bodies.usage(ask.input_tokens, ask.output_tokens)
            chunks.append(bodies.chunk(identity=identity, created=created, model=ask.model, delta=None, usage=usage))
        return chunks

    def _refuse_by_limit(self, refusal: Refusal) -> None:
        model = self.ask.model
        if refusal.cause == "too_large":
            body = bodies.too_large(model, refusal.detail)
        else:
            wait = go_duration(refusal.retry_after_s)
            body = bodies.rate_limited(model, refusal.detail, cause=refusal.cause, wait=wait)
            self.headers += retry_after_headers(refusal.retry_after_s, "both", now=self.state.wall_clock())
        self._reply(HTTPStatus.TOO_MANY_REQUESTS, body, cause=refusal.cause)

    def _refuse_by_fault(self, strike: Strike) -> None:
        fault, delay_s = strike.fault, strike.retry_after_s
        if fault.kind == "reset":
            self._log(CLIENT_CLOSED_REQUEST, fault.kind)
            self.exchange.reset()
            return
        status, body = _fault_answer(fault, delay_s, self.ask.model)
        if delay_s is not None and fault.kind != "quota":
            self.headers += retry_after_headers(delay_s, fault.retry_after_format, now=self.state.wall_clock())
        self._reply(status, body, cause=fault.kind)

    def _reply(self, status: int, body: Mapping[str, object], *, cause: str) -> None:
        self._log(status, cause)
        self.exchange.reply(status, [*self.headers, ("content-type", "application/json")], json.dumps(body).encode())

    def _log(self, status: int, cause: str | None) -> None:
        self.state.stats.answer(self.arrival, status, cause=cause)

    @staticmethod
    def _processing(latency_s: float) -> tuple[str, str]:
        return ("openai-processing-ms", str(round(latency_s * 1000)))


def rate_headers(state: State, model: str) -> Headers:
    """`x-ratelimit-*` of the quota that is nearest to its end, as of now."""
    headers: Headers = []
    quotas = state.door.quotas(model, now=state.now())
    for what in ("requests", "tokens"):
        buckets = [bucket for bucket in (getattr(quota, what) for quota in quotas) if bucket is not None]
        if buckets:
            bucket = min(buckets, key=lambda each: each.level)
            headers += [
                (f"x-ratelimit-limit-{what}", str(int(bucket.burst))),
                (f"x-ratelimit-remaining-{what}", str(max(0, int(bucket.level)))),
                (f"x-ratelimit-reset-{what}", go_duration(bucket.reset_s())),
            ]
    return headers


def _fault_answer(fault: Fault, delay_s: float | None, model: str) -> tuple[int, Mapping[str, object]]:
    too_many = int(HTTPStatus.TOO_MANY_REQUESTS)
    match fault.kind:
        case "throttle" if fault.retry_after_format == "body" and delay_s is not None:
            return fault.status or too_many, bodies.retry_info(model, delay_s)
        case "throttle":
            tells = fault.retry_after_format not in ("none", "body") and delay_s is not None
            wait = go_duration(delay_s) if tells and delay_s is not None else None
            return fault.status or too_many, bodies.rate_limited(model, "requests", cause="throttle", wait=wait)
        case "slow_down":
            return fault.status or too_many, bodies.SLOW_DOWN
        case "quota":
            return fault.status or too_many, bodies.INSUFFICIENT_QUOTA
        case "overload":
            status = fault.status or 529
            return status, bodies.OVERLOADED_503 if status == HTTPStatus.SERVICE_UNAVAILABLE else bodies.OVERLOADED_529
        case _:
            return fault.status or int(HTTPStatus.INTERNAL_SERVER_ERROR), bodies.SERVER_ERROR
