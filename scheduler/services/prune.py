"""Forgets what ended long ago: tasks and runs with all that is theirs, empty groups, and the audit's oldest pages.

In short transactions of a bounded number of rows that pass over what others hold, so that it may run beside any number
of engines and be ended at any moment; the next run goes on. It never touches work that has yet to end, nor the result
of a task that another is still to be handed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from django.db import transaction

from scheduler.errors import Refused
from scheduler.policy.operations import RECOVERABLE_S
from scheduler.services.idempotency import prune as forget_answers
from scheduler.services.run_tending import forget_demands
from scheduler.services.schedules import forget_occurrences
from scheduler.services.sign_ins import forget_tries
from scheduler.store import dead as dead_store
from scheduler.store import dispatch as dispatch_store
from scheduler.store import operations as operation_store
from scheduler.store import prune as store
from scheduler.store.prune import Old

__all__ = ["Old"]

DAY_S: Final = 86_400.0
KEEP_MIN_S: Final = 3_600.0
"""Nothing younger than this is forgotten: somebody may be waiting for its result."""
ROWS_MAX: Final = 1_000


@dataclass(frozen=True, slots=True)
class Keep:
    """For how many seconds to keep what has ended, and what the audit says. None: for ever."""

    ended_s: float
    audit_s: float | None = None


@dataclass(slots=True)
class Pruned:
    """How much was forgotten."""

    tasks: int = 0
    runs: int = 0
    groups: int = 0
    occurrences: int = 0
    audit_events: int = 0


def prune(keep: Keep, *, rest: Callable[[], None], rows_max: int = ROWS_MAX) -> Pruned:
    """Forget what is past its time; `rest` is called between two transactions. Raises Refused.

    1. tasks, a stretch of ids at a time; 2. runs and groups that are empty then; 3. occurrences, kept answers and tries
    of signing in, which the engine forgets too; 4. audit events; 5. what was discarded a week ago, and operations that
    ended before the time.
    """
    _check(keep)
    now = dispatch_store.load_now()
    before, done = now - keep.ended_s, Pruned()
    after = 0
    while (stretch := store.find_old(after=after, before=before, rows_max=rows_max)) is not None:
        after = stretch.last
        if stretch.old:
            with transaction.atomic():
                done.tasks += store.delete_tasks(stretch.old, before=before)
            rest()
    done.runs = _forget_runs(before, rest, rows_max)
    done.groups = _repeated(lambda: store.delete_groups(before=before, rows_max=rows_max), rest)
    done.occurrences = _repeated(forget_occurrences, rest)
    _repeated(forget_answers, rest)
    _repeated(forget_tries, rest)
    if keep.audit_s is not None:
        audit_before = now - keep.audit_s
        done.audit_events = _repeated(lambda: store.delete_audit(before=audit_before, rows_max=rows_max), rest)
    done.tasks += _repeated(lambda: _forget_discarded(now, rows_max), rest)
    _repeated(lambda: operation_store.delete_one(before=before), rest)
    dead_store.forget(before=now - RECOVERABLE_S)
    return done


def _forget_runs(before: float, rest: Callable[[], None], rows_max: int) -> int:
    """Runs that ended before the time, with receipts, checkpoint, alerts and budget; the ledger keeps what they cost.

    What their steps needed goes first, which the leader forgets an hour after their end anyway.
    """
    forget_demands()
    total = after = 0
    while (stretch := store.delete_runs(after=after, before=before, rows_max=rows_max)) is not None:
        after, gone = stretch
        total += gone
        rest()
    return total


def _forget_discarded(now: float, rows_max: int) -> int:
    with transaction.atomic():
        tasks = dead_store.find_discarded(before=now - RECOVERABLE_S, rows_max=rows_max)
        return store.delete_tasks(tasks, before=now) if tasks else 0


def count_old(keep: Keep) -> Old:
    """What is past its time, and nothing is done. Raises Refused."""
    _check(keep)
    now = dispatch_store.load_now()
    return store.count_old(before=now - keep.ended_s, audit_before=0.0 if keep.audit_s is None else now - keep.audit_s)


def _check(keep: Keep) -> None:
    if min(keep.ended_s, keep.ended_s if keep.audit_s is None else keep.audit_s) < KEEP_MIN_S:
        raise Refused(f"Keep things for at least {KEEP_MIN_S / 3600:g} hour.", code="bad_retention")


def _repeated(forget: Callable[[], int], rest: Callable[[], None]) -> int:
    total = 0
    while gone := forget():
        total += gone
        rest()
    return total
