"""One call of a model's API, from the gate to the end of the answer.

Decides what a refusal, a broken connection and an answer that cannot be read mean for the attempt, and what they cost.
What was sent and what came back decide; the executor only sets the time.
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from contextlib import aclosing, suppress
from dataclasses import dataclass, replace
from http import HTTPStatus
from typing import Final

import httpx2 as httpx

from scheduler.engine.executors.base import (
    AttemptContext,
    ExecutionResult,
    HandBack,
    Permanent,
    ProviderBilling,
    Retryable,
)
from scheduler.engine.executors.llm_apis import APIS, headers_for
from scheduler.engine.executors.llm_request import LlmRequest
from scheduler.engine.executors.quota_gate import PROCESS_GATES
from scheduler.engine.executors.streaming import drain, events_of
from scheduler.policy.settlement import Left
from scheduler.policy.types import FailureClass
from scheduler.providers.answers import Answer, AnswerStream
from scheduler.providers.delays import retry_after_s, until_quota_day_ends_s
from scheduler.providers.errors import ProviderErrorKind, Verdict, classify, short_message
from scheduler.providers.llm_config import LlmConfig
from scheduler.providers.ratelimits import read_rate_limits, scarce
from scheduler.providers.responses_answers import failure_of
from scheduler.providers.usage import Usage, UsageSource, cut_short

CONNECT_TIMEOUT_S: Final = 5.0
CLOSES_THE_GATE: Final = frozenset({ProviderErrorKind.THROTTLED, ProviderErrorKind.OVERLOADED})


@dataclass(frozen=True, slots=True)
class Account:
    """The connections to a provider, and the key to pay with."""

    client: httpx.AsyncClient
    key: str | None


class Call:
    """One call while it is made. `sent`: the provider may have made it, and bills it then."""

    def __init__(self, config: LlmConfig, account: Account, request: LlmRequest, ctx: AttemptContext) -> None:
        self._config = config
        self._account = account
        self._request = request
        self._ctx = ctx
        self._api = APIS[request.api]
        endpoint = request.terms.endpoint
        self._quota = (endpoint.base_url, endpoint.quota_resource or f"model {request.model}")
        self.quota_resources = () if endpoint.quota_resource is None else (endpoint.quota_resource,)
        self.sent = False
        self._sent_at = 0.0
        self._stream: AnswerStream = self._api.stream()

    async def make(self, timeout_s: float) -> ExecutionResult:
        """Gate, send, then read the answer as what its status says it is."""
        self._hold_back()
        outgoing = self._account.client.build_request(
            "POST",
            f"{self._request.terms.endpoint.base_url}{self._api.path}",
            content=self._request.body,
            headers=headers_for(self._api, key=self._account.key, anthropic_version=self._config.anthropic_version),
            timeout=httpx.Timeout(timeout_s, connect=min(CONNECT_TIMEOUT_S, timeout_s / 2)),
            extensions={"trace": self._on_transport_event},
        )
        response = await self._account.client.send(outgoing, stream=True)
        try:
            if response.status_code != HTTPStatus.OK:
                # Before the body is read: other calls on the quota may be about to be sent.
                self._heed(response, None)
                raise self._refused(response, await self._read(response))
            if self._request.streams:
                return await self._collect(response)
            return self._result(response, await self._read(response))
        finally:
            await response.aclose()

    def usage_so_far(self) -> Usage | None:
        """None before anything was sent; afterwards a floor, because the provider may have done more than we saw."""
        if not self.sent:
            return None
        stream = self._stream
        if stream.whole and stream.usage is not None:
            return self._of_model(stream.usage)
        tokens = self._request.input_tokens_estimate
        return self._of_model(cut_short(stream.usage, input_tokens=tokens, output_text=stream.produced))

    def taken(self, usage: Usage | None) -> Mapping[str, float] | None:
        """What the call took from the limits on tokens; None as long as only a floor is known."""
        tokens = self._request.terms.tokens
        if not tokens or usage is None or usage.source is UsageSource.UNKNOWN:
            return None
        return {resource: limit.actual(usage) for resource, limit in tokens.items()}

    def broken(self, error: httpx.HTTPError) -> Retryable | Permanent:
        """A failure of the connection: before the request was sent it cost nothing, afterwards nobody knows."""
        detail = self._scrubbed(str(error))
        if not self.sent:
            message = short_message(f"the provider cannot be reached: {type(error).__name__} {detail}")
            return Retryable(message, None, FailureClass.OVERLOADED)
        message = short_message(f"the connection broke before the answer was whole: {type(error).__name__} {detail}")
        return self.unfinished(message)

    def unfinished(self, message: str, failure_class: FailureClass = FailureClass.ERROR) -> Retryable | Permanent:
        """A call that was sent and whose end was not seen: it may have been made, and another would be billed again.

        Making it again is the pool's to decide; a failure before the request was sent always may be.
        """
        if self._config.retry_after_send:
            return Retryable(message, None, failure_class, usage=self.usage_so_far())
        return Permanent(f"{message}; the pool makes no call twice that may have been made", usage=self.usage_so_far())

    def _of_model(self, usage: Usage) -> Usage:
        return replace(usage, model=self._request.model)

    def _scrubbed(self, text: str) -> str:
        """What the provider said, without our key, should it repeat it."""
        return text if self._account.key is None else text.replace(self._account.key, "[redacted]")

    def _hold_back(self) -> None:
        if self._ctx.is_cancelled():
            raise HandBack("cancelled before the call was sent", 0.0)
        wait_s = PROCESS_GATES.wait_s(self._quota, now=time.monotonic())
        if wait_s > 0:
            raise HandBack(f"the provider asked for no calls for another {wait_s:.3f} s", wait_s)

    async def _on_transport_event(self, event: str, _info: Mapping[str, object]) -> None:
        """Connecting takes time, so the gate is asked again when the connection is there and nothing is sent yet."""
        if event.endswith(".send_request_headers.started"):
            self._hold_back()
            self.sent, self._sent_at = True, time.monotonic()

    async def _read(self, response: httpx.Response) -> bytes:
        pieces = bytearray()
        async for piece in response.aiter_bytes():
            pieces += piece
            self._bound(len(pieces))
        return bytes(pieces)

    def _bound(self, size: int) -> None:
        if size > self._config.response_bytes_max:
            message = f"the answer is larger than {self._config.response_bytes_max} bytes"
            raise Permanent(message, usage=self.usage_so_far())

    async def _collect(self, response: httpx.Response) -> ExecutionResult:
        """Read a stream to its end; what is wrong with it decides the exception, and what came is kept as usage."""
        stream, pieces = self._stream, response.aiter_bytes()
        async with aclosing(events_of(pieces, self._bound)) as events:
            async for event in events:
                if event is not None:
                    stream.take(self._scrubbed(event.data))
                elif self._ctx.is_cancelled():
                    raise Retryable("cancelled while the answer was streaming", usage=self.usage_so_far())
                if stream.ended or stream.error is not None:
                    break
        if stream.error is not None:
            raise self._failed_inside(response, stream.error)
        if not stream.whole:
            raise self.unfinished("the stream was cut before its end")
        await drain(pieces)
        return self._finish(response, stream.answer(), stream.usage)

    def _failed_inside(self, response: httpx.Response, error: object) -> Retryable | Permanent | ProviderBilling:
        """An error that came after the announcement of a success, and did not give back what was done until then."""
        verdict = classify(HTTPStatus.OK, response.headers, error)
        return _failure(verdict, None, usage=self.usage_so_far())

    def _result(self, response: httpx.Response, body: bytes) -> ExecutionResult:
        parsed = _json_or_text(body.decode("utf-8", "replace"))
        failure = failure_of(parsed)
        if failure is not None:
            raise self._failed_inside(response, failure)
        answer = self._api.read(parsed)
        if answer is None:
            raise self.unfinished("the answer is not what the API promises")
        return self._finish(response, answer, answer.usage)

    def _finish(self, response: httpx.Response, answer: Answer, reported: Usage | None) -> ExecutionResult:
        usage = self._unreported(answer) if reported is None else self._of_model(reported)
        value = answer.as_json(asked_model=self._request.model)
        value["usage"] = usage.as_json()
        value["provider_request_id"] = response.headers.get("x-request-id") or response.headers.get("request-id")
        return ExecutionResult(
            value=value,
            usage=usage,
            actual=self.taken(usage),
            left=self._left(response),
            quota=self.quota_resources,
        )

    def _left(self, response: httpx.Response) -> Mapping[str, Left]:
        """What the provider said is left of limits that run low. It counted when the request came to its door."""
        terms = self._request.terms
        told = read_rate_limits(dict(response.headers), now=time.time())
        found = scarce(told, requests=terms.endpoint.quota_resource, tokens=terms.tokens)
        age_s = time.monotonic() - self._sent_at
        return {name: Left(amount, age_s) for name, amount in found.items()}

    def _unreported(self, answer: Answer) -> Usage:
        """The usage of a whole answer that did not tell it."""
        more = [*answer.tool_calls, *answer.blocks]
        written = self._stream.produced or answer.text + (json.dumps(more) if more else "")
        tokens = self._request.input_tokens_estimate
        return self._of_model(cut_short(None, input_tokens=tokens, output_text=written))

    def _refused(self, response: httpx.Response, body: bytes) -> Retryable | Permanent | ProviderBilling:
        """An answer that is no success, which cost nothing."""
        verdict, delay_s = self._heed(response, _json_or_text(self._scrubbed(body.decode("utf-8", "replace"))))
        return _failure(verdict, delay_s, usage=None)

    def _heed(self, response: httpx.Response, body: object) -> tuple[Verdict, float | None]:
        """What a refusal means and the seconds it asks for, during which the gate is closed for the whole quota."""
        now = time.time()
        verdict = classify(response.status_code, response.headers, body)
        delay_s = retry_after_s(response.headers, body, now=now)
        if verdict.daily:
            delay_s = max(delay_s or 0.0, until_quota_day_ends_s(now))
        if delay_s is not None and verdict.kind in CLOSES_THE_GATE:
            PROCESS_GATES.close(self._quota, for_s=delay_s, now=time.monotonic())
        return verdict, delay_s


def _failure(
    verdict: Verdict, delay_s: float | None, *, usage: Usage | None
) -> Retryable | Permanent | ProviderBilling:
    message = verdict.message if verdict.code is None else short_message(f"{verdict.code}: {verdict.message}")
    match verdict.kind:
        case ProviderErrorKind.PERMANENT:
            return Permanent(message, usage=usage)
        case ProviderErrorKind.PROVIDER_BILLING:
            return ProviderBilling(message, usage=usage)
        case _:
            return Retryable(message, delay_s, FailureClass(verdict.kind.value), usage=usage)


def _json_or_text(body: str) -> object:
    with suppress(ValueError, RecursionError):
        return json.loads(body)
    return body
