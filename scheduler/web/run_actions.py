"""Pausing, resuming and killing a run, and giving it other caps. Each works without scripts and says what it did."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from django.views.decorators.http import require_POST

from scheduler.errors import Conflict, FieldError, NotFound, Refused
from scheduler.live.wording import plural
from scheduler.policy.money import parse_usd
from scheduler.policy.types import RunId
from scheduler.services.kill import kill_run
from scheduler.services.runs import edit_caps, pause_run, resume_run
from scheduler.web.access import OPERATE_RUN, needs
from scheduler.web.acting import actor_of, done, reason_of
from scheduler.web.run_page import caps_page, kill_page, run_page
from scheduler.web.toast import Toast, Undo

ASK_WHY = "Say why, so that the next person knows when to resume."


@require_POST
@needs(OPERATE_RUN)
def pause(request: HttpRequest, run_id: int) -> HttpResponse:
    """The run starts no further step; those that run go on. The reason is required."""
    reason = reason_of(request)
    if not reason:
        return run_page(request, run_id, status=422, fault=ASK_WHY)
    try:
        pause_run(RunId(run_id), None, actor=actor_of(request), reason=reason, source="ui")
    except NotFound:
        return run_page(request, run_id)
    except (Conflict, Refused) as refusal:
        status = 409 if isinstance(refusal, Conflict) else 422
        return run_page(request, run_id, status=status, reason=reason, fault=f"{refusal.detail} Nothing was changed.")
    undo = Undo(reverse("ops:run-resume", kwargs={"run_id": run_id}), reason="undo")
    return _done(request, run_id, Toast("Paused. It starts no further step; what runs goes on.", undo=undo))


@require_POST
@needs(OPERATE_RUN)
def resume(request: HttpRequest, run_id: int) -> HttpResponse:
    """Let a paused or killed run go on."""
    reason = reason_of(request)
    try:
        resume_run(RunId(run_id), None, actor=actor_of(request), reason=reason, source="ui")
    except NotFound:
        return run_page(request, run_id)
    except (Conflict, Refused) as refusal:
        status = 409 if isinstance(refusal, Conflict) else 422
        return run_page(request, run_id, status=status, reason=reason, fault=f"{refusal.detail} Nothing was changed.")
    return _done(request, run_id, Toast("Resumed. Its steps start again in their usual order."))


@require_POST
@needs(OPERATE_RUN)
def kill_now(request: HttpRequest, run_id: int) -> HttpResponse:
    """Kill the run, once its number was typed and a reason was given."""
    reason, errors = reason_of(request), []
    if not reason:
        errors.append(FieldError(("reason",), "Say why: it is shown to the run's owner."))
    if request.POST.get("typed", "").strip() != str(run_id):
        errors.append(FieldError(("typed",), f"Type {run_id}, the number of this run."))
    if errors:
        return kill_page(request, run_id, status=422, errors=errors)
    try:
        killed = kill_run(RunId(run_id), None, actor=actor_of(request), reason=reason, source="ui")
    except NotFound:
        return run_page(request, run_id)
    except (Conflict, Refused) as refusal:
        status = 409 if isinstance(refusal, Conflict) else 422
        return kill_page(request, run_id, status=status, fault=f"{refusal.detail} Nothing was changed.")
    told = plural(killed.told, "running step was", "running steps were")
    return _done(request, run_id, Toast(f"Killed. {told} told to stop; what waits is cancelled."))


@require_POST
@needs(OPERATE_RUN)
def caps_save(request: HttpRequest, run_id: int) -> HttpResponse:
    """Give the run other caps, if nobody changed it since the form was drawn."""
    typed = {name: request.POST.get(name, "").strip() for name in request.POST}
    changes, errors = _caps_in(typed)
    if not reason_of(request):
        errors.append(FieldError(("reason",), "Say why: it stays in the audit."))
    version = typed.get("version", "")
    if errors or not version.isdigit():
        return caps_page(request, run_id, status=422, errors=errors, typed=typed)
    try:
        edit_caps(
            RunId(run_id),
            None,
            int(version),
            changes,
            actor=actor_of(request),
            reason=reason_of(request),
            source="ui",
        )
    except NotFound:
        return run_page(request, run_id)
    except Conflict as refusal:
        said = f"{refusal.detail} What you typed is kept beside what is current; save again to replace that."
        return caps_page(request, run_id, status=409, fault=said, typed=typed)
    except Refused as refusal:
        return caps_page(request, run_id, status=422, errors=refusal.errors, typed=typed)
    return _done(request, run_id, Toast("The caps were changed."))


def _caps_in(typed: dict[str, str]) -> tuple[dict[str, Any], list[FieldError]]:
    """The caps as the service takes them, and what cannot be read."""
    changes: dict[str, Any] = {}
    errors = []
    for name, key in (("max_steps", "max_steps"), ("max_width", "max_width"), ("max_tokens", "max_tokens")):
        text = typed.get(name, "")
        if text == "" and name == "max_tokens":
            changes[key] = None
        elif text.isascii() and text.isdigit() and len(text) <= 16:  # noqa: PLR2004 - beyond any bound
            changes[key] = int(text)
        else:
            errors.append(FieldError((name,), "Write a whole number above 0."))
    text = typed.get("max_cost_usd", "")
    try:
        changes["max_cost_nano"] = parse_usd(text) if text else None
    except ValueError as fault:
        errors.append(FieldError(("max_cost_usd",), str(fault)))
    text = typed.get("wall_clock_s", "")
    if text and not (text.isascii() and text.isdigit() and len(text) <= 12):  # noqa: PLR2004 - beyond any bound
        errors.append(FieldError(("wall_clock_s",), "Write whole seconds."))
    else:
        changes["wall_s"] = float(text) if text else None
    return changes, errors


def _done(request: HttpRequest, run_id: int, toast: Toast) -> HttpResponse:
    return done(request, reverse("ops:run", kwargs={"run_id": run_id}), toast)
