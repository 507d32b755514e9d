"""Tables, constraints and indexes; no behaviour.

Hot tables (`task`, `lease`, `attempt`, payload and result) carry plain ids instead of foreign keys: rows they point to
are never deleted while in use, and a key check per insert would cost as much as the insert. Everything in cold tables
is a real foreign key. Triggers in the migrations keep `task_delta` exact; see `store/sql/counts.sql`.
"""

from __future__ import annotations

from django.contrib.postgres.fields import ArrayField
from django.contrib.postgres.indexes import BrinIndex
from django.db import models
from django.db.models import CheckConstraint, F, Index, Q, UniqueConstraint
from django.db.models.functions import Now

from scheduler.policy.bounds import Overflow
from scheduler.policy.fixed_starts import OnMiss
from scheduler.policy.graph import EdgeCondition, JoinPolicy, UnknownDependency
from scheduler.policy.schedules import CatchUp, Fate, Overlap
from scheduler.policy.states import TaskState
from scheduler.policy.types import Outcome, PriorityClass, ResourceKind


def _choices(values: type) -> list[tuple[str, str]]:
    return [(str(v.value), str(v.value)) for v in values]  # type: ignore[attr-defined]  # any Enum class


class Tenant(models.Model):
    """Who work belongs to, and whose fair share and quotas it counts against."""

    slug = models.SlugField(max_length=64, unique=True)
    name = models.CharField(max_length=200, blank=True)
    weight = models.FloatField(default=1.0, db_default=1.0)
    status = models.CharField(
        max_length=12, default="active", choices=[("active", "active"), ("suspended", "suspended")]
    )
    time_zone = models.CharField(max_length=64, default="UTC")
    start_rate = models.FloatField(null=True, blank=True)
    start_burst = models.FloatField(null=True, blank=True)
    max_in_flight = models.PositiveIntegerField(null=True, blank=True)
    max_queued = models.PositiveIntegerField(null=True, blank=True)
    version = models.BigIntegerField(default=1, db_default=1)
    created_at = models.DateTimeField(db_default=Now(), editable=False)

    class Meta:
        db_table = "tenant"
        constraints = [
            CheckConstraint(name="tenant_weight_not_negative", condition=Q(weight__gte=0)),
            CheckConstraint(name="tenant_status_known", condition=Q(status__in=["active", "suspended"])),
            CheckConstraint(
                name="tenant_start_rate_has_a_burst",
                condition=Q(start_rate__isnull=True, start_burst__isnull=True)
                | Q(start_rate__gte=0, start_burst__gte=1),
            ),
        ]

    def __str__(self) -> str:
        return self.slug


class TenantState(models.Model):
    """What is left of a tenant's start-rate bucket. Only tenants that have a start rate and used it have a row."""

    tenant = models.OneToOneField(Tenant, primary_key=True, on_delete=models.CASCADE, related_name="state")
    level = models.FloatField()
    level_at = models.DateTimeField()

    class Meta:
        db_table = "tenant_state"


