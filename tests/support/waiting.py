"""Waiting for conditions instead of sleeping."""

import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


def wait_until(condition: Callable[[], T], *, timeout_s: float = 20.0, what: str = "the condition") -> T:
    """Return the first truthy value of ``condition``, asked every 10 ms. Raises AssertionError after ``timeout_s``."""
    give_up_at = time.monotonic() + timeout_s
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > give_up_at:
            raise AssertionError(f"waited {timeout_s} s in vain for {what}; last value: {value!r}")
        time.sleep(0.01)
