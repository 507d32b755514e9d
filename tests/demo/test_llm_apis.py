"""The llm executor speaks every API: the same question, whole or streamed, comes to the same result and usage."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from scheduler.engine.executors.base import AttemptFailed, ExecutionResult, Permanent, ProviderBilling, Retryable
from scheduler.engine.executors.llm import LlmExecutor
from scheduler.engine.executors.llm_request import Bounds, build_request
from scheduler.policy.types import FailureClass
from scheduler.providers.llm_config import LlmConfig
from scheduler.providers.usage import Usage, UsageSource
from tests.demo.calls import (
    CHAT,
    STREAM,
    Attempt,
    failure_of,
    failure_with_canned,
    run_one,
    value_of,
    with_canned,
)
from tests.support.canned import CannedServer, answer, event_stream
from tests.support.provider import RunningProvider

MESSAGES: dict[str, object] = {**CHAT, "api": "messages", "max_tokens": 1000}
RESPONSES: dict[str, object] = {"api": "responses", "input": "Say hello."}
READS_FREE = {"itpm": {"weights": {"cache_read": 0, "output": 0}, "reserve": "none"}}
BY_API = pytest.mark.parametrize("payload", [CHAT, RESPONSES, MESSAGES], ids=["chat", "responses", "messages"])


def sent_by(payload: dict[str, object], *, attempt: Attempt | None = None, **config: Any) -> dict[str, Any]:
    """What reaches the provider, whatever it answers."""
    bodies: list[dict[str, object]] = []

    async def use(executor: LlmExecutor, canned: CannedServer) -> None:
        with pytest.raises(AttemptFailed):
            await executor.run(attempt or Attempt(), payload)
        bodies.extend(canned.bodies)

    with_canned(answer("", status=400), use, **config)
    return bodies[0]


# What comes back


@BY_API
def test_a_stream_comes_to_the_same_as_a_whole_answer(provider: RunningProvider, payload: dict[str, object]) -> None:
    whole, streamed = (run_one(provider.url, each) for each in (payload, {**payload, "stream": True}))
    assert whole.usage == streamed.usage
    assert whole.usage is not None
    assert (whole.usage.source, whole.usage.model) == (UsageSource.REPORTED, "sim-small")
    values = [value_of(each) for each in (whole, streamed)]
    assert all(value.pop("provider_request_id").startswith("req_") for value in values)
    assert values[0] == values[1]
    assert values[0]["text"].startswith("sim-small heard: Say hello.")
    stats = provider.stats()
    assert stats["by_status"] == {"200": 2}
    assert (stats["tokens_in"], stats["tokens_out"]) == (2 * whole.usage.input_total, 2 * whole.usage.output_total)


@pytest.mark.parametrize("streams", [False, True])
def test_thoughts_are_counted_apart_and_come_back_in_their_own_shape(
    provider: RunningProvider, *, streams: bool
) -> None:
    thinking = {"type": "enabled", "budget_tokens": 1024}
    result = run_one(provider.url, {**MESSAGES, "max_tokens": 4000, "thinking": thinking, "stream": streams})
    usage, value = result.usage, value_of(result)
    assert usage is not None
    assert usage.output_reasoning > 0
    assert [block["type"] for block in value["blocks"]] == ["thinking", "text"]
    assert value["blocks"][0]["signature"]
    assert provider.stats()["tokens_out"] == usage.output_total
    reasoning = run_one(provider.url, {**RESPONSES, "reasoning": {"effort": "high"}, "stream": streams}).usage
    assert reasoning is not None
    assert reasoning.output_reasoning == reasoning.output_visible


@pytest.mark.parametrize("streams", [False, True])
def test_cached_input_is_counted_apart(provider: RunningProvider, *, streams: bool) -> None:
    block = {"type": "text", "text": "a" * 4000, "cache_control": {"type": "ephemeral", "ttl": "1h"}}
    payload = {**MESSAGES, "system": [block], "stream": streams}
    first, second = (run_one(provider.url, payload, tokens=READS_FREE) for _ in range(2))
    assert first.usage is not None
    assert second.usage is not None
    assert (first.usage.cache_write_1h, first.usage.cache_read) == (1000, 0)
    assert (second.usage.cache_write_1h, second.usage.cache_read) == (0, 1000)
    assert first.usage.input_total == second.usage.input_total
    assert first.actual == {"itpm": first.usage.input_total}
    assert second.actual == {"itpm": second.usage.input_uncached}


def test_the_tier_that_served_comes_with_the_usage(provider: RunningProvider) -> None:
    tiers = [
        usage.service_tier
        for payload in ({**CHAT, "service_tier": "flex"}, {**STREAM, "service_tier": "flex"}, RESPONSES, MESSAGES)
        if (usage := run_one(provider.url, payload).usage) is not None
    ]
    assert tiers == ["flex", "flex", "default", "standard"]


def test_calls_of_tools_have_one_shape() -> None:
    called = {"id": "t1", "type": "function", "function": {"name": "look", "arguments": '{"at": 1}'}}
    usage = {"input_tokens": 3, "output_tokens": 2}
    block = {"type": "tool_use", "id": "t1", "name": "look", "input": {"at": 1}}
    item = {"type": "function_call", "call_id": "t1", "name": "look", "arguments": '{"at": 1}'}
    message = {"type": "message", "model": "m", "content": [block], "stop_reason": "tool_use", "usage": usage}
    response = {"status": "completed", "output": [item], "usage": usage}
    streamed = [
        {"type": "message_start", "message": {**message, "content": []}},
        {"type": "content_block_start", "index": 0, "content_block": {**block, "input": {}}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "input_json_delta", "partial_json": '{"at"'}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "input_json_delta", "partial_json": ": 1}"}},
        {"type": "message_delta", "delta": {"stop_reason": "tool_use"}, "usage": usage},
        {"type": "message_stop"},
    ]
    for reply, payload in (
        (answer(message), MESSAGES),
        (event_stream(*streamed), {**MESSAGES, "stream": True}),
        (answer(response), RESPONSES),
        (event_stream({"type": "response.completed", "response": response}), {**RESPONSES, "stream": True}),
    ):

        async def use(executor: LlmExecutor, _canned: CannedServer, payload: object = payload) -> None:
            result = await executor.run(Attempt(), payload)
            assert value_of(result)["tool_calls"] == [called]
            assert len(value_of(result)["blocks"]) == 1
            assert result.usage == Usage(input_uncached=3, output_visible=2, model="m")

        with_canned(reply, use)


@BY_API
@pytest.mark.parametrize("streams", [False, True])
def test_an_answer_without_usage_is_estimated(
    provider: RunningProvider, payload: dict[str, object], *, streams: bool
) -> None:
    provider.set_faults([{"kind": "no_usage"}])
    usage = run_one(provider.url, {**payload, "stream": streams}).usage
    assert usage is not None
    assert usage.source is UsageSource.ESTIMATED
    assert usage.output_visible == provider.stats()["tokens_out"]


# What goes wrong


@BY_API
def test_a_cut_stream_costs_its_input_and_what_came(provider: RunningProvider, payload: dict[str, object]) -> None:
    provider.set_faults([{"kind": "cut"}])
    failure = failure_of(provider.url, {**payload, "stream": True}, tokens={"tpm": {}}, quota_resource="rpm")
    assert isinstance(failure, Retryable)
    assert failure.usage is not None
    assert failure.usage.source is UsageSource.ESTIMATED
    assert failure.usage.input_total > 0
    assert 0 < failure.usage.output_visible < provider.stats()["tokens_out"]
    assert failure.actual == {"tpm": failure.usage.total}
    assert failure.quota == ("rpm",)


@BY_API
def test_an_error_event_after_a_success_has_the_class_of_its_code(
    provider: RunningProvider, payload: dict[str, object]
) -> None:
    provider.set_faults([{"kind": "stream_error"}])
    failure = failure_of(provider.url, {**payload, "stream": True})
    assert isinstance(failure, Retryable)
    assert failure.failure_class is FailureClass.OVERLOADED
    assert failure.usage is not None
    assert failure.usage.output_visible > 0


def test_a_response_that_failed_is_no_success() -> None:
    failed = {"status": "failed", "error": {"code": "rate_limit_exceeded", "message": "Slow down."}, "output": []}
    for reply, payload in (
        (answer(failed), RESPONSES),
        (event_stream({"type": "response.failed", "response": failed}), {**RESPONSES, "stream": True}),
    ):
        failure = failure_with_canned(reply, payload)
        assert isinstance(failure, Retryable)
        assert failure.failure_class is FailureClass.THROTTLED


@pytest.mark.parametrize(
    ("fault", "kind", "failure_class"),
    [
        ({"kind": "throttle", "retry_after_s": 0.0}, Retryable, FailureClass.THROTTLED),
        ({"kind": "slow_down"}, Retryable, FailureClass.THROTTLED),
        ({"kind": "overload"}, Retryable, FailureClass.OVERLOADED),
        ({"kind": "error"}, Retryable, FailureClass.OVERLOADED),
        ({"kind": "error", "status": 504}, Retryable, FailureClass.TIMEOUT),
        ({"kind": "error", "status": 413}, Permanent, None),
        ({"kind": "quota"}, ProviderBilling, None),
        ({"kind": "quota", "status": 400}, ProviderBilling, None),
        ({"kind": "quota", "status": 429}, ProviderBilling, None),
    ],
)
def test_a_refusal_of_the_messages_api_costs_nothing_and_names_its_class(
    provider: RunningProvider, fault: dict[str, object], kind: type[AttemptFailed], failure_class: FailureClass | None
) -> None:
    provider.set_faults([fault])
    failure = failure_of(provider.url, MESSAGES, quota_resource="anthropic", tokens={"itpm": {}})
    assert type(failure) is kind
    assert (failure.usage, failure.actual, failure.quota) == (None, None, ("anthropic",))
    assert getattr(failure, "failure_class", None) is failure_class
    assert provider.stats()["requests"] == 1


@pytest.mark.parametrize("code", ["insufficient_quota", "credit_balance_exhausted", "project_spend_limit_exceeded"])
def test_an_account_without_money_is_never_asked_again(provider: RunningProvider, code: str) -> None:
    provider.set_faults([{"kind": "quota", "code": code, "retry_after_s": 1.0}])
    failure = failure_of(provider.url, CHAT)
    assert isinstance(failure, ProviderBilling)
    assert failure.message.startswith(code)
    assert provider.stats()["requests"] == 1


@pytest.mark.parametrize("fault", [{"kind": "hang"}, {"kind": "reset"}, {"kind": "cut"}])
@pytest.mark.parametrize("payload", [CHAT, STREAM], ids=["whole", "streamed"])
def test_a_call_that_may_have_been_made_is_not_made_twice_where_the_pool_says_so(
    provider: RunningProvider, fault: dict[str, object], payload: object
) -> None:
    provider.set_faults([fault])
    failure = failure_of(provider.url, payload, retry_after_send=False, timeout_s=0.3)
    assert isinstance(failure, Permanent)
    assert failure.usage is not None


@pytest.mark.parametrize("fault", [{"kind": "throttle"}, {"kind": "overload"}])
def test_a_refusal_may_be_repeated_all_the_same(provider: RunningProvider, fault: dict[str, object]) -> None:
    provider.set_faults([fault])
    assert isinstance(failure_of(provider.url, CHAT, retry_after_send=False), Retryable)


def test_a_spent_day_holds_the_quota_back_until_it_ends() -> None:
    details = [{"violations": [{"quotaId": "GenerateRequestsPerDayPerProject"}]}, {"retryDelay": "18s"}]
    error = {"error": {"code": 429, "status": "RESOURCE_EXHAUSTED", "message": "Quota.", "details": details}}
    failure = failure_with_canned(answer(error, status=429), CHAT, quota_resource="a-spent-day")
    assert isinstance(failure, Retryable)
    assert failure.retry_after is not None
    assert 18.0 <= failure.retry_after <= 25 * 3600


def test_a_call_that_was_stopped_tells_what_it_has_cost(provider: RunningProvider) -> None:
    provider.set_faults([{"kind": "slow", "extra_s": 30.0}])
    attempt = Attempt()

    async def use() -> None:
        executor = LlmExecutor(LlmConfig.parse({"base_url": provider.url, "model": "sim-small"}))
        task = asyncio.create_task(executor.run(attempt, MESSAGES))
        while not (await asyncio.to_thread(provider.stats))["in_flight"]:
            pass
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await executor.aclose()

    asyncio.run(use())
    assert attempt.usage_so_far is not None
    usage = attempt.usage_so_far()
    assert usage is not None
    assert (usage.source, usage.model) == (UsageSource.UNKNOWN, "sim-small")
    assert usage.input_total > 0


# What is sent


@pytest.mark.parametrize(
    ("payload", "config", "path", "header"),
    [
        (CHAT, {}, "/v1/chat/completions", "authorization: bearer secret"),
        (CHAT, {"api": "messages"}, "/v1/messages", "x-api-key: secret"),
        ({**CHAT, "api": "chat"}, {"api": "messages"}, "/v1/chat/completions", "authorization: bearer secret"),
        ({"input": "x"}, {}, "/v1/embeddings", "authorization: bearer secret"),
        ({"input": "x", "instructions": "y"}, {}, "/v1/responses", "authorization: bearer secret"),
        ({"input": "x"}, {"api": "responses"}, "/v1/responses", "authorization: bearer secret"),
        ({"input": "x"}, {"models": {"m": {"api": "responses"}}}, "/v1/responses", "authorization: bearer secret"),
        (MESSAGES, {"anthropic_version": "2099-01-01"}, "/v1/messages", "anthropic-version: 2099-01-01"),
    ],
)
def test_payload_pool_and_shape_decide_the_api(
    monkeypatch: pytest.MonkeyPatch, payload: object, config: dict[str, Any], path: str, header: str
) -> None:
    monkeypatch.setenv("CANNED_KEY", "secret")
    heads: list[str] = []

    async def use(executor: LlmExecutor, canned: CannedServer) -> None:
        with pytest.raises(AttemptFailed):
            await executor.run(Attempt(), payload)
        heads.extend(canned.heads)
        assert "api" not in canned.bodies[0]

    with_canned(answer("", status=400), use, api_key_env="CANNED_KEY", **config)
    assert heads[0].startswith(f"POST {path} ")
    assert header in heads[0].lower()


@pytest.mark.parametrize(
    ("payload", "config"),
    [
        ({**CHAT, "api": "completions"}, {}),
        ({"input": "x"}, {"api": "chat"}),
        (CHAT, {"api": "responses"}),
        ({**RESPONSES, "messages": []}, {}),
    ],
)
def test_what_is_no_call_of_the_api_is_permanent(
    provider: RunningProvider, payload: dict[str, object], config: dict[str, object]
) -> None:
    assert isinstance(failure_of(provider.url, payload, **config), Permanent)
    assert provider.stats()["requests"] == 0


@pytest.mark.parametrize(
    ("payload", "config", "field", "most"),
    [
        (CHAT, {"max_output_tokens": 50}, "max_tokens", 50),
        ({**CHAT, "max_tokens": 80}, {"max_output_tokens": 50}, "max_tokens", 50),
        ({**CHAT, "max_completion_tokens": 20}, {"max_output_tokens": 50}, "max_completion_tokens", 20),
        (RESPONSES, {"models": {"m": {"max_output_tokens": 50}}}, "max_output_tokens", 50),
        ({**CHAT, "api": "messages"}, {"max_output_tokens": 50}, "max_tokens", 50),
        ({**CHAT, "api": "messages"}, {}, "max_tokens", 4096),
        ({**MESSAGES, "max_tokens": 10}, {}, "max_tokens", 10),
    ],
)
def test_no_call_may_write_more_than_its_bounds(
    payload: dict[str, object], config: dict[str, Any], field: str, most: int
) -> None:
    sent = sent_by(payload, **config)
    names = ("max_tokens", "max_completion_tokens", "max_output_tokens")
    assert {name: sent[name] for name in names if name in sent} == {field: most}


@pytest.mark.parametrize(
    ("base_url", "field"),
    [
        ("https://api.openai.com/v1", "max_completion_tokens"),
        ("https://acme.openai.azure.com/openai/v1", "max_completion_tokens"),
        ("https://compatible.example.com/v1", "max_tokens"),
    ],
)
def test_a_bound_is_told_under_the_name_that_the_provider_heeds(base_url: str, field: str) -> None:
    config = LlmConfig.parse({"base_url": base_url, "model": "m", "max_output_tokens": 7})
    assert json.loads(build_request(config, CHAT, Bounds()).body)[field] == 7
    smaller = json.loads(build_request(config, CHAT, Bounds(output_tokens=3)).body)
    assert smaller[field] == 3
    both = {**CHAT, "max_tokens": 9, "max_completion_tokens": 8}
    assert {json.loads(build_request(config, both, Bounds()).body)[name] for name in ("max_tokens", field)} == {7}


def test_embeddings_and_chats_without_a_bound_get_none() -> None:
    assert set(sent_by({"input": "x"}, max_output_tokens=5)) == {"input", "model"}
    assert set(sent_by(CHAT)) == {"messages", "model"}


@pytest.mark.parametrize(("most", "thinking"), [(3000, 2999), (1025, 1024), (1024, None)])
def test_thinking_stays_below_a_bound_that_was_lowered(most: int, thinking: int | None) -> None:
    payload = {**MESSAGES, "max_tokens": 9000, "thinking": {"type": "enabled", "budget_tokens": 4000}}
    sent = sent_by(payload, max_output_tokens=most)
    assert sent["max_tokens"] == most
    assert sent.get("thinking") == (None if thinking is None else {"type": "enabled", "budget_tokens": thinking})


def test_a_degraded_attempt_answers_shortly_and_uses_no_tools() -> None:
    degraded = Attempt(degraded=True)
    tools = {"tools": [{"name": "look"}], "tool_choice": {"type": "any"}}
    sent = sent_by({**MESSAGES, **tools}, attempt=degraded, degraded_max_output_tokens=30)
    assert (sent["max_tokens"], set(sent)) == (30, {"messages", "max_tokens", "model"})
    used = [*CHAT["messages"], {"role": "assistant", "content": [{"type": "tool_use"}]}]  # type: ignore[misc]  # a list
    sent = sent_by({**MESSAGES, **tools, "messages": used}, attempt=degraded)
    # The API refuses a conversation in which tools were used and of which it knows none.
    assert (sent["tools"], sent["tool_choice"]) == (tools["tools"], {"type": "none"})


def test_models_of_one_pool_may_live_in_several_places(
    provider: RunningProvider, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("POOL_KEY", "secret")
    reply = answer({"type": "message", "content": [{"type": "text", "text": "far"}], "stop_reason": "end_turn"})

    async def use(executor: LlmExecutor, canned: CannedServer) -> None:
        far: ExecutionResult = await executor.run(Attempt(), {**CHAT, "model": "far"})
        assert (value_of(far)["text"], far.quota) == ("far", ("q-far",))
        assert "secret" not in canned.heads[0]
        near = await executor.run(Attempt(), {**CHAT, "model": "sim-small"})
        assert (value_of(near)["model"], near.quota) == ("sim-small", ("q-near",))

    near = {"base_url": provider.url, "quota_resource": "q-near", "api": "chat", "api_key_env": "POOL_KEY"}
    with_canned(reply, use, api="messages", quota_resource="q-far", models={"sim-small": near})
