"""Answers of every API in one shape; streams of them in any cutting, of any shape, with any end."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scheduler.providers.answers import AnswerStream
from scheduler.providers.chat_answers import ChatStream, read_chat
from scheduler.providers.embeddings_answers import read_embeddings
from scheduler.providers.messages_answers import MessageStream, read_message
from scheduler.providers.responses_answers import ResponseStream, failure_of, read_response
from scheduler.providers.usage import Usage

STREAMS = pytest.mark.parametrize("make", [ChatStream, MessageStream, ResponseStream])
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                ["type", "index", "delta", "message", "response", "usage", "content", "content_block", "text", "output",
                 "choices", "input_tokens", "output_tokens", "partial_json", "status", "data", "embedding"]
            ),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)  # fmt: skip
KINDS = st.sampled_from(
    ["message_start", "content_block_start", "content_block_delta", "message_delta", "message_stop", "ping",
     "response.created", "response.output_text.delta", "response.completed", "response.failed"]
)  # fmt: skip


def collect(stream: AnswerStream, *events: dict[str, Any] | str) -> AnswerStream:
    for event in events:
        stream.take(event if isinstance(event, str) else json.dumps(event))
    return stream


def block_delta(**delta: str) -> dict[str, Any]:
    return {"type": "content_block_delta", "index": 0, "delta": delta}


START = {
    "type": "message_start",
    "message": {"model": "m", "usage": {"input_tokens": 9, "output_tokens": 1, "service_tier": "standard"}},
}


@given(st.sampled_from([ChatStream, MessageStream, ResponseStream]), st.lists(st.tuples(KINDS, JSON), max_size=6))
def test_events_of_any_shape_are_read(make: Callable[[], AnswerStream], events: list[tuple[str, Any]]) -> None:
    stream = make()
    for kind, body in events:
        stream.take(json.dumps({**body, "type": kind} if isinstance(body, dict) else body))
    stream.answer().as_json(asked_model="m")
    assert isinstance(stream.produced, str)
    assert stream.usage is None or stream.usage.total >= 0


@given(st.sampled_from([read_chat, read_embeddings, read_message, read_response, failure_of]), JSON)
def test_bodies_of_any_shape_are_read(read: Callable[[object], object], body: object) -> None:
    read(body)
    read({"type": "message", "status": "completed", "content": body, "output": body, "choices": body, "data": body})


@STREAMS
@pytest.mark.parametrize("event", ["{", "[" * 100_000, '{"error": {"message": "no"}}', '{"type": "error", "error": 1}'])
def test_an_error_ends_every_stream(make: Callable[[], AnswerStream], event: str) -> None:
    stream = collect(make(), event, START, {"type": "message_stop"}, "[DONE]")
    assert stream.error is not None
    assert not stream.whole


@STREAMS
def test_a_stream_that_only_began_is_not_whole(make: Callable[[], AnswerStream]) -> None:
    stream = collect(make(), START, {"type": "response.created", "response": {"model": "m"}}, {"choices": []})
    assert not stream.whole
    assert stream.error is None


def test_a_message_is_put_together_block_by_block() -> None:
    stream = collect(
        MessageStream(),
        START,
        {"type": "ping"},
        {"type": "content_block_start", "index": 0, "content_block": {"type": "thinking", "thinking": ""}},
        block_delta(type="thinking_delta", thinking="Hm"),
        block_delta(type="thinking_delta", thinking="m."),
        block_delta(type="signature_delta", signature="sig"),
        {"type": "content_block_start", "index": 1, "content_block": {"type": "text", "text": ""}},
        {"type": "content_block_delta", "index": 1, "delta": {"type": "text_delta", "text": "a\ud83d"}},
        {"type": "content_block_delta", "index": 1, "delta": {"type": "text_delta", "text": "\ude00"}},
        {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 12}},
        {"type": "message_stop"},
    )
    answer = stream.answer()
    assert stream.whole
    assert (answer.text, answer.finish_reason, answer.model) == ("a😀", "end_turn", "m")
    assert answer.blocks == [
        {"type": "thinking", "thinking": "Hmm.", "signature": "sig"},
        {"type": "text", "text": "a😀"},
    ]
    assert answer.usage == Usage(input_uncached=9, output_visible=12, service_tier="standard")
    assert stream.produced.startswith("Hmm.a")


def test_a_message_without_its_last_event_is_whole_once_it_told_why_it_stopped() -> None:
    ended = {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 2}}
    assert collect(MessageStream(), START, ended).whole


def test_arguments_that_broke_off_stay_as_they_began() -> None:
    start = {"type": "content_block_start", "index": 0, "content_block": {"type": "tool_use", "name": "f", "input": {}}}
    stream = collect(MessageStream(), START, start, block_delta(type="input_json_delta", partial_json='{"a": '))
    assert stream.answer().tool_calls[0]["function"] == {"name": "f", "arguments": "{}"}
    assert stream.produced == '{"a": '


def test_the_response_that_ends_a_stream_is_the_answer() -> None:
    message = {"type": "message", "content": [{"type": "output_text", "text": "Hello"}, {"type": "refusal"}]}
    usage = {"input_tokens": 5, "output_tokens": 7, "output_tokens_details": {"reasoning_tokens": 4}}
    final = {"model": "m", "status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"},
             "output": [{"type": "reasoning"}, message], "usage": usage, "service_tier": "flex"}  # fmt: skip
    stream = collect(
        ResponseStream(),
        {"type": "response.created", "response": {"model": "m"}},
        {"type": "response.reasoning_summary_text.delta", "delta": "Hm."},
        {"type": "response.output_text.delta", "delta": "Hel"},
        {"type": "response.incomplete", "response": final},
        {"type": "response.output_text.delta", "delta": "after the end"},
    )
    answer = stream.answer()
    assert (stream.whole, stream.produced) == (True, "Hm.Hel")
    assert (answer.text, answer.finish_reason, len(answer.blocks)) == ("Hello", "max_output_tokens", 2)
    assert answer.usage == Usage(input_uncached=5, output_visible=3, output_reasoning=4, service_tier="flex")


def test_a_response_that_was_cut_leaves_its_text() -> None:
    stream = collect(ResponseStream(), {"type": "response.output_text.delta", "delta": "Hel"})
    assert (stream.answer().text, stream.whole, stream.usage) == ("Hel", False, None)


@pytest.mark.parametrize("body", [{"status": "in_progress", "output": []}, {"status": "completed"}, [], None])
def test_what_is_no_finished_response_is_none(body: object) -> None:
    assert read_response(body) is None


def test_a_stream_that_ends_with_no_response_is_an_error() -> None:
    stream = collect(ResponseStream(), {"type": "response.completed", "response": {}})
    assert stream.error is not None
    assert not stream.whole
