"""Adds and edits shared limits, and what goes before them for a while. A change applies at the next plan, up or down.

0 means paused, not unlimited.

What a limit is (its kind) never changes: work that counts on permits coming back cannot be told to wait for tokens.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, fields, replace
from typing import Any

from django.db import transaction

from scheduler.errors import Conflict, FieldError, NotFound
from scheduler.policy.declarations import LimitSettings, OverrideSettings, faults_in_limit, faults_in_override
from scheduler.policy.types import ResourceKind
from scheduler.services.again import again
from scheduler.services.changes import Author, VersionConflict, check_reason, differences, record, refuse
from scheduler.store import resources as store
from scheduler.store.dispatch import load_now


@again
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


@again
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
        declared = row.declared
        settings = replace(declared, **changes)
        refuse(faults_in_limit(name, row.view.kind, settings), code="bad_resource")
        store.date_level(name)
        if store.edit(name, version=version, settings=settings) is None:
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


@again
def override_resource(
    name: str,
    override: OverrideSettings,
    *,
    for_s: float | None = None,
    version: int | None = None,
    actor: str,
    reason: str,
    source: str = "ui",
) -> store.ResourceRow:
    """Let these figures go before the declared ones until `override.until`, for `for_s` seconds, or until it is lifted.

    An override before is replaced. Nobody has to act for it to end. Raises NotFound, Refused with every fault, and
    VersionConflict when `version` (None: whatever it is) is not the current one.
    """
    author = Author(actor, source, reason)
    check_reason(author)
    with transaction.atomic():
        row = load_resource(name)
        now = load_now()
        wanted = override if for_s is None else replace(override, until=now + for_s)
        refuse(faults_in_override(row.view.kind, wanted, now=now), code="bad_override")
        _set_override(author, "resource.override", row, wanted, version)
        return load_resource(name)


@again
def lift_override(
    name: str, *, version: int | None = None, actor: str, reason: str = "", source: str = "ui"
) -> store.ResourceRow:
    """Let the declared figures count again. Lifting what is not there changes nothing.

    Raises NotFound, and VersionConflict when `version` (None: whatever it is) is not the current one.
    """
    author = Author(actor, source, reason)
    check_reason(author)
    with transaction.atomic():
        row = load_resource(name)
        if row.override is not None:
            _set_override(author, "resource.lift_override", row, OverrideSettings(), version)
        return load_resource(name)


def _set_override(
    author: Author, action: str, row: store.ResourceRow, wanted: OverrideSettings, version: int | None
) -> None:
    store.date_level(row.name)
    if store.set_override(row.name, wanted, version=version) is None:
        raise VersionConflict(f"The resource {row.name!r}", sent=version or 0, current=load_resource(row.name).version)
    before = {} if row.override is None else asdict(row.override)
    record(author, action, f"resource:{row.name}", before=before, after=asdict(wanted))


def _refuse_unknown(changes: Mapping[str, Any]) -> None:
    if "kind" in changes:
        refuse(
            (FieldError(("kind",), "The kind of a resource never changes; add another resource."),),
            code="kind_is_fixed",
        )
    known = {each.name for each in fields(LimitSettings)}
    unknown = tuple(FieldError((n,), f"A resource has no setting {n!r}.") for n in changes if n not in known)
    refuse(unknown, code="bad_resource")
