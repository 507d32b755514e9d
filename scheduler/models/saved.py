"""Filters that people keep under a name."""

from __future__ import annotations

from typing import ClassVar

from django.conf import settings
from django.db import models
from django.db.models import Q, UniqueConstraint


class SavedFilter(models.Model):
    """A named filter of tasks. `owner` sees it alone; without one everybody who may look at the console does."""

    owner = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, on_delete=models.CASCADE, related_name="saved_filters"
    )
    name = models.CharField(max_length=60)
    filter = models.CharField(max_length=8000)
    created_by = models.CharField(max_length=200)
    created_at = models.DateTimeField()

    class Meta:
        db_table = "saved_filter"
        default_permissions = ()
        constraints: ClassVar = [
            UniqueConstraint(name="saved_filter_once_per_owner", fields=["owner", "name"]),
            UniqueConstraint(name="saved_filter_shared_once", fields=["name"], condition=Q(owner__isnull=True)),
        ]

    def __str__(self) -> str:
        return self.name
