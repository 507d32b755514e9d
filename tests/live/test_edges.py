"""Boards at their edges: no row, one, as many as a page shows and one more; and rows of which nothing is known."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import pytest

from scheduler.live.board import read_board
from scheduler.live.frames import Frame, Key
from scheduler.live.pages import ROWS_MAX, draw_page
from tests.live import sample

Json = dict[str, Any]
SLO: Final[Json] = {"slo": {"high": 5.0}}


def a_pool(n: int) -> Json:
    return sample.pool(f"p{n:03}", **SLO)


def a_limit(n: int) -> Json:
    return sample.bucket(f"r{n:03}")


TABLES: Final[dict[str, tuple[str, Callable[[int], Json]]]] = {
    "pools": ("pools", a_pool),
    "resources": ("resources", a_limit),
    "slo": ("pools", a_pool),
}
PAGES_OF: Final[dict[str, dict[str, str]]] = {
    "pools": {"pool": "llm", "slo": "", "workers": ""},
    "resources": {"resource": "openai"},
    "failures": {"pool": "llm"},
    "workers": {"overview": ""},
}
NOTHING: Final[tuple[Any, ...]] = (None, [], -1, 1e300, float("nan"))


def drawn(page: str, part: str, rows: list[Json], *, seq: int = 1, scope: str = "") -> Frame:
    return draw_page(Key(page, scope), read_board(seq, sample.AS_OF_S, {**sample.quiet_body(), part: rows}))


@pytest.mark.parametrize("page", TABLES)
@pytest.mark.parametrize("number", [0, 1, ROWS_MAX, ROWS_MAX + 1])
def test_a_table_shows_a_hundred_and_says_how_many_it_does_not(page: str, number: int) -> None:
    part, row = TABLES[page]
    frame = drawn(page, part, [row(n) for n in range(number)])
    assert frame.html.count('<th scope="row"') == min(number, ROWS_MAX)
    assert ("1 more" in frame.html and "is not shown" in frame.html) == (number > ROWS_MAX)
    assert ('class="empty"' in frame.html) == (number == 0)


@pytest.mark.parametrize("page", TABLES)
@pytest.mark.parametrize(("before", "after"), [(0, 1), (1, 0), (ROWS_MAX, ROWS_MAX + 1), (ROWS_MAX + 1, ROWS_MAX)])
def test_a_page_that_moves_over_an_edge_is_sent_what_makes_it_the_new_one(page: str, before: int, after: int) -> None:
    part, row = TABLES[page]
    old, new = (drawn(page, part, [row(n) for n in range(number)], seq=number) for number in (before, after))
    assert new.since(old)
    assert old.shape != new.shape, "who joins with the old page is sent the whole"


@pytest.mark.parametrize(
    ("part", "whole"),
    [
        ("pools", sample.pool("llm", **SLO)),
        ("resources", sample.bucket("openai")),
        ("resources", sample.semaphore("openai")),
        ("failures", sample.failure(1)),
        ("workers", sample.worker("engine-1")),
    ],
)
def test_nothing_known_of_a_part_of_a_row_breaks_no_page(part: str, whole: Json) -> None:
    for name in whole:
        for nothing in NOTHING:
            for page, scope in PAGES_OF[part].items():
                assert drawn(page, part, [{**whole, name: nothing}], scope=scope).html
