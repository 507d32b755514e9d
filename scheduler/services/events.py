"""Tells what happened, puts it in order, and knows who listens. Nothing is told of transitions that nobody asked for.

Transitions are told by triggers on `task`, in the transaction that moves it. A place in the order is given afterwards,
by one at a time, to what has committed: a transaction that is open for long keeps back only its own events.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from django.db import transaction

from scheduler import conf
from scheduler.policy.types import TenantId
from scheduler.store import events as store

EVENTS_PER_ROUND_MAX: Final = 5_000
EVENTS_KEPT_MAX: Final = 1_000_000
FORGOTTEN_PER_ROUND_MAX: Final = 20_000
RETURN_S: Final = 900.0
"""How long transitions are told after the last listener went, so that it can come back without having missed any."""


def announce(tenant: TenantId | None, event_type: str, data: Mapping[str, object]) -> None:
    """Tell listeners and webhooks of something that is no transition, such as `alert.budget`, if this commits.

    `tenant` None: only those hear it who may see every tenant.
    """
    store.add(tenant, event_type, data)


def publish() -> int:
    """Give what was told its place in the order; returns how many got one. Any number of processes may call it."""
    if not store.has_fresh():
        return 0
    with transaction.atomic():
        last_seq = store.lock_mark()
        if last_seq is None:
            store.ensure_mark()
            return 0
        return store.publish(last_seq, events_max=EVENTS_PER_ROUND_MAX)


def listen(tenant: TenantId | None, *, seconds: float | None = RETURN_S) -> None:
    """Have the transitions of this tenant's tasks (None: of all) told for so long at least; `seconds` None: always."""
    with transaction.atomic():
        store.ensure_mark()
        store.listen(store.EVERYONE if tenant is None else tenant, seconds=seconds)


def forget_events() -> None:
    """Remove events that are too old or too many, in small steps."""
    config = conf.current()
    with transaction.atomic():
        store.forget(keep_s=config.event_keep_s, events_max=EVENTS_KEPT_MAX, rows_max=FORGOTTEN_PER_ROUND_MAX)
