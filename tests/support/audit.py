"""What tests do to the audit that the product never does: the table refuses it but for what prunes."""

from __future__ import annotations

from datetime import timedelta

from django.db import connection, transaction

from scheduler.models import AuditEvent


def empty_audit() -> None:
    """Remove every event."""
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("SELECT set_config('cronoq.prunes_audit', 'on', true)")
        AuditEvent.objects.all().delete()
        cursor.execute("SELECT set_config('cronoq.prunes_audit', 'off', true)")


def age_audit(by: timedelta) -> None:
    """Let every event have happened earlier."""
    events = list(AuditEvent.objects.order_by("id"))
    empty_audit()
    for event in events:
        event.at -= by
    AuditEvent.objects.bulk_create(events)
