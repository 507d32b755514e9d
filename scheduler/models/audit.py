"""Who changed what. Tables, constraints and indexes only."""

from __future__ import annotations

from django.db import models
from django.db.models import Index
from django.db.models.functions import Now


class AuditEvent(models.Model):
    """Who changed what, why, and what it was before and after. Appended in the change's own transaction.

    Never changed; only what prunes may remove it (a trigger refuses anything else). `address` and `request_id` say
    where it came from; NULL for what no request asked for.
    """

    at = models.DateTimeField(db_default=Now())
    actor = models.CharField(max_length=200)
    source = models.CharField(max_length=8)
    action = models.CharField(max_length=64)
    subject = models.CharField(max_length=200)
    reason = models.CharField(max_length=500, blank=True)
    before = models.JSONField(null=True)
    after = models.JSONField(null=True)
    address = models.GenericIPAddressField(null=True)
    request_id = models.CharField(max_length=64, null=True)  # noqa: DJ001 - NULL: no request asked for it

    class Meta:
        db_table = "audit_event"
        # store/sql/audit.sql: list_audit, by any one filter and by none
        indexes = [
            Index(name="audit_by_time", fields=["at", "id"]),
            Index(name="audit_by_actor", fields=["actor", "at", "id"]),
            Index(name="audit_by_action", fields=["action", "at", "id"]),
            Index(name="audit_by_subject", fields=["subject", "at", "id"]),
            Index(name="audit_by_source", fields=["source", "at", "id"]),
        ]
