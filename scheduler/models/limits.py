"""What attempts share. Tables, constraints and indexes only."""

from __future__ import annotations

from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import CheckConstraint, Index, Q, UniqueConstraint
from django.db.models.functions import Now

from scheduler.models.choices import choices
from scheduler.policy.types import ResourceKind


class Resource(models.Model):
    """A limit that all pools share, as declared. Its state is in `resource_state`, so no use can change the limit.

    `ceilings` maps a class to the part of the burst that it must leave free. What an override sets goes before what is
    declared until `override_until` (NULL: until it is lifted).
    """

    name = models.CharField(max_length=64, unique=True)
    kind = models.CharField(max_length=16, choices=choices(ResourceKind))
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
    """What is left of a token bucket, and what calls taught us about who is behind it. One narrow hot row per resource.

    `factor`, `cut_at`, `paced_at` and `paced_taken` are `policy.aimd.Pace`; `open_until` to `slowest_s` are
    `policy.breaker.Breaker`, whose probe is live while its lease is. A pause (`paused_at`) ends by hand only.
    """

    resource = models.OneToOneField(Resource, primary_key=True, on_delete=models.CASCADE, related_name="state")
    level = models.FloatField()
    level_at = models.DateTimeField(db_default=Now())
    factor = models.FloatField(default=1.0, db_default=1.0)
    blocked_until = models.DateTimeField(null=True)
    taken_total = models.FloatField(default=0.0, db_default=0.0)
    cut_at = models.DateTimeField(null=True)
    paced_at = models.DateTimeField(null=True)
    paced_taken = models.FloatField(default=0.0, db_default=0.0)
    open_until = models.DateTimeField(null=True)
    opens = models.SmallIntegerField(default=0, db_default=0)
    probe_lease = models.BigIntegerField(null=True)
    breaker_at = models.DateTimeField(null=True)
    window_at = models.DateTimeField(null=True)
    good = models.IntegerField(default=0, db_default=0)
    bad = models.IntegerField(default=0, db_default=0)
    good_before = models.IntegerField(default=0, db_default=0)
    bad_before = models.IntegerField(default=0, db_default=0)
    slowest_s = models.FloatField(default=0.0, db_default=0.0)
    paused_at = models.DateTimeField(null=True)
    paused_by = models.CharField(max_length=200, default="", db_default="", blank=True)
    pause_reason = models.TextField(default="", db_default="", blank=True)

    class Meta:
        db_table = "resource_state"
        indexes = [
            # end_leases: the limits about which the end of an attempt teaches something; none while all is well.
            Index(
                name="resource_state_watched",
                fields=["resource"],
                condition=Q(window_at__isnull=False) | Q(open_until__isnull=False) | Q(factor__lt=1),
            )
        ]


class Demand(models.Model):
    """What tasks need together: named resources (ascending ids), and labels of their worker (sorted, name=value).

    `priced`: they cost money too, and wait in lanes of their own, so that an empty budget keeps back nothing free.
    Steps of a run need its leave as well: their demands have ids below zero, which tells them apart without a look;
    `base_id` is the same without the run, and they go with it. Nothing else is ever changed or deleted.
    """

    resource_ids = ArrayField(models.BigIntegerField())
    priced = models.BooleanField(default=False, db_default=False)
    labels = ArrayField(models.CharField(max_length=130), default=list, db_default=[])
    run_id = models.BigIntegerField(null=True)
    writes = models.BooleanField(default=False, db_default=False)
    base_id = models.BigIntegerField(null=True)

    class Meta:
        db_table = "demand"
        constraints = [
            UniqueConstraint(
                name="demand_per_set",
                fields=["resource_ids", "priced", "labels"],
                condition=Q(run_id__isnull=True),
            ),
            UniqueConstraint(
                name="demand_of_run",
                fields=["run_id", "writes", "base_id"],
                condition=Q(run_id__isnull=False),
            ),
            CheckConstraint(
                name="demand_of_run_below_zero",
                condition=Q(run_id__isnull=True, id__gt=0) | Q(run_id__isnull=False, base_id__gt=0, id__lt=0),
            ),
        ]


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
