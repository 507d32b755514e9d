"""Says what an edit would do to the work that is there, without doing it: read once, looked ahead twice.

The reading is in a transaction that could not write if it wanted to. Nothing else touches the database. Looking ahead
has a bound of its own (lanes and tasks that a forecast follows), so a huge backlog costs no more than a large one.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from django.db import transaction

from scheduler.errors import FieldError, Refused
from scheduler.policy.declarations import SLOTS_MAX, faults_in_limit, faults_in_quota, faults_in_tenant
from scheduler.policy.preview import Edit, LimitEdit, PoolEdit, Preview, TenantEdit, preview_edit
from scheduler.policy.scene import Scene
from scheduler.policy.types import PoolId, PriorityClass
from scheduler.services.changes import refuse
from scheduler.services.forecast import Memory, load_scene, recall
from scheduler.services.pools import load_pool
from scheduler.services.resources import load_resource
from scheduler.services.tenants import changed_quota, load_tenant
from scheduler.store import control as store

SEED: Final = 20_261
"""The same edit of the same backlog has the same preview."""


@dataclass(frozen=True, slots=True)
class Previewed:
    """A preview with the names of the pools in it. `as_of` is Unix seconds."""

    preview: Preview
    pools: Mapping[PoolId, str]
    as_of: float


def preview_pool(name: str, *, slots: int | None = None, paused: bool | None = None) -> Previewed:
    """What other slots, or a pause, would do. Raises NotFound, Refused."""
    if slots is not None and not 0 <= slots <= SLOTS_MAX:
        detail = f"slots must be from 0 to {SLOTS_MAX}; {slots} is not."
        raise Refused(detail, code="bad_pool", errors=(FieldError(("slots",), detail),))

    def edit() -> Edit:
        row = load_pool(name)
        return PoolEdit(row.id, slots, paused, grows=row.executor != "remote")

    return _previewed(edit)


def preview_resource(name: str, changes: Mapping[str, Any]) -> Previewed:
    """What another limit would do; `changes` by the names of `LimitSettings`. Raises NotFound, Refused."""

    def edit() -> Edit:
        row = load_resource(name)
        refuse(faults_in_limit(name, row.view.kind, replace(row.declared, **changes)), code="bad_resource")
        figures = {field: value for field, value in changes.items() if field != "ceilings"}
        ceilings = {p: (changes["ceilings"] or {}).get(p.label, 0.0) for p in PriorityClass if "ceilings" in changes}
        return LimitEdit(row.view.id, **figures, ceilings=ceilings or None)

    return _previewed(edit)


def preview_tenant(slug: str, changes: Mapping[str, Any], *, suspended: bool | None = None) -> Previewed:
    """What another weight, other limits of its own, or a suspension, would do. Raises NotFound, Refused.

    `changes` as for `edit_tenant`; what has nothing to do with waits is left aside.
    """

    def edit() -> Edit:
        row = load_tenant(slug)
        weight, quota = changes.get("weight", row.weight), changed_quota(row.quota, changes)
        faults = (*faults_in_tenant(slug, weight=weight, status=row.status), *faults_in_quota(quota))
        refuse(faults, code="bad_tenant")
        return TenantEdit(row.id, weight, suspended, quota if quota != row.quota else None)

    return _previewed(edit)


def _previewed(make_edit: Callable[[], Edit]) -> Previewed:
    edit, memory, scene, names = _read(make_edit)
    preview = preview_edit(scene, edit, memory.learned, chance=lambda: random.Random(SEED).random)  # noqa: S311 - no secret
    return Previewed(preview, names, scene.now)


def _read(make_edit: Callable[[], Edit]) -> tuple[Edit, Memory, Scene, dict[PoolId, str]]:
    with transaction.atomic(durable=True):
        store.promise_not_to_write()
        edit = make_edit()
        memory = recall()
        return edit, memory, load_scene(memory), {row.id: row.name for row in store.load_pools()}
