"""The leader's round for runs: ends those that reached a cap, and stops what is left of those that have ended.

Gates hold what it has not come to yet: a run that reached a cap or was killed starts nothing meanwhile.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from django.db import transaction

from scheduler.policy.alerts import Alert, message_of_run
from scheduler.policy.runs import OPEN, Near, fatal, heed_at, near_caps
from scheduler.policy.types import RunId, TenantId
from scheduler.services.changes import Author
from scheduler.services.events import announce
from scheduler.services.graphs import cancel_all
from scheduler.services.kill import end_by_kill
from scheduler.store import dispatch as dispatch_store
from scheduler.store import kills as kill_store
from scheduler.store import run_steps as store

RUNS_MAX: Final = 100
"""Runs tended in one transaction."""
STEPS_MAX: Final = 500
"""Steps cancelled in one transaction."""
KEEP_DEMANDS_S: Final = 3_600.0
"""For so long after its end a run's demands stay, for submissions that are still open."""


def tend_runs() -> int:
    """One round; returns how many attempts were told to stop or tasks may start. Three short queries when idle.

    1. look at runs that came near a cap: tell once, and end those that reached it;
    2. tell what runs under a kill, as far as it was not told yet;
    3. stop what is left of runs that have ended.
    """
    woken = heed() + len(_tell_killed())
    return woken + stop_ended()


def heed() -> int:
    """Look at runs that came near a cap; returns how many running attempts were told to stop."""
    if not store.load_heeded(1):
        return 0
    told = 0
    with transaction.atomic():
        dispatch_store.take_turn()
        now = dispatch_store.load_now()
        looked: dict[RunId, float | None] = {}
        alerts: list[tuple[RunId, Near]] = []
        tenants: dict[RunId, TenantId] = {}
        for run, tenants[run], state, use in store.lock_uses(store.load_heeded(RUNS_MAX)):
            near = near_caps(use, now=now) if state in OPEN else ()
            alerts += [(run, each) for each in near]
            end = fatal(near)
            looked[run] = None
            if end is not None:
                told += end_by_kill(run, state, Author("cronoq", "system", _said(end))).told
                announce(tenants[run], Alert.RUN_STOPPED, message_of_run(run, end))
            elif state in OPEN:
                looked[run] = heed_at(use.caps, use.created_at, now=now)
        if alerts:
            _raise(alerts, tenants)
        store.heeded(looked)
    return told


def _raise(alerts: Sequence[tuple[RunId, Near]], tenants: Mapping[RunId, TenantId]) -> None:
    """Tell the owners of runs of these caps, of each once."""
    new = store.raise_alerts(alerts)
    for run, near in alerts:
        if (run, near.cap) in new:
            announce(tenants[run], Alert.RUN_CAP, message_of_run(run, near))


def _said(near: Near) -> str:
    return f"Its cap of {near.cap.value} was reached: {near.used:g} of {near.most:g}."


def _tell_killed() -> list[int]:
    with transaction.atomic():
        return list(kill_store.tell())


def stop_ended() -> int:
    """Cancel what waits of runs that have ended, and tell what runs of killed ones; returns how many were moved."""
    closing = store.load_closing(RUNS_MAX)
    if not closing:
        return 0
    with transaction.atomic():
        told = len(store.tell(closing))
        waiting = store.load_waiting(closing, tasks_max=STEPS_MAX)
        freed = cancel_all(waiting)
        if not waiting:
            store.close(closing)
    return told + freed + len(waiting)


def forget_demands() -> int:
    """Remove the demands of runs of whose steps none is kept; returns how many."""
    with transaction.atomic():
        return store.forget_demands(after_s=KEEP_DEMANDS_S)
