"""What may be done to a tenant: edit its weight and limits, suspend and resume it, set its budget, top it up."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from django.views.decorators.http import require_POST, require_safe

from scheduler.engine.doorbell import ring
from scheduler.errors import Conflict, FieldError, NotFound, Refused
from scheduler.live import wording
from scheduler.reads.money import budget_detail
from scheduler.reads.tenants import tenant_detail
from scheduler.services.budgets import edit_budget
from scheduler.services.changes import Author, VersionConflict
from scheduler.services.idempotency import Answer, once
from scheduler.services.preview import preview_tenant
from scheduler.services.tenants import edit_tenant
from scheduler.services.top_ups import add_top_up, end_top_up
from scheduler.web.access import EDIT_BUDGET, EDIT_TENANT, TOP_UP_BUDGET, needs
from scheduler.web.acting import actor_of, author_of, done, reason_of
from scheduler.web.edit_sheet import SettingRow, Sheet, sheet_page, version_of
from scheduler.web.effects import Effect, effect_of
from scheduler.web.fields import Field
from scheduler.web.tenant_form import (
    budget_fields,
    budget_values,
    read_budget,
    read_tenant,
    read_top_up,
    tenant_fields,
    tenant_values,
)
from scheduler.web.tenant_page import no_such_tenant, tenant_page
from scheduler.web.toast import Toast, Undo

ASK_WHY: Final = "Say why, so that the next person knows when to resume."
_ASK: Final = FieldError(("reason",), "Say why: whoever looks at the bill will ask.")


@require_safe
@needs(EDIT_TENANT)
def edit(request: HttpRequest, slug: str) -> HttpResponse:
    """The form for a tenant's weight and limits."""
    return _tenant_sheet(request, slug)


@require_POST
@needs(EDIT_TENANT)
def preview(request: HttpRequest, slug: str) -> HttpResponse:
    """What another weight, or other limits, would do to the waits that are predicted; nothing is changed."""
    try:
        wanted = read_tenant(request.POST, tenant_detail(slug, None))
        if wanted.faults:
            return _tenant_sheet(request, slug, status=422, errors=wanted.faults)
        return _tenant_sheet(request, slug, effect=effect_of(preview_tenant(slug, wanted.changes)))
    except NotFound as fault:
        return no_such_tenant(request, slug, fault)
    except Refused as refusal:
        return _tenant_sheet(request, slug, status=422, errors=refusal.errors)


@require_POST
@needs(EDIT_TENANT)
def save(request: HttpRequest, slug: str) -> HttpResponse:
    """Change a tenant's name, weight, zone or limits. It counts from the next plan on."""
    try:
        before = tenant_detail(slug, None)
        wanted = read_tenant(request.POST, before)
        if wanted.faults:
            return _tenant_sheet(request, slug, status=422, errors=wanted.faults)
        version = version_of(request)
        if not wanted.changes and version == before.version:
            return _done(request, slug, Toast(f"{slug} is as it was: nothing was different."))
        after = edit_tenant(slug, version, wanted.changes, actor=actor_of(request), reason=reason_of(request))
    except NotFound as fault:
        return no_such_tenant(request, slug, fault)
    except VersionConflict:
        return _tenant_sheet(request, slug, status=409, conflict=True)
    except Refused as refusal:
        return _tenant_sheet(request, slug, status=422, errors=refusal.errors)
    ring()
    undo = Undo(_url("tenant-save", slug), "undo", tenant_values(before) | {"version": str(after.version)})
    return _done(request, slug, Toast(f"Changed {slug}. It counts from the next start on.", undo=undo))


@require_POST
@needs(EDIT_TENANT)
def suspend(request: HttpRequest, slug: str) -> HttpResponse:
    """Nothing of the tenant starts; what runs goes on. The reason is required: the next person will read it."""
    if not reason_of(request):
        return tenant_page(request, slug, status=422, fault=ASK_WHY)
    return _set_status(request, slug, "suspended")


@require_POST
@needs(EDIT_TENANT)
def resume(request: HttpRequest, slug: str) -> HttpResponse:
    """Let the tenant's work start again."""
    return _set_status(request, slug, "active")


def _set_status(request: HttpRequest, slug: str, status: str) -> HttpResponse:
    said = {"suspended": "Suspended", "active": "Resumed"}[status]
    try:
        before = tenant_detail(slug, None)
        if before.status == status:
            return _done(request, slug, Toast(f"{slug} was {status} already. Nothing was changed."))
        edit_tenant(slug, before.version, {"status": status}, actor=actor_of(request), reason=reason_of(request))
    except NotFound as fault:
        return no_such_tenant(request, slug, fault)
    except VersionConflict as conflict:
        return tenant_page(request, slug, status=409, fault=conflict.detail, reason=reason_of(request))
    except Refused as refusal:
        return tenant_page(request, slug, status=422, fault=refusal.detail, reason=reason_of(request))
    ring()
    back = "tenant-resume" if status == "suspended" else "tenant-suspend"
    what = (
        "Nothing of it starts; what runs goes on." if status == "suspended" else "Its work starts in its usual order."
    )
    return _done(request, slug, Toast(f"{said} {slug}. {what}", undo=Undo(_url(back, slug), reason="undo")))


@require_safe
@needs(EDIT_BUDGET)
def budget(request: HttpRequest, slug: str) -> HttpResponse:
    """The form for a tenant's budget."""
    return _budget_sheet(request, slug)


