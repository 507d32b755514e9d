"""What may be spent, what was, and at which prices. All amounts are nano-dollars. Tables, constraints, indexes only."""

from __future__ import annotations

from django.contrib.postgres.fields import ArrayField
from django.contrib.postgres.indexes import BrinIndex
from django.db import models
from django.db.models import CheckConstraint, F, Index, Q, UniqueConstraint
from django.db.models.functions import Now


class Budget(models.Model):
    """What a tenant may spend in a period, or a run altogether, and what of it is spent and reserved.

    `limit_nano` NULL: as much as it likes. Each of `top_up_nanos` is added to it until the time in its place in
    `top_up_untils`; NULL: nothing is. `spent_nano` is the sum of the ledger, `reserved_nano` that of live leases;
    `services/reconcile.py` recomputes both.
    """

    scope = models.CharField(max_length=6)
    scope_id = models.BigIntegerField()
    period_start = models.DateTimeField(null=True)
    period_end = models.DateTimeField(null=True)
    limit_nano = models.BigIntegerField(null=True)
    top_up_nanos = ArrayField(models.BigIntegerField(), null=True)
    top_up_untils = ArrayField(models.DateTimeField(), null=True)
    spent_nano = models.BigIntegerField(default=0, db_default=0)
    reserved_nano = models.BigIntegerField(default=0, db_default=0)

    class Meta:
        db_table = "budget"
        constraints = [
            # store/sql/dispatch.sql: read_lanes finds the newest of a scope by it.
            UniqueConstraint(
                name="budget_per_scope_and_period", fields=["scope", "scope_id", "period_start"], nulls_distinct=False
            ),
            CheckConstraint(
                name="budget_scope_known",
                condition=Q(scope="tenant", period_start__isnull=False, period_end__gt=F("period_start"))
                | Q(scope="run", period_start__isnull=True, period_end__isnull=True),
            ),
            CheckConstraint(
                name="budget_not_negative",
                condition=Q(spent_nano__gte=0, reserved_nano__gte=0),
            ),
        ]
        indexes = [
            # store/sql/spending.sql: mark_burn finds the budgets in force among those of all runs and months
            Index(name="budget_in_force_by_end", fields=["period_end"], condition=Q(scope="tenant")),
        ]


class TopUp(models.Model):
    """What was added to a tenant's budget for a while, by whom and why. Kept when it is over.

    `ended_at`: somebody ended it before `ends_at`. The budget's own row has what is in force.
    """

    budget_id = models.BigIntegerField()
    tenant_id = models.BigIntegerField()
    amount_nano = models.BigIntegerField()
    starts_at = models.DateTimeField(db_default=Now())
    ends_at = models.DateTimeField()
    ended_at = models.DateTimeField(null=True)
    actor = models.CharField(max_length=200)
    reason = models.CharField(max_length=500)

    class Meta:
        db_table = "top_up"
        constraints = [
            CheckConstraint(name="top_up_adds", condition=Q(amount_nano__gt=0)),
            CheckConstraint(name="top_up_ends_after_it_begins", condition=Q(ends_at__gt=F("starts_at"))),
        ]
        indexes = [
            # store/sql/top_ups.sql: read_top_ups
            Index(name="top_up_by_tenant", fields=["tenant_id", "-id"]),
            # store/sql/top_ups.sql: keep_top_ups
            Index(name="top_up_by_budget", fields=["budget_id", "ends_at"]),
        ]


class BurnMark(models.Model):
    """What a tenant's budget had spent some minutes ago: what its spending per hour is measured from.

    `old` is where it is measured from, `mid` what takes its place. Written by the leader, never with a charge.
    """

    budget = models.BigIntegerField(primary_key=True, db_column="budget_id")
    old_nano = models.BigIntegerField()
    old_at = models.DateTimeField()
    mid_nano = models.BigIntegerField()
    mid_at = models.DateTimeField()

    class Meta:
        db_table = "burn_mark"


