"""Decides which live pages somebody may watch who sees one tenant only: that tenant's, and those that show nothing.

Everything else is refused, also pages that are added later: a page is for tenants when it is named here.
"""

from __future__ import annotations

from typing import Final

from scheduler.live.frames import Key

OF_ONE_TENANT: Final = frozenset({"tenant"})
"""Pages whose scope is the slug of a tenant, and whose frames hold nothing of any other."""
OF_NOBODY: Final = frozenset({"still"})


def is_for_tenant(key: Key, tenant: str) -> bool:
    """Whether somebody who is bound to this tenant may watch this."""
    return key.page in OF_NOBODY or (key.page in OF_ONE_TENANT and key.scope == tenant)