class Pool(models.Model):
    """A set of slots that run tasks through one executor, with its retry, lease and depth settings.

    `slo` maps a class to the seconds that it may wait. `autoscale` NULL: `slots` is what an operator set; otherwise how
    the number of slots follows the demand, as the fields of `AutoscaleSettings`.
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
        max_length=6, default="reject", db_default="reject", choices=_choices(UnknownDependency)
    )
    await_timeout_s = models.FloatField(null=True, blank=True)
    slo = models.JSONField(null=True, blank=True)
    autoscale = models.JSONField(null=True, blank=True)
    max_pending = models.PositiveIntegerField(default=100_000, db_default=100_000)
    overflow = models.CharField(max_length=11, default="reject", db_default="reject", choices=_choices(Overflow))
    allow_degraded = models.BooleanField(default=False, db_default=False)
    reservable_fraction = models.FloatField(default=0.5, db_default=0.5)
    paused_at = models.DateTimeField(null=True, blank=True)
    paused_by = models.CharField(max_length=200, blank=True)
    pause_reason = models.CharField(max_length=500, blank=True)
    version = models.BigIntegerField(default=1, db_default=1)
    created_at = models.DateTimeField(db_default=Now(), editable=False)

    class Meta:
        db_table = "pool"
        permissions = [
            ("view_console", "May see the operator console"),
            ("operate_pool", "May pause and resume pools"),
            ("view_payload", "May see what tasks carry and return"),
            ("edit_resource_limit", "May edit the limits of shared resources"),
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


class Resource(models.Model):
    """A limit that all pools share, as declared. Its state is in `resource_state`, so no use can change the limit.

    `ceilings` maps a class to the part of the burst that it must leave free. What an override sets goes before what is
    declared until `override_until` (NULL: until it is lifted).
    """

    name = models.CharField(max_length=64, unique=True)
    kind = models.CharField(max_length=16, choices=_choices(ResourceKind))
    rate = models.FloatField(default=0.0)
    burst = models.FloatField(default=0.0)
    permits = models.PositiveIntegerField(default=0)
    margin = models.FloatField(default=0.02)
    ceilings = models.JSONField(null=True, blank=True)
    override_rate = models.FloatField(null=True, blank=True)
    override_burst = models.FloatField(null=True, blank=True)
    override_permits = models.PositiveIntegerField(null=True, blank=True)
    override_until = models.DateTimeField(null=True, blank=True)
    version = models.BigIntegerField(default=1, db_default=1)
    created_at = models.DateTimeField(db_default=Now(), editable=False)

    class Meta:
        db_table = "resource"
        constraints = [
            CheckConstraint(name="resource_kind_known", condition=Q(kind__in=[k.value for k in ResourceKind])),
            CheckConstraint(name="resource_limits_not_negative", condition=Q(rate__gte=0, burst__gte=0, margin__gte=0)),
            CheckConstraint(name="resource_margin_below_one", condition=Q(margin__lt=1)),
        ]

    def __str__(self) -> str:
        return self.name


class ResourceState(models.Model):
    """What is left of a token bucket and what throttling taught us. One narrow hot row per resource."""

    resource = models.OneToOneField(Resource, primary_key=True, on_delete=models.CASCADE, related_name="state")
    level = models.FloatField()
    level_at = models.DateTimeField(db_default=Now())
    factor = models.FloatField(default=1.0, db_default=1.0)
    blocked_until = models.DateTimeField(null=True)
    taken_total = models.FloatField(default=0.0, db_default=0.0)

    class Meta:
        db_table = "resource_state"


class Demand(models.Model):
    """A set of named resources (ascending ids) that tasks need together. Never changed, never deleted."""

    resource_ids = ArrayField(models.BigIntegerField(), unique=True)

    class Meta:
        db_table = "demand"


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
            # store/sql/promote.sql: promote_due
            Index(name="task_due", fields=["due_at", "id"], condition=Q(state__in=["scheduled", "retrying"])),
            # store/sql/dispatch.sql: read_control; store/sql/missing.sql: end_overdue, overdue_blocked
            Index(
                name="task_start_by",
                fields=["start_by", "id"],
                condition=Q(start_by__isnull=False, state__in=["blocked", "scheduled", "ready", "retrying"]),
            ),
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

    class Meta:
        db_table = "task_payload"
        # Here and not on `task`, whose every change of state would have to enter them again.
        indexes = [
            # store/sql/tasks.sql: list_tasks_of_tenant
            Index(name="task_payload_by_tenant", fields=["tenant_id", "-task_id"]),
            # store/sql/groups.sql: waiting_members, count_members
            Index(name="task_payload_by_group", fields=["group_id", "task_id"], condition=Q(group_id__isnull=False)),
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


class TaskEdge(models.Model):
    """A task comes after another. Decided once, when the parent ends: `met` is NULL while the edge is open.

    `parent_id` is NULL while a key is awaited that nobody has used. `linked`: the parent is known to carry the flag
    that makes its end look here; until then the sweep looks after the edge.
    """

    pk = models.CompositePrimaryKey("child_id", "place")
    child_id = models.BigIntegerField()
    place = models.SmallIntegerField()
    parent_id = models.BigIntegerField(null=True)
    key = models.CharField(max_length=200, null=True)  # noqa: DJ001 - NULL: the parent was named by id
    condition = models.CharField(max_length=8)
    met = models.BooleanField(null=True)
    linked = models.BooleanField()
    await_until = models.DateTimeField(null=True)

    class Meta:
        db_table = "task_edge"
        constraints = [
            CheckConstraint(
                name="task_edge_condition_known", condition=Q(condition__in=[c.value for c in EdgeCondition])
            ),
        ]
        indexes = [
            # store/sql/graphs.sql: lock_followers, decide_followers
            Index(name="task_edge_open", fields=["parent_id"], condition=Q(met__isnull=True)),
            # store/sql/graphs.sql: read_unlinked
            Index(name="task_edge_unlinked", fields=["child_id", "place"], condition=Q(linked=False)),
        ]


class TaskGroup(models.Model):
    """Tasks that are looked at and cancelled together. `cause`: the member whose failure ended a group that fails fast.

    `closed_at` is set when no member of a cancelled group is left to be stopped.
    """

    tenant = models.ForeignKey(Tenant, on_delete=models.PROTECT)
    name = models.CharField(max_length=64)
    join = models.CharField(max_length=11, choices=_choices(JoinPolicy))
    created_at = models.DateTimeField(db_default=Now())
    cancelled_at = models.DateTimeField(null=True)
    cause = models.BigIntegerField(null=True)
    closed_at = models.DateTimeField(null=True)

    class Meta:
        db_table = "task_group"
        constraints = [
            UniqueConstraint(name="task_group_per_tenant", fields=["tenant", "name"]),
            CheckConstraint(name="task_group_join_known", condition=Q(join__in=[j.value for j in JoinPolicy])),
        ]
        indexes = [
            # store/sql/groups.sql: read_closing
            Index(
                name="task_group_closing",
                fields=["id"],
                condition=Q(cancelled_at__isnull=False, closed_at__isnull=True),
            ),
        ]


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

    class Meta:
        db_table = "lease"


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
            # store/sql/forecast.sql: read_ended. Summaries of pages cost a settlement nothing.
            BrinIndex(name="attempt_ended", fields=["finished_at"], autosummarize=True, pages_per_range=16),
        ]


class LearnedDuration(models.Model):
    """How long attempts of a kind take in a pool: a fading histogram, and its p90 for the expected duration."""

    pool_id = models.BigIntegerField()
    kind = models.CharField(max_length=64)
    bins = models.JSONField()
    p90_s = models.FloatField()

    class Meta:
        db_table = "learned_duration"
        constraints = [UniqueConstraint(name="learned_duration_per_pool_and_kind", fields=["pool_id", "kind"])]


class ForecastState(models.Model):
    """What the forecaster said last (`published`) and what a new leader's goes on with (`learned`)."""

    name = models.CharField(max_length=16, primary_key=True)
    body = models.JSONField()

    class Meta:
        db_table = "forecast_state"


