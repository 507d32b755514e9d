"""What was learned, predicted and seen. Tables, constraints and indexes only."""

from __future__ import annotations

from django.db import models
from django.db.models import Index, Q, UniqueConstraint
from django.db.models.functions import Now


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


class Snapshot(models.Model):
    """The picture that the console shows, written once per second by the leader."""

    seq = models.BigAutoField(primary_key=True)
    as_of = models.DateTimeField(db_default=Now())
    body = models.JSONField()

    class Meta:
        db_table = "snapshot"
