"""Answers a repeated request with the answer that the first one got, and does its work once.

The work and its answer commit together, so a crash between the two cannot happen. A request that fails leaves no
answer behind: it may be repeated with the same key.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from django.db import transaction

from scheduler.errors import FieldError, Refused
from scheduler.services.again import again
from scheduler.store import control as store

KEY_CHARS_MAX: Final = 200
KEEP_S: Final = 86_400.0


@dataclass(frozen=True, slots=True)
class Answer:
    """An HTTP answer: `body` is JSON text. `repeated` says that it is the first one's."""

    status: int
    body: str
    repeated: bool = False


@again
def once(scope: str, key: str, request: bytes, act: Callable[[], Answer]) -> Answer:
    """Run `act` once per (scope, key) and answer every repetition alike. `request` is what must be the same.

    Two at the same time: the second waits for the first. Where the database undid what `act` did, it runs again, and
    only the last run counts. Raises Refused when the key came with another request before.
    """
    _check(key)
    fingerprint = hashlib.sha256(request).digest()
    with transaction.atomic():
        first = store.lock_idempotency_key(scope, key)
        if first is not None:
            if first.fingerprint != fingerprint:
                detail = (
                    "This Idempotency-Key was used before for another request; use a new key or repeat that request."
                )
                raise Refused(detail, code="key_reused", errors=(FieldError(("header", "Idempotency-Key"), detail),))
            return Answer(first.status, first.body, repeated=True)
        answer = act()
        store.add_idempotency_record(scope, key, store.StoredAnswer(fingerprint, answer.status, answer.body))
        return answer


def prune(*, keep_s: float = KEEP_S) -> int:
    """Forget answers older than `keep_s`; returns how many."""
    return store.prune_idempotency_records(keep_s=keep_s)


def _check(key: str) -> None:
    if not key or len(key) > KEY_CHARS_MAX or not key.isprintable() or not key.isascii():
        detail = f"An Idempotency-Key has 1 to {KEY_CHARS_MAX} printable ASCII characters."
        raise Refused(detail, code="bad_idempotency_key", errors=(FieldError(("header", "Idempotency-Key"), detail),))