class ForecastLog(models.Model):
    """A sampled prediction, as the runs gave it and as it was published, and how long the task then waited."""

    pool_id = models.BigIntegerField()
    priority = models.SmallIntegerField()
    task_id = models.BigIntegerField()
    said_at = models.DateTimeField(db_default=Now())
    ready_at = models.FloatField()
    raw_p50_s = models.FloatField()
    raw_p90_s = models.FloatField()
    p50_s = models.FloatField()
    p90_s = models.FloatField()
    wait_s = models.FloatField(null=True)

    class Meta:
        db_table = "forecast_log"
        # store/sql/forecast.sql: resolve_log
        indexes = [Index(name="forecast_log_open", fields=["id"], condition=Q(wait_s__isnull=True))]


class TaskCount(models.Model):
    """How many tasks of a lane are in a state, folded. The truth at any moment is this plus `task_delta`."""

    pool_id = models.BigIntegerField()
    priority = models.SmallIntegerField()
    tenant_id = models.BigIntegerField()
    demand_id = models.BigIntegerField()
    counter = models.CharField(max_length=13)
    n = models.BigIntegerField()

    class Meta:
        db_table = "task_count"
        constraints = [
            UniqueConstraint(
                name="task_count_per_lane_and_counter",
                fields=["pool_id", "priority", "tenant_id", "demand_id", "counter"],
            ),
        ]


class TaskDelta(models.Model):
    """Changes to the counts, one row per statement and lane, appended by the triggers on `task`."""

    pool_id = models.BigIntegerField()
    priority = models.SmallIntegerField()
    tenant_id = models.BigIntegerField()
    demand_id = models.BigIntegerField()
    counter = models.CharField(max_length=13)
    n = models.BigIntegerField()

    class Meta:
        db_table = "task_delta"
        indexes = [
            # store/sql/dispatch.sql: read_control
            Index(
                name="task_delta_arrivals",
                fields=["pool_id", "priority", "tenant_id", "demand_id"],
                condition=Q(counter="ready", n__gt=0),
            ),
        ]


class WaitingDepth(models.Model):
    """How much waits and runs in a pool or for a tenant, folded with the counts. The truth: this plus `task_delta`."""

    pk = models.CompositePrimaryKey("scope", "scope_id")
    scope = models.CharField(max_length=6)
    scope_id = models.BigIntegerField()
    waiting = models.BigIntegerField()
    running = models.BigIntegerField()

    class Meta:
        db_table = "waiting_depth"


class FoldMark(models.Model):
    """The newest task id before the last fold, and before the one before: at most the difference came since."""

    id = models.SmallIntegerField(primary_key=True)
    last_task_id = models.BigIntegerField()
    before_task_id = models.BigIntegerField()

    class Meta:
        db_table = "fold_mark"


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


