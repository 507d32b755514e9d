"""How pools and limits stood lately. Tables, constraints and indexes only."""

from __future__ import annotations

from django.db import models
from django.db.models import Index


class HistorySample(models.Model):
    """A pool or limit at a moment, from the picture of that moment. Kept for an hour."""

    pk = models.CompositePrimaryKey("kind", "name", "at")
    kind = models.CharField(max_length=5)
    name = models.CharField(max_length=64)
    at = models.DateTimeField()
    waiting = models.BigIntegerField()
    used = models.FloatField()
    oldest_s = models.FloatField(null=True)

    class Meta:
        db_table = "history_sample"
        # store/sql/history.sql: forget_history
        indexes = [Index(name="history_sample_by_age", fields=["at"])]
