"""Decides which live pages somebody may watch who sees one tenant only: that tenant's, and those that show nothing.

Everything else is refused, also pages that are added later: a page is for tenants when it is named here.
"""

from __future__ import annotations

from typing import Final

from scheduler.live.frames import Key

OWN: Final = "own"
"""The page of a tenant as the tenant itself sees it: the scope is its slug, its frames hold nothing of any other."""
STILL: Final = Key("still")
"""The live body of a page on which nothing moves. It shows nothing, and keeps the connection, clock and notices."""


def is_for_tenant(key: Key, tenant: str) -> bool:
    """Whether somebody who is bound to this tenant may watch this."""
    return key in {STILL, Key(OWN, tenant)}
