"""Keeps an hour of how pools and limits stood, a sample every quarter of a minute, taken from the newest picture.

It counts nothing itself: one statement reads a row that is there. Its cost does not depend on tasks or tenants.
"""

from __future__ import annotations

from typing import Final

from django.db import transaction

from scheduler.store import history as store

KEEP_S: Final = 3_660.0
SUBJECTS_MAX: Final = 500
"""Pools, and as many limits, that have a history."""


def sample_history() -> int:
    """Keep a sample of each, and forget what is too old; returns how many were kept."""
    with transaction.atomic():
        store.forget(keep_s=KEEP_S)
        return store.sample(subjects_max=SUBJECTS_MAX)