class SetAside(models.Model):
    """Part of a bucket's refill kept for one task of a class that is owed its share, since a time."""

    resource_id = models.BigIntegerField()
    priority = models.SmallIntegerField()
    task_id = models.BigIntegerField()
    amount = models.FloatField()
    since = models.DateTimeField()

    class Meta:
        db_table = "set_aside"
        constraints = [UniqueConstraint(name="set_aside_per_bucket_class", fields=["resource_id", "priority"])]


class ClassCredit(models.Model):
    """Starts that a class is owed in a pool."""

    pool_id = models.BigIntegerField()
    priority = models.SmallIntegerField()
    value = models.FloatField()

    class Meta:
        db_table = "class_credit"
        constraints = [UniqueConstraint(name="class_credit_per_pool_class", fields=["pool_id", "priority"])]


class Worker(models.Model):
    """A connected process that runs tasks; its id is random per boot. `slots` maps pool id to slots offered."""

    id = models.UUIDField(primary_key=True)
    name = models.CharField(max_length=200)
    kind = models.CharField(max_length=8, choices=[("engine", "engine"), ("remote", "remote")])
    slots = models.JSONField(default=dict)
    draining = models.BooleanField(default=False)
    started_at = models.DateTimeField(db_default=Now())
    seen_at = models.DateTimeField(db_default=Now())

    class Meta:
        db_table = "worker"


class Leader(models.Model):
    """Who plans. Only a matter of quality: a second planner would do no harm."""

    name = models.CharField(max_length=32, primary_key=True)
    holder = models.UUIDField(null=True)
    term = models.BigIntegerField(default=0)
    expires_at = models.DateTimeField(db_default=Now())

    class Meta:
        db_table = "leader"


class Schedule(models.Model):
    """A task that is submitted again and again, at the times that a cron expression names in a time zone.

    `next_at` is the nominal time that is decided next, NULL when the expression names none any more. It is computed
    from the one before, so that it passes every time once. `last_task_id`: the task of the newest occurrence.
    """

    tenant = models.ForeignKey(Tenant, on_delete=models.PROTECT)
    name = models.CharField(max_length=64)
    cron = models.CharField(max_length=200)
    time_zone = models.CharField(max_length=64)
    task = models.JSONField()
    overlap = models.CharField(max_length=16, choices=_choices(Overlap))
    catch_up = models.CharField(max_length=4, choices=_choices(CatchUp))
    next_at = models.DateTimeField(null=True)
    last_task_id = models.BigIntegerField(null=True)
    paused_at = models.DateTimeField(null=True, blank=True)
    paused_by = models.CharField(max_length=200, blank=True)
    pause_reason = models.CharField(max_length=500, blank=True)
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
        ]

    def __str__(self) -> str:
        return self.name


class Occurrence(models.Model):
    """What became of one nominal time of a schedule; there is at most one for each."""

    schedule = models.ForeignKey(Schedule, on_delete=models.CASCADE, related_name="occurrences")
    nominal_at = models.DateTimeField()
    fate = models.CharField(max_length=9, choices=_choices(Fate))
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


class ApiToken(models.Model):
    """A bearer token `cq_<id>_<secret>`; only the SHA-256 of the secret is kept."""

    public_id = models.CharField(max_length=16, unique=True)
    secret_sha256 = models.BinaryField()
    name = models.CharField(max_length=200, blank=True)
    tenant = models.ForeignKey(Tenant, null=True, blank=True, on_delete=models.PROTECT)
    scopes = ArrayField(models.CharField(max_length=16))
    pools = ArrayField(models.CharField(max_length=64), null=True, blank=True)
    expires_at = models.DateTimeField(null=True, blank=True)
    revoked_at = models.DateTimeField(null=True, blank=True)
    created_at = models.DateTimeField(db_default=Now(), editable=False)

    class Meta:
        db_table = "api_token"

    def __str__(self) -> str:
        return f"{self.name or 'token'} cq_{self.public_id}"


class IdempotencyRecord(models.Model):
    """The answer that a POST with an Idempotency-Key got, so that a repeated one gets the same."""

    scope = models.CharField(max_length=100)
    key = models.CharField(max_length=200)
    fingerprint = models.BinaryField()
    status = models.PositiveSmallIntegerField()
    body = models.JSONField()
    created_at = models.DateTimeField(db_default=Now())

    class Meta:
        db_table = "idempotency_record"
        constraints = [UniqueConstraint(name="idempotency_key_per_scope", fields=["scope", "key"])]
        # store/sql/control.sql: prune_idempotency_records
        indexes = [Index(name="idempotency_by_age", fields=["created_at"])]


class Snapshot(models.Model):
    """The picture that the console shows, written once per second by the leader."""

    seq = models.BigAutoField(primary_key=True)
    as_of = models.DateTimeField(db_default=Now())
    body = models.JSONField()

    class Meta:
        db_table = "snapshot"


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
