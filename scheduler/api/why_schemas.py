"""What somebody is told who asks why a task waits."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from pydantic import Field

from scheduler.api.answers import Out, moment
from scheduler.api.forecast_schemas import BandOut
from scheduler.policy.explain import Reason
from scheduler.reads.why import Explanation


class ReasonOut(Out):
    """Why a task is not running."""

    code: str
    text: str
    detail: dict[str, Any]


class WhyOut(Out):
    """Every reason that holds now, most decisive first."""

    id: int
    state: str
    reasons: list[ReasonOut]
    position: int | None = Field(description="About how many tasks start first; null when the task is not ready")
    forecast: BandOut | None = Field(None, description="Seconds from now until it starts; null while that is not known")
    as_of: datetime


def present_why(found: Explanation) -> WhyOut:
    """The explanation as it is sent."""
    reasons = [present_reason(reason) for reason in found.reasons]
    state, as_of = found.state.value, moment(found.as_of)
    band = None if found.band is None else BandOut.of(found.band)
    return WhyOut(id=found.task, state=state, reasons=reasons, position=found.position, forecast=band, as_of=as_of)


def present_reason(reason: Reason) -> ReasonOut:
    """One reason as it is sent."""
    return ReasonOut(code=reason.code, text=reason.text, detail=_detail(reason.detail))


def _detail(detail: Mapping[str, object]) -> dict[str, Any]:
    return {
        name: moment(value) if name.endswith("_at") and isinstance(value, float) else value
        for name, value in detail.items()
    }
