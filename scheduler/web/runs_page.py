"""The list of runs: how they all stand, and a page of them by state, tenant and age."""

from __future__ import annotations

from typing import Final
from urllib.parse import urlencode

from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from django.views.decorators.http import require_safe

from scheduler.errors import FieldError, Refused
from scheduler.policy.runs import OPEN, RunState
from scheduler.reads.run_pages import Page, Wanted, figures, list_page
from scheduler.reads.runs import kills_in_force
from scheduler.web import run_story
from scheduler.web.access import VIEW_CONSOLE, needs
from scheduler.web.fields import Field, with_faults
from scheduler.web.shell import page
from scheduler.web.task_story import when

_HOUR_S: Final = 3_600.0
_DAY_S: Final = 86_400.0
STATES: Final[dict[str, tuple[RunState, ...]]] = {
    "": (),
    "open": tuple(sorted(OPEN)),
    **{state.value: (state,) for state in RunState},
}
STATE_OPTIONS: Final = (("", "any"), ("open", "open: active or paused"), *((s.value, s.value) for s in RunState))
AGES: Final[dict[str, tuple[float | None, float | None]]] = {
    "": (None, None),
    "under-1h": (None, _HOUR_S),
    "under-1d": (None, _DAY_S),
    "over-1h": (_HOUR_S, None),
    "over-1d": (_DAY_S, None),
}
AGE_OPTIONS: Final = (
    ("", "any"),
    ("under-1h", "less than an hour"),
    ("under-1d", "less than a day"),
    ("over-1h", "more than an hour"),
    ("over-1d", "more than a day"),
)


@require_safe
@needs(VIEW_CONSOLE)
def runs(request: HttpRequest) -> HttpResponse:
    """A page of runs; what is asked for stands in the address. 422 when that means nothing, with everything shown."""
    asked = {name: request.GET.get(name, "").strip() for name in ("state", "tenant", "age")}
    errors = _faults(asked)
    try:
        found = list_page(_wanted(asked), **_cursor(request)) if not errors else Page((), {}, None, None)
    except Refused as refusal:
        errors, found = list(refusal.errors), Page((), {}, None, None)
    fields, _ = with_faults(_fields(asked), errors)
    stand = figures()
    filters = {name: value for name, value in asked.items() if value}
    here = reverse("ops:runs")
    return page(
        request,
        "ops/runs.html",
        title="Runs",
        nav="runs",
        status=422 if errors else 200,
        fields=fields,
        filtered=bool(filters),
        headline=run_story.list_headline(stand),
        figures=run_story.list_figures(stand),
        kills=[(run_story.kill_sentence(kill), kill) for kill in kills_in_force()],
        lines=[run_story.line_of(run, found.progress[run.id], now=stand.now) for run in found.runs],
        looked=when(stand.now),
        older="" if found.older is None else f"{here}?{urlencode({**filters, 'below': found.older})}",
        newer="" if found.newer is None else f"{here}?{urlencode({**filters, 'above': found.newer})}",
        first=f"{here}?{urlencode(filters)}" if filters else here,
        paged=bool(_cursor(request)),
        faulty=bool(errors),
    )


def _faults(asked: dict[str, str]) -> list[FieldError]:
    return [
        FieldError((name,), "Choose one of the list.")
        for name, known in (("state", STATES), ("age", AGES))
        if asked[name] not in known
    ]


def _wanted(asked: dict[str, str]) -> Wanted:
    older_than_s, younger_than_s = AGES[asked["age"]]
    return Wanted(STATES[asked["state"]], asked["tenant"], older_than_s, younger_than_s)


def _cursor(request: HttpRequest) -> dict[str, int]:
    """Where the page begins; one that is no number is the first page."""
    for name in ("below", "above"):
        text = request.GET.get(name, "")
        if text.isascii() and text.isdigit() and len(text) < 19:  # noqa: PLR2004 - fewer digits than 2**63 has
            return {name: int(text)}
    return {}


def _fields(asked: dict[str, str]) -> list[Field]:
    return [
        Field("state", "State", asked["state"], kind="select", options=STATE_OPTIONS),
        Field("tenant", "Tenant", asked["tenant"], extra={"maxlength": "64", "placeholder": "any"}),
        Field("age", "Begun", asked["age"], kind="select", options=AGE_OPTIONS),
    ]
