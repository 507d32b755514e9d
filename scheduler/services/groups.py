"""Cancels a group at its owner's wish: waiting members at once, running ones by asking their attempts to stop."""

from __future__ import annotations

from django.db import transaction

from scheduler.errors import Conflict, NotFound
from scheduler.policy.types import TenantId
from scheduler.services.changes import Author, check_reason, record
from scheduler.services.graphs import spread
from scheduler.store import groups as store


def cancel_group(name: str, tenant: TenantId, *, actor: str, reason: str = "", source: str = "api") -> None:
    """Cancel what is left of a tenant's group; nobody new may join it.

    Members that are being moved at this moment are stopped by the next sweep. Raises NotFound; Conflict when the group
    was cancelled before.
    """
    author = Author(actor, source, reason)
    check_reason(author)
    with transaction.atomic():
        group = store.load(tenant, name) if "\x00" not in name else None
        if group is None:
            raise NotFound(f"There is no group {name!r}.", code="unknown_group")
        if not store.cancel(group.id):
            raise Conflict(f"The group {name!r} was cancelled already.", code="group_cancelled")
        spread((), [group.id])
        subject = f"group:{group.tenant}/{name}"
        record(author, "group.cancel", subject, before={"cancelled": False}, after={"cancelled": True})
