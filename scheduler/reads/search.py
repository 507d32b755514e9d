"""What a person may mean by a few characters: a number, a key, or the beginning of a name.

Three statements at most, whatever is asked and however much there is: nothing is searched that no index leads to.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from scheduler.policy.types import TenantId
from scheduler.store import search as store
from scheduler.store.control import load_tenants
from scheduler.store.search import FoundRow

__all__ = ["TEXT_MAX", "Found", "FoundRow", "find"]

TEXT_MAX: Final = 200
ROWS_MAX: Final = 10
"""Of each kind."""
TENANTS_MAX: Final = 2_000
"""Whose keys are looked through."""
_NUMBER_MAX: Final = 2**63 - 1


@dataclass(frozen=True, slots=True)
class Found:
    """What was meant for sure (`exact`: its number or whole key), and what begins so."""

    exact: tuple[FoundRow, ...] = ()
    begins: tuple[FoundRow, ...] = ()


def find(text: str, tenant: str | None) -> Found:
    """Everything that `text` may mean; to an account of one tenant only what is that tenant's own."""
    text = text.strip()
    if not text or len(text) > TEXT_MAX or not text.isprintable():
        return Found()
    only: TenantId | None = None
    if tenant is not None:
        rows = load_tenants([tenant])
        if not rows:
            return Found()
        only = rows[0].id
    exact = store.numbered(int(text), only) if _is_number(text) else []
    exact += store.keyed(text, only, tenants_max=TENANTS_MAX, rows_max=ROWS_MAX)
    return Found(tuple(exact), tuple(store.named(text, only, rows_max=ROWS_MAX)))


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit() and int(text) <= _NUMBER_MAX
