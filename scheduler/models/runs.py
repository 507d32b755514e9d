"""Agent runs, what their steps leave behind, and what was killed. Tables, constraints and indexes only.

A run's figures stand in rows of their own, by who writes them: a submission inside somebody's open transaction holds
`run_intake` and nothing that a settlement (`run_use`) or an operator (`run`) needs.
"""

from __future__ import annotations

from django.db import models
from django.db.models import CheckConstraint, Index, Q, UniqueConstraint
from django.db.models.functions import Now

from scheduler.models.choices import choices
from scheduler.models.tenants import Tenant
from scheduler.policy.receipts import ClaimState
from scheduler.policy.runs import Cap, KillScope, RunState


class Run(models.Model):
    """An agent's run: its goal, its caps and where it stands. Its steps are tasks.

    `epoch` counts its kills. `closing`: it has ended, and steps may be left to be stopped. `heed_at` is when its wall
    clock matters next. `change_mark`: when something that plans heed of it was last changed, in the order of changes.
    """

    tenant = models.ForeignKey(Tenant, on_delete=models.PROTECT)
    name = models.CharField(max_length=200, blank=True)
    key = models.CharField(max_length=200, null=True)  # noqa: DJ001 - NULL means 'no key' in the unique index
    fingerprint = models.BinaryField(null=True)
    goal = models.JSONField()
    state = models.CharField(max_length=9, choices=choices(RunState), default=RunState.ACTIVE.value)
    reason = models.CharField(max_length=500, blank=True, db_default="")
    epoch = models.BigIntegerField(default=0, db_default=0)
    max_steps = models.PositiveIntegerField()
    max_width = models.PositiveIntegerField()
    max_tokens = models.BigIntegerField(null=True)
    max_cost_nano = models.BigIntegerField(null=True)
    deadline_at = models.DateTimeField(null=True)
    heed_at = models.DateTimeField(null=True)
    closing = models.BooleanField(default=False, db_default=False)
    result = models.JSONField(null=True)
    change_mark = models.BigIntegerField(null=True)
    version = models.BigIntegerField(default=1, db_default=1)
    created_at = models.DateTimeField(db_default=Now())
    finished_at = models.DateTimeField(null=True)

    class Meta:
        db_table = "run"
        constraints = [
            CheckConstraint(name="run_state_known", condition=Q(state__in=[s.value for s in RunState])),
            CheckConstraint(
                name="run_ended_has_a_time",
                condition=Q(state__in=["active", "paused"], finished_at=None)
                | Q(state__in=["succeeded", "failed", "killed"], finished_at__isnull=False),
            ),
            UniqueConstraint(name="run_key_per_tenant", fields=["tenant", "key"], condition=Q(key__isnull=False)),
        ]
        indexes = [
            # store/sql/runs.sql: list_runs
            Index(name="run_by_tenant", fields=["tenant", "-id"]),
            # store/sql/run_pages.sql: list_older, list_newer, run_figures
            Index(name="run_by_state", fields=["state", "-id"]),
            # store/sql/run_pages.sql: list_older_of_tenant, list_newer_of_tenant
            Index(name="run_by_tenant_state", fields=["tenant", "state", "-id"]),
            # store/sql/run_pages.sql: newest_before
            Index(name="run_by_age", fields=["-created_at"]),
            # store/sql/run_pages.sql: run_figures
            Index(name="run_ended", fields=["state", "-finished_at"], condition=Q(finished_at__isnull=False)),
            # store/sql/run_tending.sql: read_closing_runs
            Index(name="run_closing", fields=["id"], condition=Q(closing=True)),
            # store/sql/run_tending.sql: read_runs_to_heed
            Index(name="run_heed", fields=["heed_at"], condition=Q(heed_at__isnull=False)),
            # store/sql/dispatch.sql: read_control
            Index(name="run_changed", fields=["change_mark"], condition=Q(change_mark__isnull=False)),
        ]

    def __str__(self) -> str:
        return self.name or f"run {self.pk}"


