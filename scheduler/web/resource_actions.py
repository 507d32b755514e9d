"""Changing a shared limit: save for good or for a while, preview, lift, pause, resume, and forget what was learned."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from django.views.decorators.http import require_POST

from scheduler.engine.doorbell import ring
from scheduler.errors import Conflict, NotFound, Refused
from scheduler.policy.declarations import OverrideSettings
from scheduler.reads.resources import ResourceDetail, resource_detail
from scheduler.services.changes import VersionConflict
from scheduler.services.mending import pause_resource, reset_breaker, reset_factor, resume_resource
from scheduler.services.preview import preview_resource
from scheduler.services.resources import edit_resource, lift_override, override_resource
from scheduler.web.access import EDIT_RESOURCE, needs
from scheduler.web.acting import actor_of, done, reason_of
from scheduler.web.effects import effect_of
from scheduler.web.limit_form import Wanted, read_form, undo_override_values, undo_values
from scheduler.web.resource_page import edit_page, no_such_resource, resource_page
from scheduler.web.toast import Toast, Undo

ASK_WHY = "Say why, so that the next person knows when to resume."


@require_POST
@needs(EDIT_RESOURCE)
def preview(request: HttpRequest, name: str) -> HttpResponse:
    """What the edit would do to the waits that are predicted; nothing is changed."""
    try:
        wanted = read_form(request.POST, resource_detail(name))
        faults = [fault for fault in wanted.faults if fault.loc != ("reason",)]
        if faults:
            return edit_page(request, name, status=422, errors=faults)
        return edit_page(request, name, effect=effect_of(preview_resource(name, wanted.changes)))
    except NotFound:
        return no_such_resource(request, name)
    except Refused as refusal:
        return edit_page(request, name, status=422, errors=refusal.errors)


@require_POST
@needs(EDIT_RESOURCE)
def save(request: HttpRequest, name: str) -> HttpResponse:
    """Change what is declared, or let other figures go first for a while."""
    try:
        before = resource_detail(name)
        wanted = read_form(request.POST, before)
        if wanted.faults:
            return edit_page(request, name, status=422, errors=wanted.faults)
        toast = _override(request, before, wanted) if wanted.lasts else _edit(request, before, wanted)
    except NotFound:
        return no_such_resource(request, name)
    except VersionConflict:
        return edit_page(request, name, status=409, conflict=True)
    except Refused as refusal:
        return edit_page(request, name, status=422, errors=refusal.errors)
    ring()
    return _done(request, name, toast)


def _edit(request: HttpRequest, before: ResourceDetail, wanted: Wanted) -> Toast:
    name = before.name
    if not wanted.changes and wanted.version == before.version:
        return Toast(f"{name} is as it was: nothing was different.")
    after = edit_resource(name, wanted.version, wanted.changes, actor=actor_of(request), reason=wanted.reason)
    values = undo_values(before.declared, before.view.kind, after.version)
    undo = Undo(reverse("ops:resource-save", kwargs={"name": name}), reason="undo", values=values)
    return Toast(f"Changed {name}. It counts from the next start on.", undo=undo)


def _override(request: HttpRequest, before: ResourceDetail, wanted: Wanted) -> Toast:
    name = before.name
    after = override_resource(
        name,
        wanted.override,
        for_s=wanted.for_s,
        version=wanted.version,
        actor=actor_of(request),
        reason=wanted.reason,
    )
    ends = "until it is lifted" if wanted.for_s is None and wanted.until is None else "and then what is declared again"
    return Toast(f"Changed {name} for a while, {ends}.", undo=_undo_of_override(name, before.override, after.version))


def _undo_of_override(name: str, before: OverrideSettings | None, version: int) -> Undo:
    if before is None:
        url = reverse("ops:resource-lift", kwargs={"name": name})
        return Undo(url, reason="undo", values={"version": str(version)})
    url = reverse("ops:resource-save", kwargs={"name": name})
    return Undo(url, reason="undo", values=undo_override_values(before, version))


@require_POST
@needs(EDIT_RESOURCE)
def lift(request: HttpRequest, name: str) -> HttpResponse:
    """Let what is declared count again, before the time is over."""
    version = request.POST.get("version", "")
    try:
        before = resource_detail(name)
        seen = int(version) if version.isdecimal() and len(version) < 19 else before.version  # noqa: PLR2004 - a bigint
        after = lift_override(name, version=seen, actor=actor_of(request), reason=reason_of(request))
    except NotFound:
        return no_such_resource(request, name)
    except Conflict as conflict:
        return resource_page(request, name, status=409, fault=conflict.detail)
    ring()
    if before.override is None:
        return _done(request, name, Toast(f"{name} had nothing to lift. Nothing was changed."))
    undo = _undo_of_override(name, before.override, after.version)
    return _done(request, name, Toast(f"{name} has what is declared again.", undo=undo))


@require_POST
@needs(EDIT_RESOURCE)
def pause(request: HttpRequest, name: str) -> HttpResponse:
    """Let nothing be taken of a limit; what runs goes on. The reason is required: the next person will read it."""
    reason = reason_of(request)
    if not reason:
        return resource_page(request, name, status=422, fault=ASK_WHY)

    def act(before: ResourceDetail) -> HttpResponse:
        if before.pause is not None:
            fault = f"{before.pause.by} paused it already: “{before.pause.reason}”. Nothing was changed."
            return resource_page(request, name, status=409, reason=reason, fault=fault)
        pause_resource(name, actor=actor_of(request), reason=reason)
        undo = Undo(reverse("ops:resource-resume", kwargs={"name": name}), reason="undo")
        return _done(request, name, Toast(f"Paused {name}. Nothing is taken of it; what runs goes on.", undo=undo))

    return _acted(request, name, act)


@require_POST
@needs(EDIT_RESOURCE)
def resume(request: HttpRequest, name: str) -> HttpResponse:
    """Let be taken of a limit again, whoever paused it."""

    def act(before: ResourceDetail) -> HttpResponse:
        resume_resource(name, actor=actor_of(request), reason=reason_of(request))
        ring()
        if before.pause is None:
            return _done(request, name, Toast(f"{name} was not paused. Nothing was changed."))
        undo = Undo(reverse("ops:resource-pause", kwargs={"name": name}), reason=before.pause.reason or "undo")
        return _done(request, name, Toast(f"Resumed {name}.", undo=undo))

    return _acted(request, name, act)


@require_POST
@needs(EDIT_RESOURCE)
def close_breaker(request: HttpRequest, name: str) -> HttpResponse:
    """Trust the provider again at once, and forget its failures."""
    return _mended(request, name, reset_breaker, f"{name} is tried again at once; its failures are forgotten.")


@require_POST
@needs(EDIT_RESOURCE)
def full_pace(request: HttpRequest, name: str) -> HttpResponse:
    """Let a limit have all that is declared again, whatever its provider refused."""
    return _mended(request, name, reset_factor, f"{name} gives all that is declared again.")


class _Mend(Protocol):
    def __call__(self, name: str, *, actor: str, reason: str) -> None: ...


def _mended(request: HttpRequest, name: str, mend: _Mend, says: str) -> HttpResponse:
    def act(_before: ResourceDetail) -> HttpResponse:
        mend(name, actor=actor_of(request), reason=reason_of(request))
        ring()
        return _done(request, name, Toast(says))

    return _acted(request, name, act)


def _acted(request: HttpRequest, name: str, act: Callable[[ResourceDetail], HttpResponse]) -> HttpResponse:
    try:
        return act(resource_detail(name))
    except NotFound:
        return no_such_resource(request, name)
    except Refused as refusal:
        return resource_page(request, name, status=422, reason=reason_of(request), fault=refusal.detail)


def _done(request: HttpRequest, name: str, toast: Toast) -> HttpResponse:
    return done(request, reverse("ops:resource", kwargs={"name": name}), toast)
