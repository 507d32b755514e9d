"""Which edits have to be explained."""

from __future__ import annotations

import pytest

from scheduler.policy.bold import is_bold


@pytest.mark.parametrize(
    ("before", "after", "bold"),
    [
        (100, 100, False),
        (0, 0, False),
        (100, 150, False),
        (100, 50, False),
        (100, 151, True),
        (100, 49, True),
        (100, 0, True),
        (0, 1, True),
    ],
)
def test_a_large_change_is_bold(before: float, after: float, bold: bool) -> None:
    assert is_bold(before, after) is bold
