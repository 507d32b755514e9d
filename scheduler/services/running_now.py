"""Submits a schedule's task once, now, because somebody wants it: beside its times, which stay as they are.

It asks neither what the schedule says of overlaps nor whether it is paused: whoever asks sees both.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

from django.db import transaction

from scheduler.policy import templates
from scheduler.policy.types import TaskId, TenantId
from scheduler.services.changes import Author, check_reason, record
from scheduler.services.schedules import find_schedule
from scheduler.services.submit import submit
from scheduler.services.ticking import TAG
from scheduler.store.dispatch import load_now


def run_schedule_now(tenant: TenantId, name: str, author: Author) -> TaskId:
    """Submit its task. Raises NotFound, and what a submission raises: Refused, Conflict, Unavailable."""
    check_reason(author)
    with transaction.atomic():
        row = find_schedule(tenant, name)
        template, at = templates.read(row.declared.task), datetime.fromtimestamp(load_now(), UTC)
        key = None if template.key is None else f"{template.key}@{at:%Y-%m-%dT%H:%M:%SZ}"
        tags = {**(template.tags or {}), TAG: name}
        wanted = replace(template, key=key, tags=tags, start_at=None, tolerance_s=None, on_miss=None)
        task = submit(tenant, wanted).id
        record(author, "schedule.run", f"schedule:{row.tenant_slug}/{name}", after={"task": task})
    return task
