"""Adds, edits, pauses and resumes pools. Edits take effect at the next plan; running attempts are never touched."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, fields, replace
from typing import Any

from django.db import transaction

from scheduler.errors import Conflict, FieldError, NotFound
from scheduler.policy.declarations import PoolSettings, faults_in_pool
from scheduler.services.changes import Author, VersionConflict, check_reason, differences, record, refuse
from scheduler.store import control as store


def add_pool(
    name: str, executor: str, settings: PoolSettings, *, actor: str, reason: str = "", source: str = "ui"
) -> store.PoolRow:
    """Declare a pool. Raises Refused with every fault, Conflict when the name is taken."""
    author = Author(actor, source, reason)
    check_reason(author)
    refuse(faults_in_pool(name, executor, settings), code="bad_pool")
    with transaction.atomic():
        if store.add_pool(name, executor, settings) is None:
            raise Conflict(f"There is a pool named {name!r} already.", code="name_taken", errors=(_taken(),))
        record(author, "pool.add", f"pool:{name}", after={"executor": executor, **asdict(settings)})
        return load_pool(name)


def edit_pool(
    name: str, version: int, changes: Mapping[str, Any], *, actor: str, reason: str = "", source: str = "ui"
) -> store.PoolRow:
    """Change some of a pool's settings, by their names in `PoolSettings`.

    Raises NotFound, VersionConflict when `version` is not the current one, Refused with every fault.
    """
    author = Author(actor, source, reason)
    check_reason(author)
    with transaction.atomic():
        row = load_pool(name)
        if row.version != version:
            raise VersionConflict(f"The pool {name!r}", sent=version, current=row.version)
        known = {each.name for each in fields(PoolSettings)}
        refuse(
            tuple(FieldError((n,), f"A pool has no setting {n!r}.") for n in changes if n not in known), code="bad_pool"
        )
        settings = _fitted(replace(row.settings, **changes), chosen="slots" in changes)
        refuse(faults_in_pool(name, row.executor, settings), code="bad_pool")
        if store.edit_pool(name, version=version, settings=settings) is None:
            raise VersionConflict(f"The pool {name!r}", sent=version, current=load_pool(name).version)
        before, after = differences(asdict(row.settings), asdict(settings))
        record(author, "pool.edit", f"pool:{name}", before=before, after=after)
        return load_pool(name)


def pause_pool(name: str, *, actor: str, reason: str, source: str = "ui") -> store.PoolRow:
    """Start nothing new in the pool; what runs goes on. Pausing a paused pool changes nothing. Raises NotFound."""
    author = Author(actor, source, reason)
    check_reason(author)
    with transaction.atomic():
        load_pool(name)
        if store.pause_pool(name, actor=actor, reason=reason):
            record(author, "pool.pause", f"pool:{name}", before={"paused": False}, after={"paused": True})
        return load_pool(name)


def resume_pool(name: str, *, actor: str, reason: str = "", source: str = "ui") -> store.PoolRow:
    """Start again with what waits. Resuming a pool that runs changes nothing. Raises NotFound."""
    author = Author(actor, source, reason)
    check_reason(author)
    with transaction.atomic():
        row = load_pool(name)
        if store.resume_pool(name):
            before = {"paused": True, "paused_by": row.paused_by, "pause_reason": row.pause_reason}
            record(author, "pool.resume", f"pool:{name}", before=before, after={"paused": False})
        return load_pool(name)


def load_pool(name: str) -> store.PoolRow:
    """The pool of that name. Raises NotFound."""
    rows = store.load_pools([name]) if "\x00" not in name else []
    if not rows:
        raise NotFound(f"There is no pool named {name!r}.", code="unknown_pool")
    return rows[0]


def _fitted(settings: PoolSettings, *, chosen: bool) -> PoolSettings:
    """An autoscaled pool's slots follow its bounds. What an operator chose is never changed behind their back."""
    if settings.autoscale is None or chosen:
        return settings
    return replace(settings, slots=max(settings.slots_min, min(settings.slots, settings.slots_max)))


def _taken() -> FieldError:
    return FieldError(("name",), "This name is taken; choose another or edit that one.")
