"""The `llm` executor: one attempt is one call of a model's API.

Decides how each way that a call can end becomes a result or an exception. It must never retry: the scheduler owns
retries, and a hidden one would be a second bill. It must never send a call that the provider has asked not to receive
yet, never forget what a call that was sent may cost, and never let a credential or a whole answer into a message.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Final

import httpx2 as httpx

from scheduler.engine.executors.base import AttemptContext, AttemptFailed, ExecutionResult, Retryable
from scheduler.engine.executors.connections import Connections
from scheduler.engine.executors.llm_call import Account, Call
from scheduler.engine.executors.llm_key import read_api_key
from scheduler.engine.executors.llm_request import Bounds, build_request
from scheduler.policy.types import FailureClass
from scheduler.providers.llm_config import Endpoint, LlmConfig

TIMEOUT_LEAD_S: Final = 0.05


class LlmExecutor:
    """Makes the calls of one pool. Concurrency is the engine's: here, every call has a connection at once."""

    def __init__(self, config: LlmConfig) -> None:
        self._config = config
        endpoints = {config.endpoint, *(terms.endpoint for terms in config.models.values())}
        self._clients = {
            url: httpx.AsyncClient(transport=Connections(proxy=config.proxy), follow_redirects=False, trust_env=False)
            for url in {endpoint.base_url for endpoint in endpoints}
        }
        self._accounts: Mapping[Endpoint, Account] = {
            endpoint: Account(self._clients[endpoint.base_url], read_api_key(endpoint)) for endpoint in endpoints
        }

    async def run(self, ctx: AttemptContext, payload: object) -> ExecutionResult:
        """Make the call. Raises Retryable, Permanent, ProviderBilling, or HandBack when nothing was sent."""
        request = build_request(self._config, payload, self._bounds(ctx))
        call = Call(self._config, self._accounts[request.terms.endpoint], request, ctx)
        ctx.bill(call.usage_so_far)
        timeout_s = self._config.timeout_s
        if ctx.timeout_s is not None:
            # A moment before the engine's own limit, so that the failure can still tell what the call has cost.
            timeout_s = min(timeout_s, ctx.timeout_s - min(TIMEOUT_LEAD_S, ctx.timeout_s / 20))
        try:
            return await self._make(call, timeout_s)
        except AttemptFailed as failure:
            failure.actual = call.taken(failure.usage)
            failure.quota = call.quota_resources
            raise

    def _bounds(self, ctx: AttemptContext) -> Bounds:
        short = self._config.degraded_max_output_tokens if ctx.degraded else None
        known = [n for n in (short, ctx.max_output_tokens) if n is not None]
        return Bounds(output_tokens=min(known, default=None), answer_only=ctx.degraded)

    async def _make(self, call: Call, timeout_s: float) -> ExecutionResult:
        try:
            async with asyncio.timeout(timeout_s):
                return await call.make(timeout_s)
        except (TimeoutError, httpx.TimeoutException) as error:
            message = f"no whole answer within {timeout_s:g} s"
            if not call.sent:
                raise Retryable(message, None, FailureClass.TIMEOUT) from error
            raise call.unfinished(message, FailureClass.TIMEOUT) from error
        except httpx.HTTPError as error:
            raise call.broken(error) from error

    async def aclose(self) -> None:
        """Close the connections; calls in flight fail."""
        for client in self._clients.values():
            await client.aclose()
