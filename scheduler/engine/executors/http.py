"""The `http` executor: one attempt is one signed POST to the pool's URL.

Decides what is posted and how each way that it can end becomes a result or an exception. It must never retry, which is
the scheduler's to do, never follow a redirect, and never let a whole answer into a message.
"""

from __future__ import annotations

import time
from contextlib import suppress
from http import HTTPStatus
from typing import Final

import httpx2 as httpx
import orjson

from scheduler.engine.executors.base import AttemptContext, ExecutionResult, Permanent, Retryable
from scheduler.engine.executors.connections import Connections
from scheduler.engine.executors.http_config import HttpConfig
from scheduler.engine.outgoing import (
    Answer,
    AnswerTooLarge,
    DestinationClosed,
    guarded_client,
    post,
    signature_headers,
)
from scheduler.policy.types import FailureClass
from scheduler.providers.delays import retry_after_s
from scheduler.providers.errors import short_message

TIMEOUT_LEAD_S: Final = 0.05

_PASSES: Final = {
    HTTPStatus.REQUEST_TIMEOUT: FailureClass.TIMEOUT,
    HTTPStatus.TOO_EARLY: FailureClass.ERROR,
    HTTPStatus.TOO_MANY_REQUESTS: FailureClass.THROTTLED,
    HTTPStatus.SERVICE_UNAVAILABLE: FailureClass.OVERLOADED,
    HTTPStatus.GATEWAY_TIMEOUT: FailureClass.TIMEOUT,
}


class HttpExecutor:
    """Makes the requests of one pool. Concurrency is the engine's: here, every request has a connection at once."""

    def __init__(self, config: HttpConfig) -> None:
        self._config = config
        self._secret = config.read_secret()
        self._client = guarded_client(Connections(proxy=None))

    async def run(self, ctx: AttemptContext, payload: object) -> ExecutionResult:
        """Post the attempt. Raises Retryable or Permanent."""
        timeout_s = self._config.timeout_s
        if ctx.timeout_s is not None:
            # A moment before the engine's own limit, so that the failure says what it waited for.
            timeout_s = min(timeout_s, ctx.timeout_s - min(TIMEOUT_LEAD_S, ctx.timeout_s / 20))
        try:
            answer = await self._post(ctx, payload, timeout_s)
        except (TimeoutError, httpx.TimeoutException) as error:
            raise Retryable(f"no whole answer within {timeout_s:g} s", None, FailureClass.TIMEOUT) from error
        except httpx.ConnectError as error:
            said = short_message(f"the endpoint cannot be reached: {error}")
            raise Retryable(said, None, FailureClass.OVERLOADED) from error
        except httpx.HTTPError as error:
            said = short_message(f"the connection broke before the answer was whole: {type(error).__name__} {error}")
            raise Retryable(said) from error
        except (DestinationClosed, AnswerTooLarge) as error:
            raise Permanent(str(error)) from error
        return _result(answer)

    async def _post(self, ctx: AttemptContext, payload: object, timeout_s: float) -> Answer:
        body = orjson.dumps(_told(ctx, payload))
        # The same over all attempts at a task: by it a receiver knows what it has done already.
        message_id = f"cronoq-task-{ctx.task_id}"
        headers = signature_headers(self._secret, body, message_id=message_id, timestamp_s=int(time.time()))
        headers |= {
            "idempotency-key": message_id,
            "cronoq-task": str(ctx.task_id),
            "cronoq-attempt": str(ctx.attempt),
            "cronoq-lease": str(ctx.lease_id),
        }
        if ctx.trace is not None:
            headers["traceparent"] = ctx.trace
        bytes_max = self._config.response_bytes_max
        return await post(
            self._client, self._config.url, body, headers, timeout_s=timeout_s, answer_bytes_max=bytes_max
        )

    async def aclose(self) -> None:
        """Close the connections; requests in flight fail."""
        await self._client.aclose()


def _told(ctx: AttemptContext, payload: object) -> dict[str, object]:
    return {
        "task": ctx.task_id,
        "attempt": ctx.attempt,
        "lease": ctx.lease_id,
        "kind": ctx.kind,
        "key": ctx.key,
        "pool": ctx.pool,
        "tenant": ctx.tenant,
        "timeout_s": ctx.timeout_s,
        "deadline": ctx.deadline,
        "degraded": ctx.degraded,
        "upstream": dict(ctx.upstream),
        "missing": list(ctx.missing),
        "payload": payload,
    }


def _result(answer: Answer) -> ExecutionResult:
    """What an answer means: 2xx with JSON is the result, an empty one means null."""
    status = answer.status
    if HTTPStatus.OK <= status < HTTPStatus.MULTIPLE_CHOICES:
        if not answer.body.strip():
            return ExecutionResult(None)
        try:
            return ExecutionResult(orjson.loads(answer.body))
        except ValueError as error:
            # The work may be done: doing it again would not make the answer JSON.
            raise Permanent(f"HTTP {status}, but the answer is not JSON: {_said(answer.body)}") from error
    message = short_message(f"HTTP {status}: {_said(answer.body)}")
    if HTTPStatus.MULTIPLE_CHOICES <= status < HTTPStatus.BAD_REQUEST:
        raise Permanent(f"HTTP {status}: redirects are not followed; give the pool the URL that answers")
    passes = next((kind for each, kind in _PASSES.items() if each == status), None)
    if passes is None and status < HTTPStatus.INTERNAL_SERVER_ERROR:
        raise Permanent(message)
    delay_s = retry_after_s(dict(answer.headers), None, now=time.time())
    raise Retryable(message, delay_s, passes or FailureClass.ERROR)


def _said(body: bytes) -> str:
    """What an answer says, as far as it fits into a message."""
    with suppress(ValueError):
        found = orjson.loads(body)
        if isinstance(found, dict):
            said = next((found[name] for name in ("message", "detail", "error", "title") if name in found), None)
            if isinstance(said, str):
                return short_message(said)
    return short_message(body[:1000].decode("utf-8", "replace"))
