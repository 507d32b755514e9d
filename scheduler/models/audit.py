"""Who changed what. Tables, constraints and indexes only."""

from __future__ import annotations

from django.db import models
from django.db.models import Index
from django.db.models.functions import Now


class AuditEvent(models.Model):
    """Who changed what, why, and what it was before and after. Appended in the change's own transaction."""

    at = models.DateTimeField(db_default=Now())
    actor = models.CharField(max_length=200)
    source = models.CharField(max_length=8)
    action = models.CharField(max_length=64)
    subject = models.CharField(max_length=200)
    reason = models.CharField(max_length=500, blank=True)
    before = models.JSONField(null=True)
    after = models.JSONField(null=True)

    class Meta:
        db_table = "audit_event"
        indexes = [Index(name="audit_by_subject", fields=["subject", "-id"])]
