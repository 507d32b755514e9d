"""What the executor makes of answers that no well-behaved provider gives, and of connections."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from scheduler.engine.executors.base import (
    Permanent,
    Retryable,
)
from scheduler.engine.executors.llm import LlmExecutor
from scheduler.providers.usage import Usage, UsageSource
from tests.demo.calls import CHAT, STREAM, Attempt, failure_with_canned, value_of, with_canned
from tests.support.canned import CannedServer, answer, event_stream

# Answers that no well-behaved provider gives


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"<html>",
        b"null",
        b"[]",
        b'{"choices": []}',
        b'{"choices": [{}]}',
        b'{"choices": [{"message": 1}]}',
        b"[" * 9999,
    ],
)
def test_an_answer_of_another_shape_is_no_empty_result(body: bytes) -> None:
    failure = failure_with_canned(answer(body), CHAT)
    assert isinstance(failure, Retryable)
    assert failure.usage is not None


@pytest.mark.parametrize("body", [{"data": []}, {"data": [{}]}, {"data": "x"}, {"data": [1]}])
def test_embeddings_of_another_shape_are_no_empty_result(body: object) -> None:
    assert isinstance(failure_with_canned(answer(body), {"input": "x"}), Retryable)


@pytest.mark.parametrize("reply", [answer("x" * 5000), answer("x" * 5000, status=500), event_stream("x" * 5000)])
def test_an_answer_that_is_too_large_is_not_read_to_its_end(reply: bytes) -> None:
    failure = failure_with_canned(reply, STREAM if b"event-stream" in reply else CHAT, response_bytes_max=1000)
    assert isinstance(failure, Permanent)
    assert "1000 bytes" in failure.message


def test_a_redirect_is_not_followed() -> None:
    failure = failure_with_canned(answer("", status=302, headers="location: http://127.0.0.1:9/\r\n"), CHAT)
    assert isinstance(failure, Permanent)


def test_bytes_that_are_no_http_are_an_error() -> None:
    assert isinstance(failure_with_canned(b"hello\r\n\r\n", CHAT, then_close=True), Retryable)


@pytest.mark.parametrize("payload", [CHAT, STREAM], ids=["whole", "streamed"])
def test_a_provider_that_repeats_the_key_does_not_get_it_into_a_message(
    monkeypatch: pytest.MonkeyPatch, payload: object
) -> None:
    key = "correct-horse-battery"
    monkeypatch.setenv("CANNED_KEY", key)
    error = {"error": {"message": f"{'x' * 170} no such key {key}", "type": "invalid_request_error"}}
    reply = event_stream(error) if payload is STREAM else answer(error, status=401)
    failure = failure_with_canned(reply, payload, api_key_env="CANNED_KEY")
    assert key[:8] not in failure.message


def test_the_key_is_sent_and_the_payload_is_what_was_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CANNED_KEY", "secret")
    reply = answer({"choices": [{"message": {"content": "Hi", "refusal": "No."}, "finish_reason": "stop"}]})

    async def use(executor: LlmExecutor, canned: CannedServer) -> None:
        result = await executor.run(Attempt(), {**CHAT, "temperature": 0.5, "tools": [{"type": "function"}]})
        assert value_of(result)["text"] == "Hi"
        assert value_of(result)["refusal"] == "No."
        assert result.usage is not None
        assert (result.usage.source, result.usage.output_visible) == (UsageSource.ESTIMATED, 1)
        assert "authorization: bearer secret" in canned.heads[0].lower()
        assert canned.heads[0].startswith("POST /v1/chat/completions ")
        assert canned.bodies[0] == {**CHAT, "model": "m", "temperature": 0.5, "tools": [{"type": "function"}]}

    with_canned(reply, use, api_key_env="CANNED_KEY")


def test_a_degraded_attempt_only_answers() -> None:
    reply = answer({"choices": [{"message": {"content": "Hi"}}]})

    async def use(executor: LlmExecutor, canned: CannedServer) -> None:
        await executor.run(Attempt(degraded=True), {**CHAT, "tools": [{}], "tool_choice": "auto"})
        assert set(canned.bodies[0]) == {"messages", "model"}

    with_canned(reply, use)


def test_tool_calls_come_back_whole_or_streamed_in_one_shape() -> None:
    call = {"id": "a", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    whole = answer({"choices": [{"message": {"content": None, "tool_calls": [call]}, "finish_reason": "tool_calls"}]})
    streamed = event_stream(
        {"choices": [{"index": 0, "delta": {"tool_calls": [{"index": 0, **call}]}}]},
        {"choices": [{"index": 0, "delta": {}, "finish_reason": "tool_calls"}]},
    )
    values: list[dict[str, Any]] = []
    for reply, payload in ((whole, CHAT), (streamed, STREAM)):

        async def use(executor: LlmExecutor, _canned: CannedServer, payload: object = payload) -> None:
            values.append(value_of(await executor.run(Attempt(), payload)))

        with_canned(reply, use)
    assert values[0]["tool_calls"] == values[1]["tool_calls"] == [call]
    assert values[0]["text"] == values[1]["text"] == ""


def test_a_stream_always_asks_for_its_usage_and_leaves_the_connection_usable() -> None:
    usage = {"choices": [], "usage": {"prompt_tokens": 3, "completion_tokens": 1}}
    reply = event_stream({"choices": [{"index": 0, "delta": {"content": "Hi"}}]}, usage, "[DONE]")

    async def use(executor: LlmExecutor, canned: CannedServer) -> None:
        for _ in range(3):
            result = await executor.run(Attempt(), {**STREAM, "stream_options": {"include_obfuscation": False}})
            assert result.usage == Usage(input_uncached=3, output_visible=1, model="m")
        assert canned.bodies[0]["stream_options"] == {"include_obfuscation": False, "include_usage": True}
        assert canned.connections == 1

    with_canned(reply, use)


def test_a_connection_for_each_call_in_flight_and_no_more() -> None:
    reply = answer({"choices": [{"message": {"content": "Hi"}}]})

    async def use(executor: LlmExecutor, canned: CannedServer) -> None:
        for _ in range(5):
            await asyncio.gather(*(executor.run(Attempt(), CHAT) for _ in range(8)))
        assert canned.connections == 8

    with_canned(reply, use)


def test_a_connection_that_the_provider_closed_meanwhile_is_not_used() -> None:
    reply = answer({"choices": [{"message": {"content": "Hi"}}]})

    async def use(executor: LlmExecutor, canned: CannedServer) -> None:
        for _ in range(3):
            await executor.run(Attempt(), CHAT)
            await canned.closed.acquire()
        assert canned.connections == 3

    with_canned(reply, use, then_close=True)


def test_a_whole_answer_counts_even_when_its_connection_never_ends() -> None:
    reply = event_stream({"choices": [{"index": 0, "delta": {"content": "Hi"}}]}, "[DONE]", end=b"")

    async def use(executor: LlmExecutor, _canned: CannedServer) -> None:
        assert value_of(await executor.run(Attempt(), STREAM))["text"] == "Hi"

    with_canned(reply, use)


def test_a_stream_that_reports_no_usage_is_estimated() -> None:
    reply = event_stream({"choices": [{"index": 0, "delta": {"content": "Hi there"}}]}, "[DONE]")

    async def use(executor: LlmExecutor, _canned: CannedServer) -> None:
        usage = (await executor.run(Attempt(), STREAM)).usage
        assert usage is not None
        assert (usage.source, usage.output_visible) == (UsageSource.ESTIMATED, 2)

    with_canned(reply, use)