@require_POST
@needs(EDIT_BUDGET)
def budget_save(request: HttpRequest, slug: str) -> HttpResponse:
    """Change what a tenant may spend in a month, when it is told, and what a success may cost."""
    try:
        before = budget_detail(slug, None)
        wanted = read_budget(request.POST, before)
        faults = wanted.faults if reason_of(request) else (*wanted.faults, _ASK)
        if faults:
            return _budget_sheet(request, slug, status=422, errors=faults)
        version = version_of(request)
        if not wanted.changes and version == before.version:
            return _done(request, slug, Toast(f"The budget of {slug} is as it was: nothing was different."))
        edit_budget(slug, version, wanted.changes, actor=actor_of(request), reason=reason_of(request))
    except NotFound as fault:
        return no_such_tenant(request, slug, fault)
    except Conflict:
        return _budget_sheet(request, slug, status=409, conflict=True)
    except Refused as refusal:
        return _budget_sheet(request, slug, status=422, errors=refusal.errors)
    ring()
    undo = Undo(_url("tenant-budget-save", slug), "undo", budget_values(before) | {"version": str(version + 1)})
    return _done(request, slug, Toast(f"Changed the budget of {slug}. It counts at once.", undo=undo))


@require_POST
@needs(TOP_UP_BUDGET)
def top_up(request: HttpRequest, slug: str) -> HttpResponse:
    """Let a tenant spend more for a while. A form that is sent twice adds once."""
    try:
        wanted = read_top_up(request.POST, budget_detail(slug, None))
        if wanted.faults:
            return tenant_page(request, slug, status=422, top_up_errors=wanted.faults)
        added = _add_once(request, slug, wanted.changes)
    except NotFound as fault:
        return no_such_tenant(request, slug, fault)
    except Refused as refusal:
        return tenant_page(request, slug, status=422, top_up_errors=_renamed(refusal.errors))
    except Conflict as conflict:
        return tenant_page(request, slug, status=409, top_up_errors=(FieldError(("amount",), conflict.detail),))
    ring()
    url = reverse("ops:tenant-top-up-end", kwargs={"slug": slug, "top_up_id": added})
    amount = wording.dollars(wanted.changes["amount"])
    return _done(request, slug, Toast(f"Topped up {slug} by {amount}. It counts at once.", undo=Undo(url, "undo")))


def _add_once(request: HttpRequest, slug: str, wanted: Any) -> int:
    """The id of the top-up that this form made, now or when it was sent before."""
    author = Author(actor_of(request), "ui", request.POST.get("why", "").strip())

    def act() -> Answer:
        row = add_top_up(slug, wanted["amount"], author, until=wanted.get("until"), for_s=wanted.get("for_s"))
        return Answer(201, str(row.id))

    form = request.POST.get("form", "")
    if not form:
        return int(act().body)
    same = f"top-up {slug} {wanted['amount']} {request.POST.get('lasts')} {author.reason}"
    return int(once(f"ops {author.actor}", form, same.encode(), act).body)


def _renamed(errors: Sequence[FieldError]) -> list[FieldError]:
    """Faults of the service at the fields of the form."""
    places = {"until": "lasts", "for_s": "lasts", "reason": "why"}
    return [FieldError((places.get(str(each.loc[-1]), str(each.loc[-1])),), each.msg) for each in errors]


@require_POST
@needs(TOP_UP_BUDGET)
def top_up_end(request: HttpRequest, slug: str, top_up_id: int) -> HttpResponse:
    """End a top-up before its time. What was spent meanwhile stays spent."""
    try:
        end_top_up(slug, top_up_id, author_of(request))
    except NotFound as fault:
        return no_such_tenant(request, slug, fault)
    except Refused as refusal:
        return tenant_page(request, slug, status=422, fault=refusal.detail)
    ring()
    return _done(request, slug, Toast(f"The top-up of {slug} is over."))


def _tenant_sheet(
    request: HttpRequest,
    slug: str,
    *,
    status: int = 200,
    errors: Sequence[FieldError] = (),
    effect: Effect | None = None,
    conflict: bool = False,
) -> HttpResponse:
    try:
        found = tenant_detail(slug, None)
    except NotFound as fault:
        return no_such_tenant(request, slug, fault)
    fields = tenant_fields(found, _posted(request))
    sheet = _sheet(slug, found.version, "", fields, tenant_fields(found))
    return sheet_page(request, sheet, status=status, errors=errors, effect=effect, conflict=conflict)


def _budget_sheet(
    request: HttpRequest, slug: str, *, status: int = 200, errors: Sequence[FieldError] = (), conflict: bool = False
) -> HttpResponse:
    try:
        found = budget_detail(slug, None)
    except NotFound as fault:
        return no_such_tenant(request, slug, fault)
    fields = budget_fields(found, _posted(request))
    sheet = _sheet(slug, found.version, "budget", fields, budget_fields(found))
    return sheet_page(request, sheet, status=status, errors=errors, conflict=conflict)


def _sheet(slug: str, version: int, aspect: str, fields: Sequence[Field], declared: Sequence[Field]) -> Sheet:
    return Sheet(
        subject=f"tenant:{slug}",
        name=slug,
        version=version,
        nav="tenants",
        route="tenant",
        part="slug",
        aspect=aspect,
        fields=fields,
        by_class=(),
        by_class_title="",
        by_class_note="",
        note="",
        rows=[
            SettingRow(now.label, now.value or wording.NONE, now.value, mine.value or wording.NONE)
            for now, mine in zip(declared, fields, strict=True)
            if now.name != "reason"
        ],
    )


def _posted(request: HttpRequest) -> Any:
    return request.POST if request.method == "POST" else None


def _url(route: str, slug: str) -> str:
    return reverse(f"ops:{route}", kwargs={"slug": slug})


def _done(request: HttpRequest, slug: str, toast: Toast) -> HttpResponse:
    return done(request, _url("tenant", slug), toast)
