"""The `llm` executor: one attempt is one call of an OpenAI-compatible API.

Decides how a payload becomes a request and how each way that the call can end becomes a result or an exception. It must
never retry: the scheduler owns retries, and a hidden one would be a second bill. It must never send a call that the
provider has asked not to receive yet, and never let a credential or a whole answer into a message.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Mapping
from contextlib import suppress
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
from scheduler.engine.executors.connections import Connections
from scheduler.engine.executors.llm_config import LlmConfig
from scheduler.engine.executors.llm_request import LlmRequest, build_request
from scheduler.engine.executors.llm_result import chat_result, embeddings_result, stream_result
from scheduler.engine.executors.quota_gate import PROCESS_GATES
from scheduler.policy.types import FailureClass
from scheduler.providers.chat_stream import ChatStream
from scheduler.providers.delays import retry_after_s
from scheduler.providers.errors import ProviderErrorKind, Verdict, classify, short_message
from scheduler.providers.ratelimits import read_rate_limits
from scheduler.providers.sse import EventDecoder
from scheduler.providers.usage import Usage, UsageSource, estimated

CONNECT_TIMEOUT_S: Final = 5.0
DRAIN_TIMEOUT_S: Final = 1.0
TIMEOUT_LEAD_S: Final = 0.05
CLOSES_THE_GATE: Final = frozenset({ProviderErrorKind.THROTTLED, ProviderErrorKind.OVERLOADED})


class LlmExecutor:
    """Makes the calls of one pool. Concurrency is the engine's: here, every call has a connection at once."""

    def __init__(self, config: LlmConfig) -> None:
        self._config = config
        self._api_key = config.read_api_key()
        self._client = httpx.AsyncClient(
            headers={} if self._api_key is None else {"authorization": f"Bearer {self._api_key}"},
            transport=Connections(proxy=config.proxy),
            follow_redirects=False,
            trust_env=False,
        )

    async def run(self, ctx: AttemptContext, payload: object) -> ExecutionResult:
        """Make the call. Raises Retryable, Permanent, ProviderBilling, or HandBack when nothing was sent."""
        request = build_request(
            self._config, payload, answer_only=ctx.degraded, max_output_tokens=ctx.max_output_tokens
        )
        call = _Call(self._config, self._client, request, ctx, secret=self._api_key)
        timeout_s = self._config.timeout_s
        if ctx.timeout_s is not None:
            # A moment before the engine's own limit, so that the failure can still tell what the call has cost.
            timeout_s = min(timeout_s, ctx.timeout_s - min(TIMEOUT_LEAD_S, ctx.timeout_s / 20))
        try:
            async with asyncio.timeout(timeout_s):
                return await call.make(timeout_s)
        except (TimeoutError, httpx.TimeoutException) as error:
            message = f"no whole answer within {timeout_s:g} s"
            raise Retryable(message, None, FailureClass.TIMEOUT, usage=call.usage_so_far()) from error
        except httpx.HTTPError as error:
            raise call.broken(error) from error

    async def aclose(self) -> None:
        """Close the connections; calls in flight fail."""
        await self._client.aclose()


