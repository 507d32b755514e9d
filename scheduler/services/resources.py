"""Adds and edits shared limits. An edit applies at the next plan, up or down; 0 means paused, not unlimited.

What a limit is (its kind) never changes: work that counts on permits coming back cannot be told to wait for tokens.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, fields, replace
from typing import Any

from django.db import transaction

from scheduler.errors import Conflict, FieldError, NotFound
from scheduler.policy.declarations import LimitSettings, faults_in_limit
from scheduler.policy.types import ResourceKind
from scheduler.services.changes import Author, VersionConflict, check_reason, differences, record, refuse
from scheduler.store import resources as store


def add_resource(
    name: str, kind: ResourceKind, settings: LimitSettings, *, actor: str, reason: str = "", source: str = "ui"
) -> store.ResourceRow:
    """Declare a limit; a bucket starts full. Raises Refused with every fault, Conflict when the name is taken."""
    author = Author(actor, source, reason)
    check_reason(author)
    refuse(faults_in_limit(name, kind, settings), code="bad_resource")
    with transaction.atomic():
        if store.add(name, kind, **asdict(settings)) is None:
            errors = (FieldError(("name",), "This name is taken; choose another or edit that one."),)
            raise Conflict(f"There is a resource named {name!r} already.", code="name_taken", errors=errors)
        record(author, "resource.add", f"resource:{name}", after={"kind": kind.value, **asdict(settings)})
        return load_resource(name)


def edit_resource(
    name: str, version: int, changes: Mapping[str, Any], *, actor: str, reason: str = "", source: str = "ui"
) -> store.ResourceRow:
    """Change some of a limit's settings, by their names in `LimitSettings`.

    Raises NotFound, VersionConflict when `version` is not the current one, Refused with every fault.
    """
    author = Author(actor, source, reason)
    check_reason(author)
    with transaction.atomic():
        row = load_resource(name)
        if row.version != version:
            raise VersionConflict(f"The resource {name!r}", sent=version, current=row.version)
        _refuse_unknown(changes)
        declared = settings_of(row)
        settings = replace(declared, **changes)
        refuse(faults_in_limit(name, row.view.kind, settings), code="bad_resource")
        if store.edit(name, version=version, **asdict(settings)) is None:
            raise VersionConflict(f"The resource {name!r}", sent=version, current=load_resource(name).version)
        before, after = differences(asdict(declared), asdict(settings))
        record(author, "resource.edit", f"resource:{name}", before=before, after=after)
        return load_resource(name)


def load_resource(name: str) -> store.ResourceRow:
    """The limit of that name. Raises NotFound."""
    rows = store.load([name]) if "\x00" not in name else []
    if not rows:
        raise NotFound(f"There is no resource named {name!r}.", code="unknown_resource")
    return rows[0]


def settings_of(row: store.ResourceRow) -> LimitSettings:
    """What is declared of a limit."""
    return LimitSettings(rate=row.view.rate, burst=row.view.burst, permits=row.view.permits, margin=row.view.margin)


def _refuse_unknown(changes: Mapping[str, Any]) -> None:
    if "kind" in changes:
        refuse(
            (FieldError(("kind",), "The kind of a resource never changes; add another resource."),),
            code="kind_is_fixed",
        )
    known = {each.name for each in fields(LimitSettings)}
    unknown = tuple(FieldError((n,), f"A resource has no setting {n!r}.") for n in changes if n not in known)
    refuse(unknown, code="bad_resource")
