"""How money reads."""

from __future__ import annotations

import pytest

from scheduler.live.wording import dollars

USD = 1_000_000_000


@pytest.mark.parametrize(
    ("nano", "text"),
    [
        (None, "—"),
        (0, "$0"),
        (1, "$0.000000001"),
        (12_100_000, "$0.0121"),
        (12_149_999, "$0.0121"),
        (250_000_000, "$0.25"),
        (200_000_000, "$0.20"),
        (999_999_999, "$1.00"),
        (USD, "$1.00"),
        (812_060_000_000, "$812.06"),
        (9_999_995_000_000, "$10,000.00"),
        (12_345_600_000_000, "$12,346"),
        (10**18 + 1, "$1,000,000,000"),
        (-5 * USD, "-$5.00"),
    ],
)
def test_dollars_have_the_digits_that_matter(nano: int | None, text: str) -> None:
    assert dollars(nano) == text
