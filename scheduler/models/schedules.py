"""Work that comes by the clock. Tables, constraints and indexes only."""

from __future__ import annotations

from django.db import models
from django.db.models import CheckConstraint, Index, Q, UniqueConstraint
from django.db.models.functions import Now

from scheduler.models.choices import choices
from scheduler.models.tenants import Tenant
from scheduler.policy.schedules import CatchUp, Fate, Overlap


class Schedule(models.Model):
    """A task that is submitted again and again, at the times that a cron expression names in a time zone.

    `next_at` is the nominal time that is decided next, NULL when the expression names none any more. It is computed
    from the one before, so that it passes every time once. `last_task_id`: the task of the newest occurrence.
    `fault` says why it could not be decided at `faulted_at`; it is tried again a while later.
    """

    tenant = models.ForeignKey(Tenant, on_delete=models.PROTECT)
    name = models.CharField(max_length=64)
    cron = models.CharField(max_length=200)
    time_zone = models.CharField(max_length=64)
    task = models.JSONField()
    overlap = models.CharField(max_length=16, choices=choices(Overlap))
    catch_up = models.CharField(max_length=4, choices=choices(CatchUp))
    next_at = models.DateTimeField(null=True)
    last_task_id = models.BigIntegerField(null=True)
    paused_at = models.DateTimeField(null=True, blank=True)
    paused_by = models.CharField(max_length=200, blank=True)
    pause_reason = models.CharField(max_length=500, blank=True)
    fault = models.CharField(max_length=500, blank=True, default="", db_default="")
    faulted_at = models.DateTimeField(null=True, blank=True)
    version = models.BigIntegerField(default=1, db_default=1)
    created_at = models.DateTimeField(db_default=Now(), editable=False)

    class Meta:
        db_table = "schedule"
        constraints = [
            UniqueConstraint(name="schedule_per_tenant", fields=["tenant", "name"]),
            CheckConstraint(name="schedule_overlap_known", condition=Q(overlap__in=[o.value for o in Overlap])),
            CheckConstraint(name="schedule_catch_up_known", condition=Q(catch_up__in=[c.value for c in CatchUp])),
        ]
        indexes = [
            # store/sql/schedules.sql: read_due, next_nominal
            Index(name="schedule_due", fields=["next_at", "id"], condition=Q(paused_at__isnull=True)),
            # store/sql/search.sql: named
            Index(name="schedule_by_name", fields=["name"], opclasses=["varchar_pattern_ops"]),
        ]

    def __str__(self) -> str:
        return self.name


class Occurrence(models.Model):
    """What became of one nominal time of a schedule; there is at most one for each."""

    schedule = models.ForeignKey(Schedule, on_delete=models.CASCADE, related_name="occurrences")
    nominal_at = models.DateTimeField()
    fate = models.CharField(max_length=9, choices=choices(Fate))
    reason = models.CharField(max_length=500, blank=True)
    task_id = models.BigIntegerField(null=True)
    decided_at = models.DateTimeField(db_default=Now())

    class Meta:
        db_table = "occurrence"
        constraints = [
            UniqueConstraint(name="occurrence_once", fields=["schedule", "nominal_at"]),
            CheckConstraint(name="occurrence_fate_known", condition=Q(fate__in=[f.value for f in Fate])),
        ]
        indexes = [
            # store/sql/schedules.sql: read_waiting
            Index(name="occurrence_queued", fields=["schedule", "nominal_at"], condition=Q(fate="queued")),
            # store/sql/schedules.sql: forget_occurrences
            Index(name="occurrence_by_age", fields=["decided_at"]),
        ]
