"""What an operator asks to be done to many tasks, and what became of each. Tables, constraints and indexes only."""

from __future__ import annotations

from django.db import models
from django.db.models import CheckConstraint, Index, Q, UniqueConstraint
from django.db.models.functions import Now

from scheduler.policy.operations import OperationKind, OperationState


class Operation(models.Model):
    """One action on a frozen set of tasks, worked off at a rate. `tenant_id` NULL: of somebody who sees every tenant.

    `as_of` is the moment at which the set was looked at: what is newer is not in it. `credit` is how many items may be
    done at `worked_at`.
    """

    id = models.BigAutoField(primary_key=True)
    kind = models.CharField(max_length=8)
    state = models.CharField(max_length=8)
    filter = models.CharField(max_length=8000, blank=True)
    tenant_id = models.BigIntegerField(null=True)
    as_of = models.DateTimeField()
    actor = models.CharField(max_length=200)
    source = models.CharField(max_length=8)
    reason = models.CharField(max_length=500)
    key = models.CharField(max_length=200, null=True)  # noqa: DJ001 - NULL means 'no key' in the unique index
    rate = models.FloatField()
    total = models.IntegerField()
    applied = models.IntegerField(default=0, db_default=0)
    skipped = models.IntegerField(default=0, db_default=0)
    created_at = models.DateTimeField(db_default=Now())
    starts_at = models.DateTimeField()
    worked_at = models.DateTimeField(null=True)
    credit = models.FloatField(default=0.0, db_default=0.0)
    finished_at = models.DateTimeField(null=True)
    version = models.IntegerField(default=1, db_default=1)

    class Meta:
        db_table = "operation"
        constraints = [
            CheckConstraint(name="operation_kind_known", condition=Q(kind__in=[k.value for k in OperationKind])),
            CheckConstraint(name="operation_state_known", condition=Q(state__in=[s.value for s in OperationState])),
            UniqueConstraint(name="operation_once_per_key", fields=["actor", "key"], condition=Q(key__isnull=False)),
        ]
        indexes = [
            # store/sql/operations.sql: lock_due
            Index(name="operation_open", fields=["id"], condition=Q(state__in=["starting", "running"])),
            # store/sql/operations.sql: list_operations of a tenant
            Index(name="operation_by_tenant", fields=["tenant_id", "-id"], condition=Q(tenant_id__isnull=False)),
        ]


class OperationItem(models.Model):
    """One task of an operation. `outcome` NULL: not done yet; `why` says why it was skipped."""

    pk = models.CompositePrimaryKey("operation_id", "place")
    operation_id = models.BigIntegerField()
    place = models.IntegerField()
    task_id = models.BigIntegerField()
    outcome = models.CharField(max_length=8, null=True)  # noqa: DJ001 - NULL: not done yet
    why = models.CharField(max_length=16, null=True)  # noqa: DJ001 - NULL: it was not skipped
    done_at = models.DateTimeField(null=True)

    class Meta:
        db_table = "operation_item"
        indexes = [
            # store/sql/operations.sql: lock_next_items
            Index(name="operation_item_left", fields=["operation_id", "place"], condition=Q(outcome__isnull=True)),
            # store/sql/operations.sql: list_items by outcome
            Index(name="operation_item_skipped", fields=["operation_id", "place"], condition=Q(outcome="skipped")),
        ]
