"""Who work belongs to, and who may ask for what. Tables, constraints and indexes only."""

from __future__ import annotations

from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import CheckConstraint, Index, Q, UniqueConstraint
from django.db.models.functions import Now


def default_alerts() -> list[float]:
    """The parts of a budget at which its owner is told."""
    return [0.8, 1.0]


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
    # Nano-dollars of a month; NULL: no limit. Alerts are raised at these parts of it. The
    # target is what a success may cost, waste included.
    monthly_budget_nano = models.BigIntegerField(null=True, blank=True)
    success_target_nano = models.BigIntegerField(null=True, blank=True)
    alert_at = ArrayField(models.FloatField(), default=default_alerts, db_default=[0.8, 1.0])
    max_steps_per_run = models.PositiveIntegerField(null=True, blank=True)
    max_width_per_run = models.PositiveIntegerField(null=True, blank=True)
    max_cost_per_run_nano = models.BigIntegerField(null=True, blank=True)
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


class TenantBudget(Tenant):
    """The same rows as those who look after money see them."""

    class Meta:
        proxy = True
        default_permissions = ()
        verbose_name = "budget"


class TenantState(models.Model):
    """What is left of a tenant's start-rate bucket. Only tenants that have a start rate and used it have a row."""

    tenant = models.OneToOneField(Tenant, primary_key=True, on_delete=models.CASCADE, related_name="state")
    level = models.FloatField()
    level_at = models.DateTimeField()

    class Meta:
        db_table = "tenant_state"


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
    last_used_at = models.DateTimeField(null=True, blank=True, editable=False)
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
