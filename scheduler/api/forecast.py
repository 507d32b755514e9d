"""What is foreseen by pool and class, and how well that has been so far."""

from __future__ import annotations

from datetime import datetime
from typing import Final

from django.http import HttpRequest, HttpResponse
from pydantic import Field

from scheduler.api.access import READ
from scheduler.api.answers import Out, moment, respond
from scheduler.api.fields import PROBLEMS, Problem
from scheduler.api.forecast_schemas import BandOut
from scheduler.api.router import Router
from scheduler.api.threads import in_pool
from scheduler.errors import Unavailable
from scheduler.policy.calibration import Report
from scheduler.policy.types import PoolId, PriorityClass
from scheduler.reads.forecast import Said, calibration, oldest_waiting_s, published_forecast

router = Router(tags=["observing"])

SUFFICIENT: Final = "ok"
INSUFFICIENT: Final = "insufficient data"


class ClassForecastOut(Out):
    """The wait of a task submitted now, and beside it what is: how long the oldest has waited."""

    forecast: BandOut | None
    oldest_waiting_s: float | None


class PoolForecastOut(Out):
    """A pool's forecast by class. `insufficient data`: fewer than 20 attempts ended lately."""

    pool: str
    status: str
    classes: dict[str, ClassForecastOut]


class ReportOut(Out):
    """How forecasts came out. Null: there were none, or for the last two none of waits above a second."""

    n: int
    inside_p90: float | None = Field(description="Part of the waits that were no longer than their p90")
    n_above_1s: int
    inside_p90_above_1s: float | None
    median_error_above_1s: float | None = Field(description="Median of |p50 − wait| ÷ wait")

    @classmethod
    def of(cls, report: Report) -> ReportOut:
        """From the figures."""
        return cls(
            n=report.n,
            inside_p90=_part(report.inside_p90),
            n_above_1s=report.n_telling,
            inside_p90_above_1s=_part(report.inside_p90_telling),
            median_error_above_1s=_part(report.median_error),
        )


class CalibrationOut(Out):
    """Sampled predictions of the last hour against what happened, overall and by pool and class."""

    window_s: float
    overall: ReportOut
    pools: dict[str, dict[str, ReportOut]]


class ForecastOut(Out):
    """Waits that are foreseen, looking fifteen minutes ahead."""

    as_of: datetime
    pools: list[PoolForecastOut]
    calibration: CalibrationOut


@router.get("/forecast", auth=READ, operation_id="get_forecast", response={200: ForecastOut, PROBLEMS: Problem})
@in_pool
def get_forecast(request: HttpRequest) -> HttpResponse:
    """How long a task submitted now may wait, by pool and class, with the record of such forecasts."""
    said = published_forecast()
    if said is None:
        detail = (
            "There is no forecast yet: a leading engine makes one every few seconds, and none does on this database."
        )
        raise Unavailable(detail, code="no_forecast", retry_after_s=2.0)
    oldest = oldest_waiting_s()
    record = calibration()
    pools: dict[str, dict[str, ReportOut]] = {}
    for (pool, priority), report in record.by_seat.items():
        pools.setdefault(pool, {})[priority.label] = ReportOut.of(report)
    overall = CalibrationOut(window_s=record.window_s, overall=ReportOut.of(record.overall), pools=pools)
    answer = ForecastOut(as_of=moment(said.as_of), pools=_pools(said, oldest), calibration=overall)
    return respond(200, answer)


def _pools(said: Said, oldest: dict[tuple[PoolId, PriorityClass], float]) -> list[PoolForecastOut]:
    found = []
    for pool in said.pools:
        classes = {}
        for priority in PriorityClass:
            band = pool["classes"].get(priority.label)
            age_s = oldest.get((pool["id"], priority))
            if band is not None or age_s is not None:
                foreseen = None if band is None else BandOut(**band)
                classes[priority.label] = ClassForecastOut(forecast=foreseen, oldest_waiting_s=_rounded(age_s))
        status = SUFFICIENT if pool["enough"] else INSUFFICIENT
        found.append(PoolForecastOut(pool=pool["name"], status=status, classes=classes))
    return found


def _rounded(seconds: float | None) -> float | None:
    return None if seconds is None else round(seconds, 3)


def _part(part: float | None) -> float | None:
    return None if part is None else round(part, 4)
