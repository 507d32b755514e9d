"""Calls of the executor, as tests make them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass, field
from typing import Any

import pytest

from scheduler.engine.executors.base import (
    AttemptContext,
    AttemptFailed,
    ExecutionResult,
)
from scheduler.engine.executors.llm import LlmExecutor
from scheduler.providers.llm_config import LlmConfig
from scheduler.providers.usage import Usage
from tests.support.canned import CannedServer, canned_server

CHAT: dict[str, object] = {"messages": [{"role": "user", "content": "Say hello."}]}
STREAM: dict[str, object] = {**CHAT, "stream": True}


@dataclass
class Attempt:
    """An attempt to run; `on_ask` is called whenever the executor asks whether it is cancelled."""

    timeout_s: float | None = None
    degraded: bool = False
    max_output_tokens: int | None = None
    on_ask: Callable[[], bool] = field(default=lambda: False)
    task_id: int = 1
    lease_id: int = 1
    attempt: int = 1
    kind: str = "chat"
    key: str | None = None
    pool: str = "llm"
    tenant: str = "acme"
    deadline: float | None = None
    trace: str | None = None
    upstream: Mapping[str, Mapping[str, object]] = field(default_factory=dict)
    missing: tuple[str, ...] = ()
    usage_so_far: Callable[[], Usage | None] | None = None

    def bill(self, usage_so_far: Callable[[], Usage | None]) -> None:
        self.usage_so_far = usage_so_far

    def is_cancelled(self) -> bool:
        return self.on_ask()


def run(
    url: str, *payloads: object, attempt: AttemptContext | None = None, **config: object
) -> list[ExecutionResult | BaseException]:
    """Run the payloads one after the other on one executor; failures are returned, not raised."""

    async def all_of_them() -> list[ExecutionResult | BaseException]:
        executor = LlmExecutor(LlmConfig.parse({"base_url": url, "model": "sim-small", **config}))
        results: list[ExecutionResult | BaseException] = []
        for payload in payloads:
            results += await asyncio.gather(executor.run(attempt or Attempt(), payload), return_exceptions=True)
        await executor.aclose()
        return results

    return asyncio.run(all_of_them())


def run_one(url: str, payload: object, **options: Any) -> ExecutionResult:
    (result,) = run(url, payload, **options)
    if isinstance(result, BaseException):
        raise result
    return result


def failure_of(url: str, payload: object, **options: Any) -> AttemptFailed:
    (result,) = run(url, payload, **options)
    assert isinstance(result, AttemptFailed), result
    return result


def with_canned(
    reply: bytes,
    use: Callable[[LlmExecutor, CannedServer], Coroutine[Any, Any, None]],
    *,
    then_close: bool = False,
    **config: object,
) -> None:
    async def inside() -> None:
        async with canned_server(reply, then_close=then_close) as canned:
            executor = LlmExecutor(LlmConfig.parse({"base_url": canned.url, "model": "m", **config}))
            try:
                await use(executor, canned)
            finally:
                await executor.aclose()

    asyncio.run(inside())


def failure_with_canned(reply: bytes, payload: object, *, then_close: bool = False, **config: object) -> AttemptFailed:
    failures: list[AttemptFailed] = []

    async def use(executor: LlmExecutor, _canned: CannedServer) -> None:
        with pytest.raises(AttemptFailed) as caught:
            await executor.run(Attempt(timeout_s=5.0), payload)
        failures.append(caught.value)

    with_canned(reply, use, then_close=then_close, **config)
    return failures[0]


def value_of(result: ExecutionResult) -> dict[str, Any]:
    assert isinstance(result.value, dict)
    return result.value
