"""A stream is put together whatever the pieces it comes in, and a cut one is never taken for a whole one."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scheduler.providers.chat_answers import ChatStream
from scheduler.providers.sse import EventDecoder, ServerSentEvent
from scheduler.providers.usage import Usage

LINE_ENDS = st.sampled_from(["\n", "\r\n", "\r"])
DATA = st.lists(
    st.text(st.characters(exclude_characters="\r\n\0", exclude_categories=["Cs"]), max_size=8), min_size=1, max_size=3
)


def feed_all(raw: bytes, cuts: list[int]) -> list[ServerSentEvent]:
    decoder, events, at = EventDecoder(), [], 0
    for cut in [*sorted(min(cut, len(raw)) for cut in cuts), len(raw)]:
        events += decoder.feed(raw[at:cut])
        at = cut
    return events


@given(st.lists(DATA, max_size=4), LINE_ENDS, st.lists(st.integers(0, 120), max_size=8))
def test_events_survive_any_cutting(events: list[list[str]], end: str, cuts: list[int]) -> None:
    raw = "".join("".join(f"data: {line}{end}" for line in lines) + end for lines in events).encode()
    if end == "\r":
        raw += b":"  # a bare CR at the very end may be the first half of a CR LF
    assert feed_all(raw, cuts) == [ServerSentEvent("message", "\n".join(lines)) for lines in events]


def test_names_comments_and_unknown_fields() -> None:
    raw = (
        b": hello\nevent: ping\nid: 1\nretry: 5\ndata:a\ndata:  b\ndata\n\nevent: empty\n\ndata: c\n\ndata: unfinished"
    )
    assert feed_all(raw, []) == [ServerSentEvent("ping", "a\n b\n"), ServerSentEvent("message", "c")]


def chunk(delta: object = None, *, index: int = 0, finish: str | None = None, **more: object) -> str:
    return json.dumps(
        {"id": "c1", "model": "m", "choices": [{"index": index, "delta": delta, "finish_reason": finish}], **more}
    )


def collect(*data: str) -> ChatStream:
    stream = ChatStream()
    for each in data:
        stream.take(each)
    return stream


def test_a_whole_answer() -> None:
    usage = json.dumps({"choices": [], "usage": {"prompt_tokens": 3, "completion_tokens": 2}})
    stream = collect(
        chunk({"role": "assistant", "content": ""}),
        chunk({"content": "Hel"}, usage=None),
        chunk({"content": "lo"}),
        chunk({"content": "other choice"}, index=1),
        chunk({}, finish="stop"),
        usage,
        "[DONE]",
        chunk({"content": "after the end"}),
    )
    assert (stream.text, stream.finish_reason, stream.model, stream.id) == ("Hello", "stop", "m", "c1")
    assert stream.usage == Usage(input_uncached=3, output_visible=2)
    assert stream.whole


def test_the_last_usage_wins() -> None:
    reports = [json.dumps({"usage": {"prompt_tokens": 3, "completion_tokens": number}}) for number in (1, 2, 5)]
    assert collect(*reports).usage == Usage(input_uncached=3, output_visible=5)


def test_tool_calls_are_put_together_by_index() -> None:
    stream = collect(
        chunk({"tool_calls": [{"index": 1, "id": "b", "function": {"name": "g", "arguments": "{}"}}]}),
        chunk({"tool_calls": [{"index": 0, "id": "a", "function": {"name": "f", "arguments": '{"x"'}}]}),
        chunk(
            {
                "tool_calls": [
                    {"index": 0, "function": {"arguments": ":1}"}},
                    {"index": 0, "function": {"arguments": None}},
                ]
            }
        ),
        chunk({}, finish="tool_calls"),
    )
    assert stream.tool_calls == [
        {"id": "a", "type": "function", "function": {"name": "f", "arguments": '{"x":1}'}},
        {"id": "b", "type": "function", "function": {"name": "g", "arguments": "{}"}},
    ]
    assert stream.whole


def test_an_emoji_that_was_cut_in_two_is_put_together_and_what_cannot_be_stored_is_replaced() -> None:
    stream = collect(chunk({"content": "a\ud83d"}), chunk({"content": "\ude00\0"}), chunk({"content": "\ud83d!"}))
    assert stream.text == "a😀\ufffd\ufffd!"


@given(st.lists(st.text(st.characters(), max_size=5), max_size=5))
def test_any_text_can_be_stored(pieces: list[str]) -> None:
    text = collect(*(chunk({"content": piece}) for piece in pieces)).text
    assert "\0" not in text
    assert text.encode().decode() == text


def test_a_stream_without_an_end_is_not_whole() -> None:
    assert not collect(chunk({"content": "Hel"})).whole


@pytest.mark.parametrize("data", ['{"error": {"message": "no"}}', "{", "[" * 100_000])
def test_an_error_ends_the_stream(data: str) -> None:
    stream = collect(chunk({"content": "Hel"}), data, chunk({"content": "lo"}, finish="stop"), "[DONE]")
    assert stream.error is not None
    assert stream.text == "Hel"
    assert not stream.whole


@pytest.mark.parametrize(
    "data", ["null", "[]", '{"choices": null}', '{"choices": [null]}', '{"choices": [{"delta": {"tool_calls": 1}}]}']
)
def test_chunks_of_any_shape_are_read(data: str) -> None:
    assert collect(data).text == ""
