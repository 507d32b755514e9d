"""Keeps the sums of the ledger by day, so that a page of ninety days reads some thousand rows and not the ledger.

A settlement pays nothing for it: the sums follow on the leader, a stretch of the ledger at a time, and whoever reads
adds what is not summed up yet. It must never pass over an entry. Entries become visible out of the order of their
numbers; so a stretch ends at a number that was drawn a while ago, and is summed up once every transaction has ended
that was under way then.
"""

from __future__ import annotations

from typing import Final

from django.db import transaction

from scheduler.store import sums as store
from scheduler.store.starts import commit_soon
from scheduler.store.sums import Discord

__all__ = ["ENTRIES_MAX", "Discord", "begin_anew", "find_discord", "sum_up"]

ENTRIES_MAX: Final = 20_000
"""Numbers of entries that are summed up in one transaction."""


def sum_up() -> bool:
    """Sum up the next stretch, if there is one; returns whether there is more to do at once: another whole stretch.

    What is written here does not wait for the disk: it can be made again from the ledger.
    """
    newest = store.load_newest_entry()
    with transaction.atomic():
        mark = store.lock_mark()
        if mark.end <= mark.summed:
            # In a statement after the one that read `newest`: who drew a number up to it is under way, or has ended.
            commit_soon()
            return newest > mark.summed and store.set_end(newest)
        if not mark.is_over:
            return False
        last = min(mark.end, mark.summed + ENTRIES_MAX)
        store.add_sums(after=mark.summed, last=last)
        store.move_mark(last)
        commit_soon()
    return newest - last >= ENTRIES_MAX


def find_discord() -> list[Discord]:
    """The days of everybody, and the tenants, whose sums are not what the ledger says up to the mark."""
    return store.load_discord()


def begin_anew() -> None:
    """Throw the sums away: they are made again from the whole ledger, which pages read until then."""
    with transaction.atomic():
        store.lock_mark()
        store.clear()