class LedgerEntry(models.Model):
    """What one line of an attempt cost. Appended with the end of its lease, never changed (a trigger refuses it).

    `provider_cost_nano` is what we owe, `tenant_charge_nano` what its budgets were charged: never more than they had
    left. Line 0 is the call, line 1 the worker's time, those from 2 on are calls that
    were charged while it ran. `period_start` is that of the tenant's budget.
    """

    lease_id = models.BigIntegerField()
    line = models.SmallIntegerField()
    at = models.DateTimeField(db_default=Now())
    tenant_id = models.BigIntegerField()
    pool_id = models.BigIntegerField()
    task_id = models.BigIntegerField()
    run_id = models.BigIntegerField(null=True)
    budget_ids = ArrayField(models.BigIntegerField())
    kind = models.CharField(max_length=64)
    model = models.CharField(max_length=200, null=True)  # noqa: DJ001 - NULL: no model was called
    # The class that the task was in at the end. NULL: written before classes were kept here.
    priority = models.SmallIntegerField(null=True)
    provider_cost_nano = models.BigIntegerField()
    tenant_charge_nano = models.BigIntegerField()
    usage = models.JSONField(null=True)
    usage_source = models.CharField(max_length=9)
    price_source = models.CharField(max_length=8)
    outcome = models.CharField(max_length=7)

    class Meta:
        db_table = "ledger_entry"
        constraints = [
            UniqueConstraint(name="ledger_line_per_lease", fields=["lease_id", "line"]),
            CheckConstraint(name="ledger_outcome_known", condition=Q(outcome__in=["success", "waste"])),
            CheckConstraint(
                name="ledger_usage_source_known", condition=Q(usage_source__in=["reported", "estimated", "unknown"])
            ),
            CheckConstraint(
                name="ledger_charge_in_bounds",
                condition=Q(tenant_charge_nano__gte=0, tenant_charge_nano__lte=F("provider_cost_nano")),
            ),
        ]
        indexes = [
            # store/sql/money.sql: read_cost, of one tenant, and of all by summaries of pages that cost an entry nothing
            Index(name="ledger_by_tenant", fields=["tenant_id", "at"]),
            BrinIndex(name="ledger_by_time", fields=["at"], autosummarize=True, pages_per_range=16),
        ]


class Price(models.Model):
    """An operator's price of a model, in nano-dollars per million tokens, valid in [from, to)."""

    model = models.CharField(max_length=200)
    provider = models.CharField(max_length=64, blank=True)
    input_nano = models.BigIntegerField()
    output_nano = models.BigIntegerField()
    cache_read_nano = models.BigIntegerField(null=True)
    cache_write_nano = models.BigIntegerField(null=True)
    cache_write_1h_nano = models.BigIntegerField(null=True)
    valid_from = models.DateTimeField()
    valid_to = models.DateTimeField(null=True)
    version = models.BigIntegerField(default=1, db_default=1)
    created_at = models.DateTimeField(db_default=Now(), editable=False)

    class Meta:
        db_table = "price"
        constraints = [
            UniqueConstraint(name="price_per_model_and_start", fields=["model", "provider", "valid_from"]),
            CheckConstraint(
                name="price_not_negative",
                condition=Q(input_nano__gte=0, output_nano__gte=0),
            ),
            CheckConstraint(
                name="price_ends_after_it_begins", condition=Q(valid_to__isnull=True) | Q(valid_to__gt=F("valid_from"))
            ),
        ]


class Alert(models.Model):
    """A budget has reached a part of its limit: once per threshold and period. It is told as an event."""

    scope = models.CharField(max_length=6)
    scope_id = models.BigIntegerField()
    tenant_id = models.BigIntegerField()
    budget_id = models.BigIntegerField()
    threshold = models.FloatField()
    limit_nano = models.BigIntegerField()
    spent_nano = models.BigIntegerField()
    at = models.DateTimeField(db_default=Now())

    class Meta:
        db_table = "alert"
        constraints = [
            # A budget is one scope in one period.
            UniqueConstraint(name="alert_once_per_threshold", fields=["budget_id", "threshold"]),
        ]
        indexes = [
            # store/sql/alerts.sql: read_alerts
            Index(name="alert_by_tenant", fields=["tenant_id", "-id"]),
        ]


class SpendingDay(models.Model):
    """What was spent on something in a day, up to `spending_mark`: sums of the ledger. Amounts are nano-dollars.

    `scope_id` 0: of everybody, by days in UTC; else of a tenant, by days in the zone that it had when they were summed
    up. `by` says what of (`tenant`, `pool`, `kind`, `model`, `class`), and `what` names one, by id where it has one.
    """

    pk = models.CompositePrimaryKey("scope_id", "day", "by", "what")
    scope_id = models.BigIntegerField()
    day = models.DateField()
    by = models.CharField(max_length=6)
    what = models.CharField(max_length=200)
    cost_nano = models.BigIntegerField()
    charge_nano = models.BigIntegerField()
    waste_nano = models.BigIntegerField()
    successes = models.BigIntegerField()

    class Meta:
        db_table = "spending_day"


class SpendingMark(models.Model):
    """Up to which entry of the ledger the days are summed up, and up to which they are next: one row.

    `end_xid` is the first transaction that had not begun to write when `end_id` was set.
    """

    id = models.SmallIntegerField(primary_key=True)
    summed_id = models.BigIntegerField(default=0, db_default=0)
    end_id = models.BigIntegerField(default=0, db_default=0)
    end_xid = models.BigIntegerField(default=0, db_default=0)

    class Meta:
        db_table = "spending_mark"
