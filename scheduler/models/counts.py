"""How many tasks wait and run, kept without counting them. Tables, constraints and indexes only."""

from __future__ import annotations

from django.db import models
from django.db.models import Index, Q, UniqueConstraint


class TaskCount(models.Model):
    """How many tasks of a lane are in a state, folded. The truth at any moment is this plus `task_change`.

    `started` counts every move into `running`, `pruned_ok` and `pruned_failed` those that ended so and are forgotten.
    """

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
    """Changes to the counts, one row per statement, lane and move, appended by the triggers on `task`.

    `n` tasks came to `counter`, from `came_from` if it is told. The view `task_change` shows it as changes of single
    counters, with `started` for every move into `running`.
    """

    pool_id = models.BigIntegerField()
    priority = models.SmallIntegerField()
    tenant_id = models.BigIntegerField()
    demand_id = models.BigIntegerField()
    counter = models.CharField(max_length=13)
    n = models.BigIntegerField()
    came_from = models.CharField(max_length=13, null=True)  # noqa: DJ001 - NULL: it came from nowhere

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
    """How much waits and runs in a pool or for a tenant, folded with the counts. The truth: this plus `task_change`."""

    pk = models.CompositePrimaryKey("scope", "scope_id")
    scope = models.CharField(max_length=6)
    scope_id = models.BigIntegerField()
    waiting = models.BigIntegerField()
    running = models.BigIntegerField()

    class Meta:
        db_table = "waiting_depth"


class FoldMark(models.Model):
    """The newest task id before the last fold, and before the one before: at most the difference came since.

    `folds` counts those that found something to fold.
    """

    id = models.SmallIntegerField(primary_key=True)
    last_task_id = models.BigIntegerField()
    before_task_id = models.BigIntegerField()
    folds = models.BigIntegerField(db_default=0)

    class Meta:
        db_table = "fold_mark"


class FoldedArrivals(models.Model):
    """What had come to which lanes when the counts were folded, for planners that had not seen all of it.

    `lanes` is what `read_control` says of changes that are not folded; the last few folds are kept.
    """

    fold = models.BigIntegerField(primary_key=True)
    lanes = models.JSONField(null=True)

    class Meta:
        db_table = "folded_arrivals"
