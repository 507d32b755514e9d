"""Waiting for conditions instead of sleeping."""

import time
from collections.abc import Callable
from typing import Final, TypeVar

T = TypeVar("T")

TIMEOUT_S: Final = 180.0
"""On a machine that does much else. Waiting ends with the condition, so that a long bound costs nothing."""
PAUSE_MIN_S: Final = 0.01
PAUSE_MAX_S: Final = 0.05


def wait_until(condition: Callable[[], T], *, timeout_s: float = TIMEOUT_S, what: str = "the condition") -> T:
    """Return the first truthy value of ``condition``. Raises AssertionError after ``timeout_s``.

    It is asked every 10 ms at first and 20 times per second later: what comes late is not much later for it, and asking
    costs the processor that what is waited for needs.
    """
    began = time.monotonic()
    while True:
        value = condition()
        if value:
            return value
        waited_s = time.monotonic() - began
        if waited_s > timeout_s:
            raise AssertionError(f"waited {timeout_s} s in vain for {what}; last value: {value!r}")
        time.sleep(min(PAUSE_MAX_S, PAUSE_MIN_S + waited_s / 20))
