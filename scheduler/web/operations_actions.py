"""Starting and changing operations on many tasks: forms that work without scripts and do nothing twice."""

from __future__ import annotations

import math
import uuid

from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from django.views.decorators.http import require_POST

from scheduler.errors import Conflict, NotFound, Refused
from scheduler.live import wording
from scheduler.policy.filters import Filter
from scheduler.policy.operations import Change, OperationKind
from scheduler.reads.operations import load_operation, preview_operation
from scheduler.reads.task_lists import read_filter
from scheduler.services.operations import Wanted, change_operation, start_operation
from scheduler.web.access import OPERATE_TASK, needs
from scheduler.web.acting import author_of, done
from scheduler.web.operation_story import VERBS
from scheduler.web.operations_page import confirm_page, kind_of, operation_page
from scheduler.web.shell import missing
from scheduler.web.toast import Toast, Undo

KEPT = ("rate", "reason", "typed", "key")
_SAID = {
    Change.PAUSE: "Paused. What is done stays done.",
    Change.RESUME: "Resumed; it goes on where it stood.",
    Change.ABORT: "Aborted. What is done stays done, what is left is untouched.",
}


@require_POST
@needs(OPERATE_TASK)
def start(request: HttpRequest) -> HttpResponse:
    """Freeze the set that was shown and begin in ten seconds. Sent twice, it is one operation."""
    kind = kind_of(request.POST.get("kind", ""))
    try:
        asked = read_filter(request.POST.get("filter", ""))
        if kind is None:
            return missing(request, "There is no such operation.")
        try:
            made = start_operation(_wanted(request, kind, asked), None, author_of(request))
        except Conflict as conflict:
            return _again(request, kind, asked, 409, conflict)
        except Refused as refusal:
            return _again(request, kind, asked, 422, refusal)
    except Refused as refusal:
        return missing(request, f"This is no filter. {refusal.detail}")
    row = load_operation(made, None).row
    undo = Undo(_address("operation-abort", made), reason="taken back")
    text = f"{VERBS[kind]} {wording.plural(row.total, 'task')}: starts in 10 s."
    return done(request, _address("operation", made), Toast(text, undo=undo))


def _wanted(request: HttpRequest, kind: OperationKind, asked: Filter) -> Wanted:
    return Wanted(
        kind,
        asked,
        rate=_number(request.POST.get("rate", "")),
        as_of=_number(request.POST.get("as_of", "")) or None,
        shown=int(_number(request.POST.get("count", ""))),
        typed=request.POST.get("typed", "")[:50],
        key=request.POST.get("key") or str(uuid.uuid4()),
    )


def _number(text: str) -> float:
    """A number as it was sent; 0, which nothing accepts, for what is none."""
    try:
        value = float(text)
    except ValueError:
        return 0.0
    return value if math.isfinite(value) and abs(value) < 2**53 else 0.0


def _again(
    request: HttpRequest, kind: OperationKind, asked: Filter, status: int, refusal: Conflict | Refused
) -> HttpResponse:
    """The page of confirmation as things stand now, with what was typed and what is wrong with it."""
    found = preview_operation(kind, asked, None)
    said = {name: request.POST.get(name, "")[:500] for name in KEPT}
    said["key"] = said["key"] or str(uuid.uuid4())
    return confirm_page(request, found, said, status=status, errors=refusal.errors)


@require_POST
@needs(OPERATE_TASK)
def pause(request: HttpRequest, operation_id: int) -> HttpResponse:
    """Do nothing more until it is resumed."""
    return _change(request, operation_id, Change.PAUSE, undo="operation-resume")


@require_POST
@needs(OPERATE_TASK)
def resume(request: HttpRequest, operation_id: int) -> HttpResponse:
    """Go on where it stands."""
    return _change(request, operation_id, Change.RESUME, undo="operation-pause")


@require_POST
@needs(OPERATE_TASK)
def abort(request: HttpRequest, operation_id: int) -> HttpResponse:
    """Leave what is left untouched."""
    return _change(request, operation_id, Change.ABORT, undo="operation-resume")


def _change(request: HttpRequest, operation_id: int, change: Change, *, undo: str) -> HttpResponse:
    try:
        change_operation(operation_id, change, None, author_of(request))
    except NotFound as fault:
        return missing(request, fault.detail)
    except Conflict as conflict:
        return operation_page(request, operation_id, status=409, fault=conflict.detail)
    toast = Toast(_SAID[change], undo=Undo(_address(undo, operation_id), reason="undo"))
    return done(request, _address("operation", operation_id), toast)


def _address(route: str, operation_id: int) -> str:
    return reverse(f"ops:{route}", kwargs={"operation_id": operation_id})
