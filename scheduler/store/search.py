"""Finds things by their number, their key or the beginning of their name, each by one look into an index."""

from __future__ import annotations

from typing import Final, NamedTuple

from scheduler.policy.types import TenantId
from scheduler.store import queries

_SQL: Final = queries.load("search.sql")
_LIKE: Final = str.maketrans({"\\": r"\\", "%": r"\%", "_": r"\_"})


class FoundRow(NamedTuple):
    """One thing: `ref` is its number, or its name where names are what addresses hold; `owner` a slug or empty."""

    kind: str
    ref: str
    name: str
    owner: str
    state: str


def numbered(number: int, tenant: TenantId | None) -> list[FoundRow]:
    """Everything with this number; `tenant` narrows it to one's own."""
    return [FoundRow(*row) for row in queries.fetch(_SQL["numbered"], {"number": number, "tenant": tenant})]


def keyed(text: str, tenant: TenantId | None, *, tenants_max: int, rows_max: int) -> list[FoundRow]:
    """What was submitted under exactly this key, by the tenants of the lowest ids; so many rows of each kind."""
    params = {"text": text, "tenant": tenant, "tenants_max": tenants_max, "rows_max": rows_max}
    return [FoundRow(*row) for row in queries.fetch(_SQL["keyed"], params)]


def named(prefix: str, tenant: TenantId | None, *, rows_max: int) -> list[FoundRow]:
    """What has a name that begins so; so many rows of each kind, by name."""
    params = {"prefix": f"{prefix.translate(_LIKE)}%", "tenant": tenant, "rows_max": rows_max}
    return [FoundRow(*row) for row in queries.fetch_anew(_SQL["named"], params)]
