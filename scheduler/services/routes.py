"""Adds and edits routes: which models have a capability, cheapest first. A change counts for what is routed next."""

from __future__ import annotations

from collections.abc import Sequence

from django.db import transaction

from scheduler.errors import Conflict, FieldError, NotFound
from scheduler.policy.declarations import fault_in_name
from scheduler.policy.routes import Option, faults_in_route
from scheduler.services.changes import Author, VersionConflict, check_reason, differences, record, refuse
from scheduler.store import resources as resource_store
from scheduler.store import routes as store


def add_route(
    capability: str,
    options: Sequence[Option],
    degraded_model: str | None = None,
    *,
    actor: str,
    reason: str = "",
    source: str = "ui",
) -> store.RouteRow:
    """Declare a route. Raises Refused with every fault, Conflict when the capability has one."""
    author = Author(actor, source, reason)
    check_reason(author)
    fault = fault_in_name(capability)
    named = () if fault is None else (FieldError(("capability",), fault.msg),)
    with transaction.atomic():
        refuse((*named, *_faults(options, degraded_model)), code="bad_route")
        if not store.add(capability, options, degraded_model):
            errors = (FieldError(("capability",), "It has a route; edit that one."),)
            raise Conflict(f"There is a route for {capability!r} already.", code="name_taken", errors=errors)
        record(author, "route.add", f"route:{capability}", after=_shown(options, degraded_model))
        return load_route(capability)


def edit_route(
    capability: str,
    version: int,
    options: Sequence[Option] | None,
    degraded_model: str | None,
    *,
    actor: str,
    reason: str = "",
    source: str = "ui",
) -> store.RouteRow:
    """Change a route; None keeps its models. Raises NotFound, VersionConflict, Refused with every fault."""
    author = Author(actor, source, reason)
    check_reason(author)
    with transaction.atomic():
        row = load_route(capability)
        if row.version != version:
            raise VersionConflict(f"The route {capability!r}", sent=version, current=row.version)
        wanted = row.options if options is None else tuple(options)
        refuse(_faults(wanted, degraded_model), code="bad_route")
        if not store.edit(capability, version=version, options=wanted, degraded_model=degraded_model):
            raise VersionConflict(f"The route {capability!r}", sent=version, current=load_route(capability).version)
        before, after = differences(_shown(row.options, row.degraded_model), _shown(wanted, degraded_model))
        record(author, "route.edit", f"route:{capability}", before=before, after=after)
        return load_route(capability)


def load_route(capability: str) -> store.RouteRow:
    """The route of a capability. Raises NotFound."""
    rows = store.load([capability]) if "\x00" not in capability else []
    if not rows:
        raise NotFound(f"There is no route for {capability!r}.", code="unknown_capability")
    return rows[0]


def _faults(options: Sequence[Option], degraded_model: str | None) -> tuple[FieldError, ...]:
    named = {name for option in options for name in option.resources}
    known = {row.name for row in resource_store.load(sorted(named))} if named else set()
    unknown = tuple(
        FieldError(("models", n, "resources", name), f"There is no resource named {name!r}.")
        for n, option in enumerate(options)
        for name in option.resources
        if name not in known
    )
    return (*faults_in_route(options, degraded_model), *unknown)


def _shown(options: Sequence[Option], degraded_model: str | None) -> dict[str, object]:
    models = [{"model": option.model, "resources": dict(option.resources)} for option in options]
    return {"models": models, "degraded_model": degraded_model}
