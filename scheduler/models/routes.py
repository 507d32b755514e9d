"""Which models can do what is asked for. Tables, constraints and indexes only."""

from __future__ import annotations

from django.db import models
from django.db.models.functions import Now


class Route(models.Model):
    """A capability, and the models that have it, cheapest first: `[{"model": …, "resources": {name: amount}}]`.

    `degraded_model` is used while the task's pool is overloaded; NULL: the chosen one.
    """

    capability = models.CharField(max_length=64, unique=True)
    options = models.JSONField()
    degraded_model = models.CharField(max_length=200, null=True, blank=True)  # noqa: DJ001 - NULL: there is none
    version = models.BigIntegerField(default=1, db_default=1)
    created_at = models.DateTimeField(db_default=Now(), editable=False)

    class Meta:
        db_table = "route"

    def __str__(self) -> str:
        return self.capability
