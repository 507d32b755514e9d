"""What is in flight now, and what was. Tables, constraints and indexes only."""

from __future__ import annotations

from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import CheckConstraint, Index, Q

from scheduler.policy.types import Outcome


class Lease(models.Model):
    """What is in flight now. `lease_id` is the fence: a report with an id that is not here changes nothing."""

    lease_id = models.BigAutoField(primary_key=True)
    task_id = models.BigIntegerField(unique=True)
    attempt = models.SmallIntegerField()
    pool_id = models.BigIntegerField()
    tenant_id = models.BigIntegerField()
    demand_id = models.BigIntegerField()
    priority = models.SmallIntegerField()
    worker_id = models.UUIDField()
    amounts = ArrayField(models.FloatField())
    ready_at = models.DateTimeField()
    started_at = models.DateTimeField()
    expires_at = models.DateTimeField()
    timeout_at = models.DateTimeField(null=True)
    cancel_requested_at = models.DateTimeField(null=True)
    picked_up = models.BooleanField(default=False)
    degraded = models.BooleanField(default=False, db_default=False)
    # Nano-dollars held on these budgets until it ends; NULL: nothing is priced. `capped`: it must not use more.
    reserved_nano = models.BigIntegerField(null=True)
    budget_ids = ArrayField(models.BigIntegerField(), null=True)
    capped = models.BooleanField(default=False, db_default=False)
    # Of a task that asked for a capability: the model of this attempt, and its place in the route (0: the first).
    model = models.CharField(max_length=200, null=True)  # noqa: DJ001 - NULL: it was not routed
    route_id = models.BigIntegerField(null=True)
    route_choice = models.SmallIntegerField(null=True)
    # It has rows in `lease_charge`: whoever ends it looks for them.
    charged = models.BooleanField(default=False, db_default=False)

    class Meta:
        db_table = "lease"


class LeaseCharge(models.Model):
    """What a running attempt said that a call of it has used. Moved into the attempt's bill when its lease ends."""

    pk = models.CompositePrimaryKey("lease_id", "call")
    lease_id = models.BigIntegerField()
    call = models.CharField(max_length=100)
    usage = models.JSONField()

    class Meta:
        db_table = "lease_charge"


class Attempt(models.Model):
    """One row per finished attempt, written when its lease ends; an unfinished attempt is its lease."""

    # store/sql/tasks.sql: attempts_of_task. One index for the key and for the way attempts are looked up.
    pk = models.CompositePrimaryKey("task_id", "lease_id")
    task_id = models.BigIntegerField()
    lease_id = models.BigIntegerField()
    number = models.SmallIntegerField()
    pool_id = models.BigIntegerField()
    tenant_id = models.BigIntegerField()
    priority = models.SmallIntegerField()
    worker_id = models.UUIDField()
    ready_at = models.DateTimeField()
    started_at = models.DateTimeField()
    finished_at = models.DateTimeField()
    outcome = models.CharField(max_length=10)
    failure_class = models.CharField(max_length=16, null=True)  # noqa: DJ001 - NULL: it did not fail
    message = models.CharField(max_length=2000, null=True)  # noqa: DJ001 - NULL: it did not fail
    retry_after_s = models.FloatField(null=True)
    usage = models.JSONField(null=True)
    degraded = models.BooleanField(default=False, db_default=False)
    model = models.CharField(max_length=200, null=True)  # noqa: DJ001 - NULL: it was not routed
    route_id = models.BigIntegerField(null=True)
    route_choice = models.SmallIntegerField(null=True)

    class Meta:
        db_table = "attempt"
        constraints = [
            CheckConstraint(name="attempt_outcome_known", condition=Q(outcome__in=[o.value for o in Outcome])),
        ]
        indexes = [
            # store/sql/overview.sql: recent_failures
            Index(
                name="attempt_failures",
                fields=["-finished_at", "-lease_id"],
                condition=Q(outcome__in=["failed", "timed_out", "lost"]),
            ),
            # store/sql/forecast.sql: read_ended; store/sql/waits.sql: observed_waits. A summary of blocks would cost a
            # settlement less, but those that are asked for while autovacuum is busy are forgotten until the table has
            # grown by a fifth.
            Index(name="attempt_by_end", fields=["finished_at"]),
        ]


class AttemptFault(models.Model):
    """What a Python function raised in an attempt, where somebody may ask for it: `module.Class`, and the traceback."""

    lease_id = models.BigIntegerField(primary_key=True)
    task_id = models.BigIntegerField()
    exception = models.CharField(max_length=300)
    traceback = models.TextField()

    class Meta:
        db_table = "attempt_fault"
        # store/sql/faults.sql: faults_of_task
        indexes = [Index(name="attempt_fault_by_task", fields=["task_id", "lease_id"])]
