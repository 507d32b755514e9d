"""Decides when a sign-in must wait: after a few failures for one name from one address, or many from one address.

The arithmetic is pure; the counts live in Django's cache. With a cache of its own, each web process counts for itself.
"""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import blake2s
from typing import Final

from django.core.cache import cache

FAILURES_FREE: Final = 5
ADDRESS_FAILURES_FREE: Final = 50
WAIT_FIRST_S: Final = 30
WAIT_MAX_S: Final = 900
REMEMBER_S: Final = 3600


@dataclass(frozen=True, slots=True)
class Failures:
    """How often in a row, and when last."""

    count: int = 0
    last_at_s: float = 0.0


def wait_s(failures: Failures, *, free: int, now_s: float) -> float:
    """Seconds until the next try is looked at: none for `free` failures, then doubling up to a quarter hour."""
    if failures.count < free:
        return 0.0
    pause_s = min(WAIT_FIRST_S * 2.0 ** min(failures.count - free, 16), WAIT_MAX_S)
    return max(failures.last_at_s + pause_s - now_s, 0.0)


def must_wait_s(username: str, address: str, *, now_s: float) -> float:
    """Seconds this name from this address must wait before it is checked at all."""
    return max(
        wait_s(_load(_key(username, address)), free=FAILURES_FREE, now_s=now_s),
        wait_s(_load(_key("", address)), free=ADDRESS_FAILURES_FREE, now_s=now_s),
    )


def note_failure(username: str, address: str, *, now_s: float) -> None:
    """Count a wrong password against the name at this address and against the address."""
    for key in (_key(username, address), _key("", address)):
        cache.set(key, Failures(_load(key).count + 1, now_s), REMEMBER_S)


def forgive(username: str, address: str) -> None:
    """Forget the failures of a name at an address after it signed in."""
    cache.delete(_key(username, address))


def _load(key: str) -> Failures:
    known = cache.get(key)
    return known if isinstance(known, Failures) else Failures()


def _key(username: str, address: str) -> str:
    digest = blake2s(f"{username.casefold()}\0{address}".encode(errors="replace"), digest_size=16).hexdigest()
    return f"sign-in-{digest}"
