"""What a kill of a tenant, a pool or everything would reach."""

from __future__ import annotations

from scheduler.errors import FieldError, NotFound, Refused
from scheduler.policy.runs import KillScope
from scheduler.store import control
from scheduler.store import kills as store

EVERYTHING_ID = 0


def reached_by(scope: KillScope, name: str) -> int:
    """How many attempts a kill would tell to stop. Raises NotFound; Refused when everything is given a name."""
    return store.count_reached(scope, _id_of(scope, name))


def _id_of(scope: KillScope, name: str) -> int:
    if scope is KillScope.EVERYTHING:
        if name:
            detail = "Everything has no name; leave it empty."
            raise Refused(detail, code="bad_scope", errors=(FieldError(("name",), detail),))
        return EVERYTHING_ID
    known = "\x00" not in name
    rows = (control.load_tenants([name]) if scope is KillScope.TENANT else control.load_pools([name])) if known else []
    if not rows:
        detail = f"There is no {scope} named {name!r}." if name else f"Name the {scope}."
        raise NotFound(detail, code=f"unknown_{scope}", errors=(FieldError(("name",), detail),))
    return int(rows[0].id)
