"""Tasks and what is theirs alone. Tables, constraints and indexes only."""

from __future__ import annotations

from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import CheckConstraint, F, Index, Q, UniqueConstraint
from django.db.models.functions import Now

from scheduler.policy.fixed_starts import OnMiss
from scheduler.policy.states import TaskState
from scheduler.policy.types import PriorityClass


class Task(models.Model):
    """One narrow row per task: identity, order and state. What it carries is in `task_payload`."""

    id = models.BigAutoField(primary_key=True)
    tenant_id = models.BigIntegerField()
    pool_id = models.BigIntegerField()
    demand_id = models.BigIntegerField()
    priority = models.SmallIntegerField()
    state = models.CharField(max_length=13)
    attempts = models.SmallIntegerField(default=0, db_default=0)
    max_attempts = models.SmallIntegerField()
    replays = models.SmallIntegerField(default=0, db_default=0)
    created_at = models.DateTimeField(db_default=Now())
    ready_at = models.DateTimeField(null=True)
    due_at = models.DateTimeField(null=True)
    latest_start = models.DateTimeField(null=True)
    start_by = models.DateTimeField(null=True)
    finished_at = models.DateTimeField(null=True)
    expected_s = models.FloatField()
    amounts = ArrayField(models.FloatField())
    kind = models.CharField(max_length=64)
    key = models.CharField(max_length=200, null=True)  # noqa: DJ001 - NULL means 'no key' in the unique index
    # What it may cost at most, and below what it is not worth starting; NULL: nothing is priced. In nano-dollars.
    cost_nano = models.BigIntegerField(null=True)
    cost_min_nano = models.BigIntegerField(null=True)
    # What ties it to others, as bits of `policy.graph.Links`.
    links = models.SmallIntegerField(default=0, db_default=0)

    class Meta:
        db_table = "task"
        constraints = [
            CheckConstraint(name="task_state_known", condition=Q(state__in=[s.value for s in TaskState])),
            CheckConstraint(name="task_priority_known", condition=Q(priority__in=[p.value for p in PriorityClass])),
            CheckConstraint(name="task_attempts_in_bounds", condition=Q(attempts__lte=F("max_attempts"))),
            UniqueConstraint(name="task_key_per_tenant", fields=["tenant_id", "key"], condition=Q(key__isnull=False)),
        ]
        indexes = [
            # store/sql/dispatch.sql: read_control, read_lanes
            Index(
                name="task_ready_by_lane",
                fields=["pool_id", "priority", "tenant_id", "demand_id", "ready_at", "id"],
                condition=Q(state="ready"),
            ),
            # store/sql/dispatch.sql: read_lanes
            Index(
                name="task_ready_by_deadline",
                fields=["pool_id", "priority", "tenant_id", "demand_id", "latest_start", "id"],
                condition=Q(state="ready", latest_start__isnull=False),
            ),
            # store/sql/dispatch.sql: read_control. For statements that say that a priority is not below 0 alone:
            # the front of one lane is to be found by `task_ready_by_deadline`, whatever the statistics say.
            Index(
                name="task_ready_by_pressure",
                fields=["pool_id", "priority", "latest_start", "id"],
                condition=Q(state="ready", latest_start__isnull=False, priority__gte=0),
            ),
            # store/sql/promote.sql: promote_due
            Index(name="task_due", fields=["due_at", "id"], condition=Q(state__in=["scheduled", "retrying"])),
            # store/sql/dispatch.sql: read_control; store/sql/missing.sql: end_overdue, overdue_blocked
            Index(
                name="task_start_by",
                fields=["start_by", "id"],
                condition=Q(start_by__isnull=False, state__in=["blocked", "scheduled", "ready", "retrying"]),
            ),
            # store/sql/dispatch.sql: read_lanes; store/sql/run_tending.sql: waiting_steps. Steps of runs alone.
            Index(
                name="task_open_of_run",
                fields=["demand_id", "ready_at", "id"],
                condition=Q(demand_id__lt=0, state__in=["blocked", "scheduled", "ready", "retrying"]),
            ),
            # store/sql/routes.sql: count_routed, read_routed. The bit `ROUTED` of `links`, which is the highest.
            Index(name="task_routed", fields=["id"], condition=Q(state="ready", links__gte=8)),
            # store/sql/tasks.sql: list_tasks of state:failed,dead_lettered
            Index(
                name="task_failed",
                fields=["-finished_at", "-id"],
                condition=Q(state__in=["failed", "dead_lettered"]),
            ),
        ]


class TaskPayload(models.Model):
    """What a task carries and how it wants to be run. Written once."""

    task_id = models.BigIntegerField(primary_key=True)
    tenant_id = models.BigIntegerField()
    payload = models.JSONField()
    fingerprint = models.BinaryField(null=True)
    deadline_at = models.DateTimeField(null=True)
    timeout_s = models.FloatField(null=True)
    retry = models.JSONField(null=True)
    tags = models.JSONField(null=True)
    group_id = models.BigIntegerField(null=True)
    # How its cost was estimated: `policy.charges.Pricing`.
    pricing = models.JSONField(null=True)
    run_id = models.BigIntegerField(null=True)
    # Of one that asked for a capability: `store.routes.Routing`, changed when it is routed anew.
    routing = models.JSONField(null=True)

    class Meta:
        db_table = "task_payload"
        # Here and not on `task`, whose every change of state would have to enter them again.
        indexes = [
            # store/sql/tasks.sql: list_tasks_of_tenant
            Index(name="task_payload_by_tenant", fields=["tenant_id", "-task_id"]),
            # store/sql/groups.sql: waiting_members, count_members
            Index(name="task_payload_by_group", fields=["group_id", "task_id"], condition=Q(group_id__isnull=False)),
            # store/sql/runs.sql: count_steps
            Index(name="task_payload_by_run", fields=["run_id", "task_id"], condition=Q(run_id__isnull=False)),
        ]


class FixedStart(models.Model):
    """A start that was promised, with the slot that is booked for it. Kept after it, to count how many were met.

    `expires_at` is what the task's own expiry says, which holds also after a first start in time.
    """

    task_id = models.BigIntegerField(primary_key=True)
    pool_id = models.BigIntegerField()
    starts_at = models.DateTimeField()
    ends_at = models.DateTimeField()
    held_from = models.DateTimeField()
    tolerance_s = models.FloatField()
    on_miss = models.CharField(max_length=8)
    expires_at = models.DateTimeField(null=True)

    class Meta:
        db_table = "fixed_start"
        constraints = [
            CheckConstraint(name="fixed_start_on_miss_known", condition=Q(on_miss__in=[o.value for o in OnMiss])),
        ]
        indexes = [
            # store/sql/dispatch.sql: read_control
            Index(name="fixed_start_near", fields=["starts_at", "task_id"]),
            # store/sql/fixed_starts.sql: read_bookings
            Index(name="fixed_start_bookings", fields=["pool_id", "ends_at"]),
        ]


class TaskResult(models.Model):
    """What a succeeded task returned. Written once."""

    task_id = models.BigIntegerField(primary_key=True)
    result = models.JSONField()

    class Meta:
        db_table = "task_result"
