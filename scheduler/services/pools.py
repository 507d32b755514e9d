"""Adds, edits, pauses and resumes pools. Edits take effect at the next plan; running attempts are never touched."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, fields, replace
from typing import Any, Final

from django.db import transaction

from scheduler.errors import Conflict, FieldError, NotFound
from scheduler.policy.declarations import PoolSettings, faults_in_pool
from scheduler.services.again import again
from scheduler.services.changes import Author, VersionConflict, check_reason, differences, record, refuse
from scheduler.store import control as store

PAUSE_MAX_S: Final = 30 * 86_400.0
"""What is paused for longer is not paused but retired; say so by hand."""


@again
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


@again
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


@again
def pause_pool(name: str, *, for_s: float | None = None, actor: str, reason: str, source: str = "ui") -> store.PoolRow:
    """Start nothing new in the pool for so many seconds, or (None) until somebody resumes it; what runs goes on.

    Pausing a paused pool changes nothing. Raises NotFound, Refused when no pause lasts that long.
    """
    author = Author(actor, source, reason)
    check_reason(author)
    if for_s is not None and not 0 < for_s <= PAUSE_MAX_S:
        detail = f"A pause that ends by itself lasts at most {PAUSE_MAX_S / 86_400:g} days."
        refuse((FieldError(("for_s",), detail),), code="bad_pause")
    with transaction.atomic():
        load_pool(name)
        if store.pause_pool(name, actor=actor, reason=reason, for_s=for_s):
            after = {"paused": True} if for_s is None else {"paused": True, "for_s": for_s}
            record(author, "pool.pause", f"pool:{name}", before={"paused": False}, after=after)
        return load_pool(name)


@again
def pause_pools(
    names: Sequence[str], *, for_s: float | None = None, actor: str, reason: str, source: str = "ui"
) -> list[str]:
    """Pause all of these, or none; those that were not paused before. Raises as `pause_pool`."""
    with transaction.atomic():
        running = [name for name in sorted(set(names)) if load_pool(name).paused_at is None]
        for name in running:
            pause_pool(name, for_s=for_s, actor=actor, reason=reason, source=source)
    return running


@again
def resume_pools(names: Sequence[str], *, actor: str, reason: str = "", source: str = "ui") -> list[str]:
    """Resume all of these, or none; those that were paused before. Raises NotFound."""
    with transaction.atomic():
        paused = [name for name in sorted(set(names)) if load_pool(name).paused_at is not None]
        for name in paused:
            resume_pool(name, actor=actor, reason=reason, source=source)
    return paused


@again
def end_pauses() -> int:
    """Resume the pools whose pause was to end by now, by the clock of the database; how many."""
    with transaction.atomic():
        ended = store.end_pauses()
        for name, by, reason in ended:
            author = Author("system", "system", "The time that was said with the pause has come.")
            before = {"paused": True, "paused_by": by, "pause_reason": reason}
            record(author, "pool.resume", f"pool:{name}", before=before, after={"paused": False})
    return len(ended)


@again
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
