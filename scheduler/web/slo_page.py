"""The page of targets: what waits are foreseen and seen, how good the foresight was, and what a change would do."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf, isfinite
from typing import Final

from django.http import HttpRequest, HttpResponse
from django.views.decorators.http import require_safe

from scheduler.errors import FieldError, NotFound, Refused
from scheduler.live import wording
from scheduler.live.frames import Key
from scheduler.policy.calibration import Report
from scheduler.policy.learned import STARTS_MIN
from scheduler.policy.types import ResourceKind
from scheduler.reads.forecast import Calibration
from scheduler.reads.waits import EACH_MINUTE_MAX, Observed, Targets, targets
from scheduler.services.preview import Previewed, preview_pool, preview_resource
from scheduler.web.access import VIEW_CONSOLE, needs
from scheduler.web.effects import Effect, effect_of
from scheduler.web.fields import Field, with_faults
from scheduler.web.shell import page

CHOICES_MAX: Final = 500
APART: Final = 1.25
"""Waits whose ninetieth percentiles differ by more than this factor have a trend."""
SHORT_S: Final = 1.0
"""Waits that short have none worth a word."""
_CALIBRATED: Final = 0.9
_SLACK: Final = 0.05


@dataclass(frozen=True, slots=True)
class SeenRow:
    """How long a class really waited. `kept` is the part that stayed within its target."""

    pool: str
    cls: str
    recent: str
    recent_note: str
    hour: str
    hour_note: str
    kept: str
    trend: str


@dataclass(frozen=True, slots=True)
class RecordRow:
    """How forecasts came out, of a pool's class or of one length of waits."""

    name: str
    cls: str
    number: str
    inside: str
    inside_long: str
    error: str


@require_safe
@needs(VIEW_CONSOLE)
def slo(request: HttpRequest) -> HttpResponse:
    """Targets against waits; with `of` and `value` in the address, also what that change would do."""
    known = targets()
    effect, errors = _what_if(request, known) if "of" in request.GET else (None, ())
    fields, faults = with_faults(_fields(request, known), errors)
    record = known.record
    return page(
        request,
        "ops/slo.html",
        title="SLO",
        nav="slo",
        live=Key("slo"),
        status=422 if errors else 200,
        seen=[_seen(each) for each in known.seen],
        each_minute=EACH_MINUTE_MAX,
        record_says=_record_sentence(record.overall),
        lengths=_lengths(record),
        seats=[_record(pool, priority.label, found) for (pool, priority), found in record.by_seat.items()],
        fields=fields,
        faults=faults,
        effect=effect,
    )


# What was seen


def _seen(each: Observed) -> SeenRow:
    return SeenRow(
        each.pool,
        each.priority.label,
        _p90(each.recent_p90_s, each.recent),
        wording.plural(each.recent, "start"),
        _p90(each.p90_s, each.starts),
        wording.plural(each.starts, "start"),
        wording.NONE if each.kept is None else wording.percent(each.kept / each.starts),
        _trend(each),
    )


def _trend(each: Observed) -> str:
    """Whether waits of the last minutes are like those of the hour; nothing is said of which too little is known."""
    if each.recent_p90_s is None or min(each.recent, each.starts) < STARTS_MIN:
        return wording.NONE
    if max(each.recent_p90_s, each.p90_s) < SHORT_S:
        return "steady"
    if each.recent_p90_s > each.p90_s * APART:
        return "worsening"
    return "improving" if each.recent_p90_s * APART < each.p90_s else "steady"


def _p90(seconds: float | None, starts: int) -> str:
    if seconds is None or starts < STARTS_MIN:
        return "not enough data"
    return wording.duration(seconds)


# How good the foresight was


def _record_sentence(overall: Report) -> str:
    if overall.n < STARTS_MIN or overall.inside_p90 is None:
        starts = wording.plural(overall.n, "prediction")
        return (
            f"Not enough data: {starts} of the last hour can be compared with what happened, {STARTS_MIN} are needed."
        )
    inside = wording.percent(overall.inside_p90)
    made = wording.plural(overall.n, "prediction")
    says = f"Of {made} of the last hour, {inside} came true: the wait was within its p90."
    if overall.inside_p90 < _CALIBRATED - _SLACK:
        return f"{says} That is too few; nine in ten are meant to, so read the bands as too narrow at the moment."
    return says


def _lengths(record: Calibration) -> list[RecordRow]:
    rows, least = [], 0.0
    for most, found in record.by_length.items():
        name = f"over {least:g} s" if most == inf else f"up to {most:g} s"
        rows.append(_record(name, "", found))
        least = most
    return rows


def _record(name: str, cls: str, found: Report) -> RecordRow:
    return RecordRow(
        name,
        cls,
        wording.count(found.n),
        _part(found.inside_p90),
        _part(found.inside_p90_telling),
        _part(found.median_error),
    )


def _part(part: float | None) -> str:
    return wording.NONE if part is None else wording.percent(part)


# What if


def _fields(request: HttpRequest, known: Targets) -> list[Field]:
    unit = {ResourceKind.TOKEN_BUCKET: "tokens per second", ResourceKind.SEMAPHORE: "permits"}
    options = [(f"resource:{name}", f"{name}: {unit[kind]}") for name, kind in known.kinds.items()]
    options += [(f"pool:{name}", f"{name}: slots") for name in known.pools]
    return [
        Field("of", "If this", request.GET.get("of", ""), kind="select", options=options[:CHOICES_MAX]),
        Field(
            "value",
            "were",
            request.GET.get("value", ""),
            "0 stops all that needs it.",
            kind="number",
            required=True,
            extra={"inputmode": "decimal", "min": "0", "step": "any"},
        ),
    ]


def _what_if(request: HttpRequest, known: Targets) -> tuple[Effect | None, Sequence[FieldError]]:
    kind, _, name = request.GET.get("of", "").partition(":")
    value = _number(request.GET.get("value", ""))
    if value is None:
        return None, (FieldError(("value",), "Write a number, for example 40."),)
    try:
        return effect_of(_preview(known, kind, name, value)), ()
    except NotFound as fault:
        return None, (FieldError(("of",), f"{fault.detail} Choose one of these."),)
    except Refused as refusal:
        return None, tuple(FieldError(("value",), error.msg) for error in refusal.errors)


def _number(text: str) -> float | None:
    try:
        value = float(text.strip().replace(",", ""))
    except ValueError:
        return None
    return value if isfinite(value) else None


def _preview(known: Targets, kind: str, name: str, value: float) -> Previewed:
    if kind == "pool":
        return preview_pool(name, slots=_whole(value))
    if kind != "resource" or name not in known.kinds:
        raise NotFound(f"There is no limit or pool named {name!r}.", code="unknown_resource")
    if known.kinds[name] is ResourceKind.TOKEN_BUCKET:
        return preview_resource(name, {"rate": value})
    return preview_resource(name, {"permits": _whole(value)})


def _whole(value: float) -> int:
    if value != int(value):
        detail = "Write a whole number."
        raise Refused(detail, code="bad_value", errors=(FieldError(("value",), detail),))
    return int(value)
