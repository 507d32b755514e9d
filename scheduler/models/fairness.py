"""Whose turn it is. Tables, constraints and indexes only."""

from __future__ import annotations

from django.db import models
from django.db.models import UniqueConstraint


class FairCounter(models.Model):
    """A tenant's virtual counter in one class, and when it last started a task."""

    tenant_id = models.BigIntegerField()
    priority = models.SmallIntegerField()
    value = models.FloatField()
    last_start_at = models.DateTimeField()

    class Meta:
        db_table = "fair_counter"
        constraints = [UniqueConstraint(name="fair_counter_per_tenant_class", fields=["tenant_id", "priority"])]


class FairClock(models.Model):
    """The virtual time of a class."""

    priority = models.SmallIntegerField(primary_key=True)
    value = models.FloatField()

    class Meta:
        db_table = "fair_clock"


class ClassCredit(models.Model):
    """Starts that a class is owed in a pool."""

    pool_id = models.BigIntegerField()
    priority = models.SmallIntegerField()
    value = models.FloatField()

    class Meta:
        db_table = "class_credit"
        constraints = [UniqueConstraint(name="class_credit_per_pool_class", fields=["pool_id", "priority"])]
