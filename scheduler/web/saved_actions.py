"""Keeping the filter of the list of tasks under a name, and forgetting one."""

from __future__ import annotations

from urllib.parse import urlencode

from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from django.views.decorators.http import require_POST

from scheduler.errors import Conflict, FieldError, NotFound, Refused
from scheduler.services.saved_filters import forget_filter, save_filter
from scheduler.web.access import OPERATE_TASK, VIEW_CONSOLE, may, needs
from scheduler.web.acting import author_of, done
from scheduler.web.filtering import address, box_of
from scheduler.web.shell import missing
from scheduler.web.tasks_page import tasks_page
from scheduler.web.toast import Toast, Undo

SHARING = "Sharing a filter needs the permission scheduler.operate_task; save it for yourself."


@require_POST
@needs(VIEW_CONSOLE)
def save(request: HttpRequest) -> HttpResponse:
    """Keep the filter that the address asks for."""
    name, shared = request.POST.get("name", "").strip(), request.POST.get("shared") == "on"
    if shared and not may(request, OPERATE_TASK):
        return tasks_page(request, save_errors=(FieldError(("name",), SHARING),), status=422)
    owner = None if shared else request.user.pk
    try:
        save_filter(name, request.GET.get("filter", ""), owner, author_of(request))
    except (Refused, Conflict) as refusal:
        status = 409 if isinstance(refusal, Conflict) else 422
        errors = refusal.errors or (FieldError(("name",), refusal.detail),)
        return tasks_page(request, save_errors=errors, status=status)
    asked = box_of(request).asked
    return done(
        request, address(reverse("ops:tasks"), asked), Toast(f"Saved as “{name}”{' for everybody' if shared else ''}.")
    )


@require_POST
@needs(VIEW_CONSOLE)
def forget(request: HttpRequest, filter_id: int) -> HttpResponse:
    """Forget one of one's own, or one that is shared."""
    person, may_share = request.user.pk or 0, may(request, OPERATE_TASK)
    try:
        row = forget_filter(filter_id, person, author_of(request), shared=may_share)
    except NotFound as fault:
        return missing(request, fault.detail)
    url = f"{reverse('ops:filter-save')}?{urlencode({'filter': row.filter})}"
    undo = Undo(url, "undo", {"name": row.name, "shared": "on" if row.shared else ""})
    return done(request, reverse("ops:tasks"), Toast(f"Forgot “{row.name}”.", undo=undo))
