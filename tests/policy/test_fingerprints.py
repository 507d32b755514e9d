"""Like deaths fall together, unlike ones do not."""

from __future__ import annotations

import uuid

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scheduler.policy.fingerprints import (
    SHAPE_CHARS_MAX,
    Death,
    fingerprint_of,
    read_fingerprint,
    shape_of,
    write_fingerprint,
)

WORD = st.text("abcdefgh", min_size=1, max_size=8)
DIFFERS = st.one_of(
    st.integers(0, 10**18).map(str),
    st.floats(0.001, 1e6).map(lambda number: f"{number:.3f}"),
    st.uuids(version=4).map(str),
    st.builds(lambda a, n: f"https://{a}.example/v1/{n}?x={n}", WORD, st.integers(0, 10**6)),
    st.builds(lambda a, n: f"req_{n}{a}", WORD, st.integers(0, 10**9)),
    st.builds(lambda a: f'"{a}"', WORD),
)


@given(st.lists(WORD, min_size=1, max_size=5), st.data())
def test_what_differs_from_call_to_call_does_not_part_them(words: list[str], data: st.DataObject) -> None:
    kinds = [st.integers(0, 10**18).map(str), st.uuids(version=4).map(str)]
    kind = data.draw(st.sampled_from(kinds))
    first, second = data.draw(kind), data.draw(kind)
    left, right = (shape_of(f"{' '.join(words)} {each}: {words[0]}") for each in (first, second))
    assert left == right


@given(st.text(max_size=400))
def test_a_shape_is_bounded_and_never_fails(message: str) -> None:
    assert len(shape_of(message)) <= SHAPE_CHARS_MAX


@given(WORD, WORD, DIFFERS)
def test_other_words_are_another_death(one: str, other: str, differs: str) -> None:
    same = shape_of(f"{one} {differs}") == shape_of(f"{other} {differs}")
    assert same is (one == other)


@pytest.mark.parametrize(
    ("message", "shape"),
    [
        ("429 Too Many Requests: try again in 3.5s", "<n> Too Many Requests: try again in <id>"),
        ("no row 17 in 'orders'", "no row <n> in <text>"),
        ("POST https://api.example/v1/x?id=7 timed out", "POST <url> timed out"),
        ("user ada@example.org is unknown", "user <address> is unknown"),
        ("ids 1, 2, 3, 4 are gone", "ids <n>… are gone"),
        ("a\n\n  b\tc", "a b c"),
        ("at 2026-11-30T12:00:00Z it broke", "at <time> it broke"),
    ],
)
def test_what_a_shape_looks_like(message: str, shape: str) -> None:
    assert shape_of(message) == shape


def test_each_part_tells_apart() -> None:
    death = Death(1, 2, "summary", "timeout", "it broke")
    others = [
        death._replace(tenant=3),
        death._replace(pool=3),
        death._replace(kind="x"),
        death._replace(failure_class="error"),
        death._replace(shape="x"),
    ]
    numbers = {fingerprint_of(each) for each in [death, *others]}
    assert len(numbers) == 6
    assert all(0 < number < 2**63 for number in numbers)


@given(st.integers(1, 2**63 - 1))
def test_a_fingerprint_is_read_as_it_was_written(number: int) -> None:
    assert read_fingerprint(write_fingerprint(number)) == number
    assert len(write_fingerprint(number)) == 16


def test_ids_of_different_kinds_are_alike() -> None:
    assert shape_of(f"job {uuid.UUID(int=5)} lost") == shape_of("job req_9f3c12 lost") == "job <id> lost"
