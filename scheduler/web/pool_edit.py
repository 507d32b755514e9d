"""Editing a pool's slots, bounds and targets: the form, its preview, and saving it."""

from __future__ import annotations

from collections.abc import Sequence

from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from django.views.decorators.http import require_POST, require_safe

from scheduler.engine.doorbell import ring
from scheduler.errors import FieldError, NotFound, Refused
from scheduler.reads.pools import pool_detail
from scheduler.services.changes import VersionConflict
from scheduler.services.pools import edit_pool
from scheduler.services.preview import preview_pool
from scheduler.web.access import OPERATE_POOL, needs
from scheduler.web.acting import actor_of, done
from scheduler.web.edit_sheet import Sheet, sheet_page, version_of
from scheduler.web.effects import Effect, effect_of
from scheduler.web.pages import no_such_pool
from scheduler.web.pool_form import pool_fields, pool_rows, pool_values, read_pool_form, target_fields
from scheduler.web.toast import Toast, Undo


@require_safe
@needs(OPERATE_POOL)
def edit(request: HttpRequest, name: str) -> HttpResponse:
    """The form that changes a pool's size and targets."""
    return pool_edit_page(request, name)


@require_POST
@needs(OPERATE_POOL)
def preview(request: HttpRequest, name: str) -> HttpResponse:
    """What other slots would do to the waits that are predicted; nothing is changed."""
    try:
        wanted = read_pool_form(request.POST, pool_detail(name))
        faults = [fault for fault in wanted.faults if fault.loc != ("reason",)]
        if faults:
            return pool_edit_page(request, name, status=422, errors=faults)
        return pool_edit_page(request, name, effect=effect_of(preview_pool(name, slots=wanted.changes.get("slots"))))
    except NotFound:
        return no_such_pool(request, name)
    except Refused as refusal:
        return pool_edit_page(request, name, status=422, errors=refusal.errors)


@require_POST
@needs(OPERATE_POOL)
def save(request: HttpRequest, name: str) -> HttpResponse:
    """Change the pool. It counts from the next plan on; what runs is not touched."""
    try:
        before = pool_detail(name)
        wanted = read_pool_form(request.POST, before)
        if wanted.faults:
            return pool_edit_page(request, name, status=422, errors=wanted.faults)
        version = version_of(request)
        if not wanted.changes and version == before.version:
            return _done(request, name, Toast(f"{name} is as it was: nothing was different."))
        after = edit_pool(name, version, wanted.changes, actor=actor_of(request), reason=wanted.reason)
    except NotFound:
        return no_such_pool(request, name)
    except VersionConflict:
        return pool_edit_page(request, name, status=409, conflict=True)
    except Refused as refusal:
        return pool_edit_page(request, name, status=422, errors=refusal.errors)
    ring()
    values = pool_values(before.settings) | {"version": str(after.version)}
    undo = Undo(reverse("ops:pool-save", kwargs={"name": name}), reason="undo", values=values)
    return _done(request, name, Toast(f"Changed {name}. It counts from the next start on.", undo=undo))


def pool_edit_page(
    request: HttpRequest,
    name: str,
    *,
    status: int = 200,
    errors: Sequence[FieldError] = (),
    effect: Effect | None = None,
    conflict: bool = False,
) -> HttpResponse:
    """The form with what is declared in it, or what was posted; with its faults, or the effect that it would have."""
    try:
        detail = pool_detail(name)
    except NotFound:
        return no_such_pool(request, name)
    posted = request.POST if request.method == "POST" else None
    sheet = Sheet(
        subject=f"pool:{detail.name}",
        name=detail.name,
        version=detail.version,
        nav="pools",
        route="pool",
        fields=pool_fields(detail, posted),
        by_class=target_fields(detail, posted),
        by_class_title="Targets",
        by_class_note="the seconds that a task of a class may wait; empty: no target",
        note="",
        rows=pool_rows(detail, posted),
    )
    return sheet_page(request, sheet, status=status, errors=errors, effect=effect, conflict=conflict)


def _done(request: HttpRequest, name: str, toast: Toast) -> HttpResponse:
    return done(request, reverse("ops:pool", kwargs={"name": name}), toast)
