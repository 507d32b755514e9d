"""Decides which edits of a limit are so large that they have to be explained.

It must never decide whether an edit is right: that is a person's business, and the reason is what the next one reads.
"""

from __future__ import annotations

from typing import Final

BOLD_PART: Final = 0.5
"""More than this part up or down of what is in force."""


def is_bold(before: float, after: float) -> bool:
    """Whether a change of a rate, a burst or a number of permits needs a reason: beyond ±50 %, to zero or from it."""
    if before == after:
        return False
    if before <= 0.0 or after <= 0.0:
        return True
    return abs(after - before) > BOLD_PART * before
