"""How tasks depend on one another. Tables, constraints and indexes only."""

from __future__ import annotations

from django.db import models
from django.db.models import CheckConstraint, Index, Q, UniqueConstraint
from django.db.models.functions import Now

from scheduler.models.choices import choices
from scheduler.models.tenants import Tenant
from scheduler.policy.graph import EdgeCondition, JoinPolicy


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
            # store/sql/prune.sql: find_old_tasks
            Index(name="task_edge_decided", fields=["parent_id"], condition=Q(met__isnull=False)),
            # store/sql/graphs.sql: read_unlinked
            Index(name="task_edge_unlinked", fields=["child_id", "place"], condition=Q(linked=False)),
        ]


class TaskGroup(models.Model):
    """Tasks that are looked at and cancelled together. `cause`: the member whose failure ended a group that fails fast.

    `closed_at` is set when no member of a cancelled group is left to be stopped.
    """

    tenant = models.ForeignKey(Tenant, on_delete=models.PROTECT)
    name = models.CharField(max_length=64)
    join = models.CharField(max_length=11, choices=choices(JoinPolicy))
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
            # store/sql/groups.sql: list_groups
            Index(name="task_group_newest", fields=["tenant", "-id"]),
            # store/sql/groups.sql: read_closing
            Index(
                name="task_group_closing",
                fields=["id"],
                condition=Q(cancelled_at__isnull=False, closed_at__isnull=True),
            ),
        ]
