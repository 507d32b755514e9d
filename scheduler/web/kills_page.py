"""The kill switch: what is killed beside single runs, and the two steps that kill a tenant, a pool, or everything."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from django.http import HttpRequest, HttpResponse
from django.views.decorators.http import require_safe

from scheduler.errors import FieldError, NotFound, Refused
from scheduler.policy.runs import KillScope
from scheduler.reads.kills import reached_by
from scheduler.reads.runs import kills_in_force
from scheduler.web import run_story
from scheduler.web.access import OPERATE_RUN, VIEW_CONSOLE, may, needs
from scheduler.web.fields import Field, with_faults
from scheduler.web.shell import page
from scheduler.web.task_story import when

SCOPES: Final = (("tenant", "a tenant"), ("pool", "a pool"), ("everything", "everything"))


@require_safe
@needs(VIEW_CONSOLE)
def kills(request: HttpRequest) -> HttpResponse:
    """What is killed now."""
    return kills_page(request)


def kills_page(
    request: HttpRequest, *, status: int = 200, errors: Sequence[FieldError] = (), fault: str = ""
) -> HttpResponse:
    """The page, after a refusal with the input kept."""
    asked = request.POST if request.method == "POST" else request.GET
    fields, rest = with_faults(
        [
            Field("scope", "Kill", asked.get("scope", "tenant"), kind="select", options=SCOPES),
            Field("name", "Named", asked.get("name", ""), help="Leave it empty for everything.", extra=_NAME),
        ],
        errors,
    )
    return page(
        request,
        "ops/kills.html",
        title="Kill switch",
        nav="runs",
        status=status,
        kills=[(run_story.kill_sentence(kill), when(kill.killed_at), kill) for kill in kills_in_force()],
        fields=fields,
        fault=" ".join([fault, *rest]).strip(),
        may_operate=may(request, OPERATE_RUN),
        permission=OPERATE_RUN,
    )


_NAME: Final = {"maxlength": "64", "autocapitalize": "none", "spellcheck": "false"}


@require_safe
@needs(OPERATE_RUN)
def kill_confirm(request: HttpRequest) -> HttpResponse:
    """What the kill would reach, and the form that does it."""
    return confirm_page(request)


def scope_of(request: HttpRequest) -> tuple[KillScope | None, str]:
    """What is to be killed; None when that is nothing that can be."""
    asked = request.POST if request.method == "POST" else request.GET
    scope, name = asked.get("scope", ""), asked.get("name", "").strip()
    return (KillScope(scope) if scope in dict(SCOPES) else None), name


def confirm_page(
    request: HttpRequest, *, status: int = 200, errors: Sequence[FieldError] = (), fault: str = ""
) -> HttpResponse:
    """The page that asks before a kill, after a refusal with the input kept."""
    scope, name = scope_of(request)
    if scope is None:
        return kills_page(request, status=422, errors=(FieldError(("scope",), "Choose one of the list."),))
    try:
        running = reached_by(scope, name)
    except (NotFound, Refused) as refusal:
        return kills_page(request, status=422, errors=refusal.errors)
    fields, _ = with_faults(
        [
            Field("reason", "Reason", request.POST.get("reason", ""), required=True, extra={"maxlength": "200"}),
            Field("typed", f"Type {word_for(scope, name)} to confirm", request.POST.get("typed", ""), required=True),
        ],
        errors,
    )
    return page(
        request,
        "ops/kill_confirm.html",
        title="Kill",
        nav="runs",
        status=status,
        scope=scope.value,
        name=name,
        what=f"the {scope} {name}" if name else "everything",
        running=running,
        fields=fields,
        fault=fault,
    )


def word_for(scope: KillScope, name: str) -> str:
    """What has to be typed."""
    return name if scope is not KillScope.EVERYTHING else "everything"
