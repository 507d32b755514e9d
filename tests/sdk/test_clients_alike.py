"""Both clients have the same methods, that take the same and say the same; and what a task may say is said once."""

from __future__ import annotations

import inspect
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import fields
from typing import Any, get_type_hints

import pytest

from scheduler.api.task_schemas import SubmitIn
from scheduler.sdk import AsyncClient, Client, Task
from scheduler.sdk.declarations import TaskFields
from scheduler.sdk.remote import calls

CLOSES = {"close": "aclose"}


def _methods(kind: type) -> dict[str, Callable[..., Any]]:
    return {n: f for n, f in vars(kind).items() if inspect.isfunction(f) and not n.startswith("_")}


def _taken(function: Callable[..., Any]) -> list[tuple[str, Any, Any]]:
    return [(p.name, p.kind, p.default) for p in inspect.signature(function).parameters.values()]


def test_they_have_the_same_methods() -> None:
    assert {CLOSES.get(name, name) for name in _methods(Client)} == set(_methods(AsyncClient))
    assert len(_methods(Client)) > 20


@pytest.mark.parametrize("name", _methods(Client))
def test_a_method_takes_answers_and_says_the_same(name: str) -> None:
    one, other = _methods(Client)[name], _methods(AsyncClient)[CLOSES.get(name, name)]
    assert _taken(one) == _taken(other)
    assert one.__doc__ == other.__doc__
    assert one.__doc__
    answers = get_type_hints(one)["return"], get_type_hints(other)["return"]
    if getattr(answers[0], "__origin__", None) is Iterator:
        assert answers[0].__args__ == answers[1].__args__
        assert answers[1].__origin__ is AsyncIterator
    else:
        assert answers[0] == answers[1]
        assert inspect.iscoroutinefunction(other)


def test_what_a_task_may_say_is_the_same_everywhere() -> None:
    declared = {field.name for field in fields(Task)} - {"payload"}
    assert declared == set(TaskFields.__annotations__)
    # `deps` is cronoq's word for `after`; groups are said of a batch.
    assert declared - {"deps"} == set(SubmitIn.model_fields) - {"payload", "group", "join"}


def test_all_that_is_said_is_sent() -> None:
    said: dict[str, Any] = {
        "pool": "p", "kind": "k", "priority": "high", "key": "a", "deadline_in": 1.0, "deadline_at": 2.0,
        "start_in": 3.0, "start_at": 4.0, "tolerance": 5.0, "on_miss": "skip", "expires_in": 6.0, "duration_hint": 7.0,
        "timeout": 8.0, "retry": None, "after": "b", "deps": [], "resources": {"r": 1.0}, "tags": {"t": "u"},
        "labels": {"gpu": "yes"}, "tenant": "acme", "run": 9, "effect": "write", "max_cost_usd": 0.5,
        "capability": "draft",
    }  # fmt: skip
    assert set(said) == set(TaskFields.__annotations__)
    body = calls.described(Task(1, **said), with_tenant=True)
    assert set(said) - {"retry", "deps"} <= set(body)