class _Call:
    """One call while it is made: what was sent and what came back decide how a failure is told."""

    def __init__(
        self,
        config: LlmConfig,
        client: httpx.AsyncClient,
        request: LlmRequest,
        ctx: AttemptContext,
        *,
        secret: str | None,
    ) -> None:
        self._config = config
        self._secret = secret
        self._client = client
        self._request = request
        self._ctx = ctx
        self._quota = (config.base_url, config.quota_resource or f"model {request.model}")
        self._sent = False
        self._stream = ChatStream()

    async def make(self, timeout_s: float) -> ExecutionResult:
        """Gate, send, then read the answer as what its status says it is."""
        self._hold_back()
        outgoing = self._client.build_request(
            "POST",
            f"{self._config.base_url}{self._request.path}",
            content=self._request.body,
            headers={"content-type": "application/json"},
            timeout=httpx.Timeout(timeout_s, connect=min(CONNECT_TIMEOUT_S, timeout_s / 2)),
            extensions={"trace": self._on_transport_event},
        )
        response = await self._client.send(outgoing, stream=True)
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
        if not self._sent:
            return None
        return self._stream.usage or estimated(
            input_tokens=self._request.input_tokens_estimate,
            output_text=self._stream.text,
            source=UsageSource.ESTIMATED if self._stream.text else UsageSource.UNKNOWN,
        )

    def broken(self, error: httpx.HTTPError) -> Retryable:
        """A failure of the connection: before the request was sent it cost nothing, afterwards nobody knows."""
        detail = self._scrubbed(str(error))
        if not self._sent:
            message = short_message(f"the provider cannot be reached: {type(error).__name__} {detail}")
            return Retryable(message, None, FailureClass.OVERLOADED)
        message = short_message(f"the connection broke before the answer was whole: {type(error).__name__} {detail}")
        return Retryable(message, usage=self.usage_so_far())

    def _scrubbed(self, text: str) -> str:
        """What the provider said, without our key, should it repeat it."""
        return text if self._secret is None else text.replace(self._secret, "[redacted]")

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
            self._sent = True

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
        decoder, size, pieces = EventDecoder(), 0, response.aiter_bytes()
        async for piece in pieces:
            size += len(piece)
            self._bound(size)
            for event in decoder.feed(piece):
                self._stream.take(self._scrubbed(event.data))
            if self._stream.ended or self._stream.error is not None:
                break
            if self._ctx.is_cancelled():
                raise Retryable("cancelled while the answer was streaming", usage=self.usage_so_far())
        if self._stream.error is not None:
            verdict = classify(HTTPStatus.OK, response.headers, self._stream.error)
            raise _failure(verdict, None, usage=self.usage_so_far())
        if not self._stream.whole:
            raise Retryable("the stream was cut before its end", usage=self.usage_so_far())
        with suppress(TimeoutError, httpx.HTTPError):
            # The answer is whole; what is left is the end of the body, after which the connection can be used again.
            async with asyncio.timeout(DRAIN_TIMEOUT_S):
                await anext(pieces, None)
        usage = self._stream.usage or self.usage_so_far()
        return self._finish(response, stream_result(self._stream, self._request), usage)

    def _result(self, response: httpx.Response, body: bytes) -> ExecutionResult:
        shape = embeddings_result if self._request.embeds else chat_result
        parsed = shape(_json_or_text(body.decode("utf-8", "replace")), self._request)
        if parsed is None:
            raise Retryable("the answer is not what the API promises", usage=self.usage_so_far())
        value, usage = parsed
        return self._finish(response, value, usage or self.usage_so_far())

    def _finish(self, response: httpx.Response, value: dict[str, object], usage: Usage | None) -> ExecutionResult:
        value["usage"] = None if usage is None else usage.as_json()
        value["provider_request_id"] = response.headers.get("x-request-id")
        tokens_resource = self._config.tokens_resource
        return ExecutionResult(
            value=value,
            usage=usage,
            actual=None if tokens_resource is None or usage is None else {tokens_resource: float(usage.total)},
            rate_limits=read_rate_limits(dict(response.headers), now=time.time()),
        )

    def _refused(self, response: httpx.Response, body: bytes) -> Retryable | Permanent | ProviderBilling:
        """An answer that is no success, which cost nothing."""
        verdict, delay_s = self._heed(response, _json_or_text(self._scrubbed(body.decode("utf-8", "replace"))))
        return _failure(verdict, delay_s, usage=None)

    def _heed(self, response: httpx.Response, body: object) -> tuple[Verdict, float | None]:
        """What a refusal means and the seconds it asks for, during which the gate is closed for the whole quota."""
        verdict = classify(response.status_code, response.headers, body)
        delay_s = retry_after_s(response.headers, body, now=time.time())
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
