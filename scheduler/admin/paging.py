"""Decides how far the administration counts: up to a bound, so that a long list costs no more than a short one."""

from __future__ import annotations

from typing import Any

from django.core.paginator import Paginator
from django.utils.functional import cached_property

COUNTED_MAX = 10_000


class CappedPaginator(Paginator):  # type: ignore[type-arg]  # generic in its stubs only
    """Counts up to a bound: a list of millions costs no more than one of ten thousand."""

    @cached_property
    def count(self) -> int:
        """How many there are, or the bound."""
        rows: Any = self.object_list
        return int(rows.order_by()[:COUNTED_MAX].count())
