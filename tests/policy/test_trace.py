"""What of a trace goes along with a task."""

from __future__ import annotations

import pytest

from scheduler.policy.trace import trace_of, traced, untraced

TRACE = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"


def test_a_trace_is_a_tag_and_what_the_task_says_itself_goes_before_it() -> None:
    assert traced(None, TRACE) == {"traceparent": TRACE}
    assert traced({"a": "b"}, TRACE) == {"a": "b", "traceparent": TRACE}
    assert traced({"traceparent": "mine"}, TRACE) == {"traceparent": "mine"}
    assert traced({"a": "b"}, None) == {"a": "b"}
    assert trace_of({"traceparent": TRACE}) == TRACE
    assert trace_of({}) is None
    assert untraced({"a": "b", "traceparent": TRACE}) == {"a": "b"}


@pytest.mark.parametrize("header", ["", "hello", TRACE[:-1], TRACE.upper(), "ff" + TRACE[2:], TRACE + "-x",
    "00-" + "0" * 32 + TRACE[35:], TRACE[:36] + "0" * 16 + TRACE[52:]])  # fmt: skip
def test_what_is_no_trace_is_left_alone(header: str) -> None:
    assert traced(None, header) is None
    assert trace_of({"traceparent": header}) is None