class RunIntake(models.Model):
    """Steps that a run has taken in. `due`: they came near a cap, and nobody has looked since."""

    run_id = models.BigIntegerField(primary_key=True)
    steps = models.IntegerField(default=0, db_default=0)
    due = models.BooleanField(default=False, db_default=False)

    class Meta:
        db_table = "run_intake"
        # store/sql/run_tending.sql: read_runs_to_heed
        indexes = [Index(name="run_intake_due", fields=["run_id"], condition=Q(due=True))]


class RunUse(models.Model):
    """What a run's attempts have used. `due`: it came near a cap, and nobody has looked since.

    `spent_out`: what is left of its money does not pay for the step whose turn it is. Money itself is in `budget`.
    """

    run_id = models.BigIntegerField(primary_key=True)
    tokens = models.BigIntegerField(default=0, db_default=0)
    attempts = models.BigIntegerField(default=0, db_default=0)
    spent_out = models.BooleanField(default=False, db_default=False)
    due = models.BooleanField(default=False, db_default=False)

    class Meta:
        db_table = "run_use"
        # store/sql/run_tending.sql: read_runs_to_heed
        indexes = [Index(name="run_use_due", fields=["run_id"], condition=Q(due=True))]


class RunAlert(models.Model):
    """A cap of which a run has used so much that its owner is to know: once for each cap."""

    pk = models.CompositePrimaryKey("run_id", "cap")
    run_id = models.BigIntegerField()
    cap = models.CharField(max_length=10)
    used = models.FloatField()
    most = models.FloatField()
    at = models.DateTimeField(db_default=Now())

    class Meta:
        db_table = "run_alert"
        constraints = [CheckConstraint(name="run_alert_cap_known", condition=Q(cap__in=[c.value for c in Cap]))]


class Checkpoint(models.Model):
    """Where a run can be taken up again: the last thing that one of its steps wrote under its lease."""

    run_id = models.BigIntegerField(primary_key=True)
    version = models.BigIntegerField()
    checkpoint = models.JSONField()
    task_id = models.BigIntegerField()
    saved_at = models.DateTimeField(db_default=Now())

    class Meta:
        db_table = "checkpoint"


class Receipt(models.Model):
    """An effect of a run on the world outside: claimed before it is made, committed after.

    `lease_id` is the attempt that claimed it. `unsure`: an earlier claimer died, and may have made the effect.
    """

    pk = models.CompositePrimaryKey("run_id", "step")
    run_id = models.BigIntegerField()
    step = models.CharField(max_length=200)
    fingerprint = models.CharField(max_length=200)
    state = models.CharField(max_length=9)
    idempotency_key = models.CharField(max_length=80)
    lease_id = models.BigIntegerField()
    unsure = models.BooleanField(default=False, db_default=False)
    receipt = models.JSONField(null=True)
    claimed_at = models.DateTimeField(db_default=Now())
    committed_at = models.DateTimeField(null=True)

    class Meta:
        db_table = "receipt"
        constraints = [
            CheckConstraint(name="receipt_state_known", condition=Q(state__in=[s.value for s in ClaimState])),
        ]


class KillEpoch(models.Model):
    """What was killed beside single runs; in force until it is lifted. `epoch` counts the kills of that scope."""

    scope = models.CharField(max_length=10)
    scope_id = models.BigIntegerField()
    epoch = models.BigIntegerField()
    killed_at = models.DateTimeField(db_default=Now())
    lifted_at = models.DateTimeField(null=True)
    actor = models.CharField(max_length=200)
    reason = models.CharField(max_length=500, blank=True)

    class Meta:
        db_table = "kill_epoch"
        constraints = [
            CheckConstraint(name="kill_epoch_scope_known", condition=Q(scope__in=[s.value for s in KillScope])),
            UniqueConstraint(name="kill_epoch_per_scope", fields=["scope", "scope_id"]),
        ]
