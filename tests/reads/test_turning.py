"""Which rows are a page, and where the pages beside it begin."""

from __future__ import annotations

import pytest

from scheduler.reads.turning import Turned, turn


@pytest.mark.parametrize(
    ("found", "back", "first", "page"),
    [
        ([], False, True, Turned((), None, None)),
        ([], True, False, Turned((), None, None)),
        ([9, 8], False, True, Turned((9, 8), None, None)),
        ([9, 8, 7, 6], False, True, Turned((9, 8, 7), 7, None)),
        ([6, 5], False, False, Turned((6, 5), None, 6)),
        ([6, 5, 4, 3], False, False, Turned((6, 5, 4), 4, 6)),
        ([9, 8, 7], True, False, Turned((9, 8, 7), 7, None)),
        ([9, 8, 7, 6], True, False, Turned((8, 7, 6), 6, 8)),
    ],
)
def test_one_row_more_tells_whether_there_is_more(found: list[int], back: bool, first: bool, page: Turned[int]) -> None:
    assert turn(found, rows_max=3, back=back, first=first) == page
