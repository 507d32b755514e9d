"""The page of one run: where it stands and why, its steps over time, what it left behind; and what asks first."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from urllib.parse import urlencode

from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from django.views.decorators.http import require_safe

from scheduler.errors import FieldError, NotFound
from scheduler.policy.money import format_usd
from scheduler.policy.runs import OPEN, RunState
from scheduler.policy.types import RunId
from scheduler.reads.run_pages import DRAWN_MAX, RECEIPTS_MAX, Story, reach_of_kill, story
from scheduler.reads.runs import RunRow, run_row
from scheduler.web import audit_story, run_drawing, run_story, task_story
from scheduler.web.access import OPERATE_RUN, VIEW_CONSOLE, VIEW_PAYLOAD, may, needs
from scheduler.web.fields import Field, with_faults
from scheduler.web.run_drawing import Scale
from scheduler.web.shell import missing, page
from scheduler.web.task_story import Document, when


@require_safe
@needs(VIEW_CONSOLE)
def run(request: HttpRequest, run_id: int) -> HttpResponse:
    """One run."""
    return run_page(request, run_id)


def run_page(
    request: HttpRequest, run_id: int, *, status: int = 200, reason: str = "", fault: str = ""
) -> HttpResponse:
    """The page of a run, after a refused action with the input kept and the fault beside it."""
    after = _number(request.GET.get("after", ""))
    try:
        told = story(RunId(run_id), steps_after=after)
    except NotFound as refusal:
        return missing(request, refusal.detail)
    row = told.detail.run
    drawing = run_drawing.draw(told.spans, told.edges, now=told.now)
    scale = Scale(row.created_at, told.now) if drawing is None else Scale(drawing.begin, drawing.end)
    here = reverse("ops:run", kwargs={"run_id": run_id})
    return page(
        request,
        "ops/run.html",
        title=run_story.title_of(row),
        nav="runs",
        status=status,
        run=row,
        chip=run_story.chip_of(row.state),
        open=row.state in OPEN,
        resumable=row.state in (RunState.PAUSED, RunState.KILLED),
        may_operate=may(request, OPERATE_RUN),
        permission=OPERATE_RUN,
        reason=reason,
        fault=fault,
        looked=when(told.now),
        page_url=here,
        says=list(run_story.stands(told)),
        figures=run_story.figures_of(told),
        caps=run_story.caps_of(told),
        drawing=drawing,
        drawn_from=wholly_drawn(told),
        begins=None if drawing is None else when(drawing.begin),
        ends=None if drawing is None else when(drawing.end),
        steps=run_story.steps_of(told, scale),
        paged=after > 0,
        older=f"{here}?{urlencode({'after': told.steps[-1].task})}#steps-h" if told.more else "",
        newer=f"{here}#steps-h" if after else "",
        receipts=[run_story.receipt_of(each) for each in told.receipts[:RECEIPTS_MAX]],
        receipts_more=len(told.receipts) > RECEIPTS_MAX,
        costs=[run_story.cost_of(each, sum(c.cost_nano for c in told.costs)) for each in told.costs],
        checkpoint=told.checkpoint,
        checkpoint_at=None if told.checkpoint is None else when(told.checkpoint.saved_at),
        **audit_story.panel(request, f"run:{row.id}", told.audit),
        documents=_documents(told, shown=may(request, VIEW_PAYLOAD)),
    )


def wholly_drawn(told: Story) -> str:
    """Which steps the drawing is of, when not all."""
    return f"The newest {DRAWN_MAX:,} steps." if len(told.spans) == DRAWN_MAX else ""


def _number(text: str) -> int:
    return int(text) if text.isascii() and text.isdigit() and len(text) < 19 else 0  # noqa: PLR2004 - 2**63 has more


def _documents(told: Story, *, shown: bool) -> list[Document]:
    texts = [
        ("Goal", told.detail.goal),
        ("Result", told.detail.result),
        ("Checkpoint", None if told.checkpoint is None else told.checkpoint.text),
    ]
    return [task_story.document_of(title, text, shown=shown, permission=VIEW_PAYLOAD) for title, text in texts]


@require_safe
@needs(OPERATE_RUN)
def kill(request: HttpRequest, run_id: int) -> HttpResponse:
    """What killing this run would do, and the form that does it."""
    return kill_page(request, run_id)


def kill_page(
    request: HttpRequest, run_id: int, *, status: int = 200, errors: Sequence[FieldError] = (), fault: str = ""
) -> HttpResponse:
    """The page that asks before a run is killed, after a refusal with the input kept."""
    try:
        reach = reach_of_kill(RunId(run_id))
    except NotFound as refusal:
        return missing(request, refusal.detail)
    fields, _ = with_faults(
        [
            Field("reason", "Reason", request.POST.get("reason", ""), required=True, extra={"maxlength": "200"}),
            Field(
                "typed",
                f"Type {run_id} to confirm",
                request.POST.get("typed", ""),
                required=True,
                extra={"inputmode": "numeric", "maxlength": "20"},
            ),
        ],
        errors,
    )
    return page(
        request,
        "ops/run_kill.html",
        title="Kill a run",
        nav="runs",
        status=status,
        run=reach.detail.run,
        name=run_story.title_of(reach.detail.run),
        chip=run_story.chip_of(reach.detail.run.state),
        open=reach.detail.run.state in OPEN,
        progress=reach.progress,
        claims=reach.claims,
        fields=fields,
        fault=fault,
    )


@require_safe
@needs(OPERATE_RUN)
def caps(request: HttpRequest, run_id: int) -> HttpResponse:
    """The form that gives a run other caps."""
    return caps_page(request, run_id)


def caps_page(
    request: HttpRequest,
    run_id: int,
    *,
    status: int = 200,
    errors: Sequence[FieldError] = (),
    fault: str = "",
    typed: dict[str, str] | None = None,
) -> HttpResponse:
    """The form, after a refusal with what was typed and the current values beside it."""
    try:
        row = run_row(RunId(run_id), None)
    except NotFound as refusal:
        return missing(request, refusal.detail)
    fields, rest = with_faults(cap_fields(row, typed), errors)
    return page(
        request,
        "ops/run_caps.html",
        title="Change caps",
        nav="runs",
        status=status,
        run=row,
        name=run_story.title_of(row),
        fields=fields,
        fault=" ".join([fault, *rest]).strip(),
    )


def cap_values(row: RunRow) -> dict[str, str]:
    """The caps as the form shows them; empty: no cap."""
    caps = row.caps
    return {
        "max_steps": str(caps.max_steps),
        "max_width": str(caps.max_width),
        "max_tokens": "" if caps.max_tokens is None else str(caps.max_tokens),
        "max_cost_usd": "" if caps.max_cost_nano is None else format_usd(caps.max_cost_nano),
        "wall_clock_s": "" if caps.wall_s is None else f"{caps.wall_s:.0f}",
    }


_LABELS: dict[str, tuple[str, str]] = {
    "max_steps": ("Steps it may take in", "Steps beyond are refused; the run goes on."),
    "max_width": ("Steps at once", ""),
    "max_tokens": ("Tokens", "Reaching it kills the run. Empty: no cap."),
    "max_cost_usd": ("Money, in dollars", "Reaching it kills the run. Empty: no cap."),
    "wall_clock_s": ("Time since it was created, in seconds", "Reaching it kills the run. Empty: no cap."),
}


def cap_fields(row: RunRow, typed: dict[str, str] | None) -> list[Field]:
    """One input for each cap; one that was typed keeps its text and says what is current where that differs."""
    current = cap_values(row)
    fields = []
    for name, (label, help_) in _LABELS.items():
        value = current[name] if typed is None else typed.get(name, "")
        said = help_ if value == current[name] else f"{help_} Now {current[name] or 'no cap'}.".strip()
        extra: dict[str, Any] = {"inputmode": "decimal" if name == "max_cost_usd" else "numeric", "maxlength": "24"}
        fields.append(Field(name, label, value, said, required=name in ("max_steps", "max_width"), extra=extra))
    reason = "" if typed is None else typed.get("reason", "")
    return [*fields, Field("reason", "Reason", reason, required=True, extra={"maxlength": "200"})]
