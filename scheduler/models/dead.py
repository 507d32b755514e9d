"""Tasks that died, and how many died alike. Tables, constraints and indexes only."""

from __future__ import annotations

from django.db import models
from django.db.models import Index, Q

_KEPT = Q(discarded_at__isnull=True)


class DeadLetter(models.Model):
    """A task that failed for good or has no attempt left, from its death until it is replayed or forgotten.

    Ids are in the order of death. `fingerprint`: see `policy.fingerprints`. Discarded ones are kept for a week.
    """

    id = models.BigAutoField(primary_key=True)
    task_id = models.BigIntegerField(unique=True)
    fingerprint = models.BigIntegerField()
    tenant_id = models.BigIntegerField()
    pool_id = models.BigIntegerField()
    kind = models.CharField(max_length=64)
    failure_class = models.CharField(max_length=16)
    message = models.CharField(max_length=1000)
    died_at = models.DateTimeField()
    discarded_at = models.DateTimeField(null=True)

    class Meta:
        db_table = "dead_letter"
        # store/sql/filters.sql: the walks along dead letters
        indexes = [
            Index(name="dead_letter_kept", fields=["id"], condition=_KEPT),
            Index(name="dead_letter_by_fingerprint", fields=["fingerprint", "id"], condition=_KEPT),
            Index(name="dead_letter_by_tenant", fields=["tenant_id", "id"], condition=_KEPT),
            Index(name="dead_letter_by_pool", fields=["pool_id", "id"], condition=_KEPT),
            # Also store/sql/dead.sql: find_discarded
            Index(name="dead_letter_discarded", fields=["id"], condition=Q(discarded_at__isnull=False)),
        ]


class DeadGroup(models.Model):
    """Dead letters that are alike, folded. The truth about `n` at any moment is this plus `dead_delta`."""

    fingerprint = models.BigIntegerField(primary_key=True)
    tenant_id = models.BigIntegerField()
    pool_id = models.BigIntegerField()
    kind = models.CharField(max_length=64)
    failure_class = models.CharField(max_length=16)
    shape = models.CharField(max_length=200)
    n = models.BigIntegerField()
    first_at = models.DateTimeField()
    last_at = models.DateTimeField()

    class Meta:
        db_table = "dead_group"
        # store/sql/dead.sql: list_groups
        indexes = [Index(name="dead_group_newest", fields=["-last_at", "-fingerprint"], condition=Q(n__gt=0))]


class DeadDelta(models.Model):
    """Changes to how many died alike, one row per statement and fingerprint, appended by triggers on `dead_letter`.

    `died` counts deaths alone; `died_at` is when the newest of them was.
    """

    fingerprint = models.BigIntegerField()
    n = models.BigIntegerField()
    died = models.BigIntegerField()
    died_at = models.DateTimeField(null=True)

    class Meta:
        db_table = "dead_delta"
        # store/sql/dead.sql: list_groups
        indexes = [Index(name="dead_delta_by_fingerprint", fields=["fingerprint"])]


class DeadHour(models.Model):
    """How many died alike in an hour."""

    pk = models.CompositePrimaryKey("fingerprint", "hour")
    fingerprint = models.BigIntegerField()
    hour = models.DateTimeField()
    n = models.BigIntegerField()

    class Meta:
        db_table = "dead_hour"
