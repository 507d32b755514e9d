"""Whatever value comes, it is kept exactly or refused with the place that cannot be kept."""

from __future__ import annotations

import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scheduler.policy.payload import INT_MAX, INT_MIN, JSON_DEPTH_MAX, fault_in_json

good_text = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x00"), max_size=20)
good = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(INT_MIN, INT_MAX)
    | st.floats(allow_nan=False, allow_infinity=False)
    | good_text,
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(good_text, inner, max_size=5),
    max_leaves=30,
)
keys = st.text(max_size=3) | st.integers() | st.floats() | st.none() | st.tuples(st.integers())
anything = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(st.characters(codec=None), max_size=10)
    | st.binary(max_size=3)
    | st.complex_numbers(),
    lambda inner: st.lists(inner, max_size=4) | st.tuples(inner, inner) | st.dictionaries(keys, inner, max_size=4),
    max_leaves=30,
)


@given(good)
def test_what_json_and_the_database_can_keep_is_taken(value: object) -> None:
    assert fault_in_json(value) is None


@given(anything)
def test_no_value_whatever_raises_and_every_fault_can_be_sent_back(value: object) -> None:
    fault = fault_in_json(value)
    if fault is None:
        assert "\\u0000" not in json.dumps(value)
        json.dumps(value, allow_nan=False, ensure_ascii=False).encode()
    else:
        assert "\x00" not in json.dumps(fault.loc, ensure_ascii=False).encode().decode()
        fault.msg.encode()


@pytest.mark.parametrize(
    ("value", "loc"),
    [
        ({"a": ["ok", "no\x00"]}, ("a", 1)),
        ({"a": {"b": "\ud800"}}, ("a", "b")),
        (["\ud83d\ude00 apart"], (0,)),
        ({"k\x00": 1}, ("k?",)),
        ({"k\ud800": 1}, ("k?",)),
        ([math.nan], (0,)),
        ([1.0, -math.inf], (1,)),
        ({"n": INT_MAX + 1}, ("n",)),
        ({"n": INT_MIN - 1}, ("n",)),
        ({"n": 10**5_000}, ("n",)),
        ({10**5_000: 1}, ()),
        ({1: 1}, ()),
        ({"b": b"bytes"}, ("b",)),
        (({"t": (1, {2})},), (0, "t", 1)),
    ],
)
def test_a_fault_names_its_place(value: object, loc: tuple[str | int, ...]) -> None:
    fault = fault_in_json(value)
    assert fault is not None
    assert fault.loc == loc
    assert len(fault.msg) < 200


def test_numbers_of_64_bits_and_whole_characters_are_kept() -> None:
    assert fault_in_json({"low": INT_MIN, "high": INT_MAX, "face": "\U0001f600", "no": False, "nil": None}) is None


@pytest.mark.parametrize("kind", ["list", "dict"])
@pytest.mark.parametrize("depth", [JSON_DEPTH_MAX, JSON_DEPTH_MAX + 1, 100_000])
def test_depth_is_bounded_and_never_overflows(kind: str, depth: int) -> None:
    value: object = 1
    for _ in range(depth):
        value = [value] if kind == "list" else {"k": value}
    fault = fault_in_json(value)
    assert (fault is None) == (depth <= JSON_DEPTH_MAX)
    while isinstance(value, list | dict):  # taken apart by hand: freeing it at once would recurse as deep
        value = value[0] if isinstance(value, list) else value["k"]


def test_a_value_that_contains_itself_is_refused() -> None:
    loop: list[object] = []
    loop.append(loop)
    assert fault_in_json(loop) is not None
