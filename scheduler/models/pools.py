"""Where work runs. Tables, constraints and indexes only."""

from __future__ import annotations

from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import CheckConstraint, F, Index, Q, Value
from django.db.models.functions import Now

from scheduler.models.choices import choices
from scheduler.policy.bounds import Overflow
from scheduler.policy.graph import UnknownDependency


class Pool(models.Model):
    """A set of slots that run tasks through one executor, with its retry, lease and depth settings.

    `slo` maps a class to the seconds that it may wait. `autoscale` NULL: `slots` is what an operator set; otherwise how
    the number of slots follows the demand, as the fields of `AutoscaleSettings`. `resume_at` NULL: a
    pause ends by hand.
    """

    name = models.CharField(max_length=64, unique=True)
    executor = models.CharField(max_length=16, choices=[(e, e) for e in ("python", "llm", "remote", "http")])
    config = models.JSONField(default=dict)
    slots_min = models.PositiveIntegerField(default=1)
    slots_max = models.PositiveIntegerField(default=10)
    slots = models.PositiveIntegerField(default=10)
    max_attempts = models.PositiveSmallIntegerField(default=3)
    backoff_initial_s = models.FloatField(default=1.0)
    backoff_multiplier = models.FloatField(default=2.0)
    backoff_max_s = models.FloatField(default=60.0)
    lease_ttl_s = models.FloatField(default=30.0)
    timeout_s = models.FloatField(null=True, blank=True)
    duration_default_s = models.FloatField(default=1.0)
    unknown_dependency = models.CharField(
        max_length=6, default="reject", db_default="reject", choices=choices(UnknownDependency)
    )
    await_timeout_s = models.FloatField(null=True, blank=True)
    slo = models.JSONField(null=True, blank=True)
    autoscale = models.JSONField(null=True, blank=True)
    max_pending = models.PositiveIntegerField(default=100_000, db_default=100_000)
    overflow = models.CharField(max_length=11, default="reject", db_default="reject", choices=choices(Overflow))
    allow_degraded = models.BooleanField(default=False, db_default=False)
    reservable_fraction = models.FloatField(default=0.5, db_default=0.5)
    worker_second_nano = models.BigIntegerField(null=True, blank=True)
    paused_at = models.DateTimeField(null=True, blank=True)
    paused_by = models.CharField(max_length=200, blank=True)
    pause_reason = models.CharField(max_length=500, blank=True)
    resume_at = models.DateTimeField(null=True, blank=True)
    version = models.BigIntegerField(default=1, db_default=1)
    created_at = models.DateTimeField(db_default=Now(), editable=False)

    class Meta:
        db_table = "pool"
        permissions = [
            ("view_console", "May see the operator console"),
            ("operate_pool", "May pause, drain, resume and resize pools"),
            ("view_payload", "May see what tasks carry and return"),
            ("edit_resource_limit", "May edit, override, pause and resume shared limits"),
            ("operate_task", "May cancel, replay and discard tasks, one or many"),
            ("operate_run", "May pause, resume and kill runs"),
            ("edit_schedule", "May create, edit, pause and remove schedules"),
            ("operate_worker", "May drain workers"),
            ("edit_tenant", "May edit weights and quotas of tenants, and suspend them"),
            ("edit_budget", "May edit budgets and prices"),
            ("top_up_budget", "May raise a budget for a while"),
            ("edit_access", "May create and revoke tokens, webhooks and alert targets"),
            ("view_audit", "May read and export the audit"),
        ]
        constraints = [
            CheckConstraint(
                name="pool_slots_in_range", condition=Q(slots_min__lte=F("slots")) & Q(slots__lte=F("slots_max"))
            ),
            CheckConstraint(name="pool_overflow_known", condition=Q(overflow__in=[o.value for o in Overflow])),
            CheckConstraint(name="pool_attempts_at_least_one", condition=Q(max_attempts__gte=1)),
            CheckConstraint(
                name="pool_reservable_fraction_in_range",
                condition=Q(reservable_fraction__gte=0, reservable_fraction__lte=1),
            ),
            CheckConstraint(name="pool_lease_ttl_at_least_one_s", condition=Q(lease_ttl_s__gte=1)),
            CheckConstraint(
                name="pool_unknown_dependency_known",
                condition=Q(unknown_dependency__in=[u.value for u in UnknownDependency]),
            ),
            CheckConstraint(
                name="pool_backoff_not_negative", condition=Q(backoff_initial_s__gte=0, backoff_max_s__gte=0)
            ),
        ]

    def __str__(self) -> str:
        return self.name


class PoolState(models.Model):
    """How overloaded a pool is (`policy.overload`), by the leader. `degrades`: attempts are to answer only."""

    pool = models.OneToOneField(Pool, primary_key=True, on_delete=models.CASCADE, related_name="state")
    level = models.SmallIntegerField(db_default=0)
    level_since = models.DateTimeField(db_default=Now())
    above_since = models.DateTimeField(null=True)
    calm_since = models.DateTimeField(null=True)
    seen_at = models.DateTimeField(db_default=Now())
    degrades = models.BooleanField(db_default=False)
    predicted_s = models.FloatField(null=True)
    started_per_s = models.FloatField(db_default=0.0)

    class Meta:
        db_table = "pool_state"


class PoolScale(models.Model):
    """What the autoscaler of a pool decided last, in `view`, and what it has to remember, in `memory`.

    `desired` is what a pool of remote workers is to have; a local pool has it in `pool.slots` too.
    """

    pool = models.OneToOneField(Pool, primary_key=True, on_delete=models.CASCADE, related_name="scale")
    desired = models.PositiveIntegerField(null=True)
    as_of = models.DateTimeField(db_default=Now())
    view = models.JSONField(null=True)
    memory = models.JSONField(null=True)

    class Meta:
        db_table = "pool_scale"


class Worker(models.Model):
    """A connected process that runs tasks; its id is random per boot. `slots` maps pool id to slots offered now.

    A remote worker is connected through a web process (`gateway_id`), may take one tenant's work alone, has labels
    (name=value, sorted), and said in `declared` what it offers while it is ready for work.
    """

    id = models.UUIDField(primary_key=True)
    name = models.CharField(max_length=200)
    kind = models.CharField(max_length=8, choices=[("engine", "engine"), ("remote", "remote")])
    slots = models.JSONField(default=dict)
    draining = models.BooleanField(default=False)
    declared = models.JSONField(default=dict, db_default=Value({}, models.JSONField()))
    tenant_id = models.BigIntegerField(null=True)
    labels = ArrayField(models.CharField(max_length=130), null=True)
    gateway_id = models.UUIDField(null=True)
    started_at = models.DateTimeField(db_default=Now())
    seen_at = models.DateTimeField(db_default=Now())

    class Meta:
        db_table = "worker"
        # store/sql/worker_pages.sql: list_workers
        indexes = [Index(name="worker_by_name", fields=["name", "id"])]


class Leader(models.Model):
    """Who plans. Only a matter of quality: a second planner would do no harm."""

    name = models.CharField(max_length=32, primary_key=True)
    holder = models.UUIDField(null=True)
    term = models.BigIntegerField(default=0)
    expires_at = models.DateTimeField(db_default=Now())

    class Meta:
        db_table = "leader"
