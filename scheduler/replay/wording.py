"""How figures of a replay are written, in the terminal and in the report alike."""

from __future__ import annotations

from decimal import Decimal
from typing import Final

from scheduler.policy.calibration import Report
from scheduler.replay.summary import Objective, Summary, Waits
from scheduler.replay.uses import Use

MINUTE_S: Final = 60.0
HOUR_S: Final = 3600.0


def seconds(value: float | None) -> str:
    """`350 ms`, `2.35 s`, `4 min 05 s`, `1 h 02 min`; a dash for what there is none of."""
    if value is None:
        return "–"
    if value < 0.9995:  # noqa: PLR2004 - rounds to a second
        return f"{value * 1000:.0f} ms"
    if value < MINUTE_S - 0.05:
        return f"{value:.2f} s" if value < 9.995 else f"{value:.1f} s"  # noqa: PLR2004 - three digits
    whole = round(value)
    if whole < HOUR_S:
        return f"{whole // 60} min {whole % 60:02d} s"
    return f"{whole // 3600} h {whole % 3600 // 60:02d} min"


def percent(part: float | None) -> str:
    """A part as a percentage."""
    return "–" if part is None else f"{100.0 * part:.1f} %"


def dollars(nanos: int | None) -> str:
    """Nano-dollars as dollars; what has no price is not free."""
    return "not priced" if nanos is None else f"${Decimal(nanos) / 10**9:,.4f}"


WAIT_HEADINGS: Final = ("", "requests", "p50", "p90", "p95", "p99", "longest")


def wait_cells(waits: Waits) -> tuple[str, ...]:
    """A row under `WAIT_HEADINGS`."""
    times = (waits.p50, waits.p90, waits.p95, waits.p99, waits.most)
    return (waits.who, f"{waits.requests:,}", *map(seconds, times))


USE_HEADINGS: Final = ("", "admits", "mean use", "busiest", "holds work up")


def use_cells(use: Use) -> tuple[str, ...]:
    """A row under `USE_HEADINGS`."""
    return (use.name, use.declared, percent(use.mean), percent(use.busiest), f"{percent(use.holds_up)} of the time")


def objective_words(objective: Objective) -> str:
    """One class's objective and how it was met."""
    verb = "started" if objective.what == "started" else "were done"
    return f"{objective.who}: {percent(objective.met)} {verb} within {seconds(objective.within_s)}"


def calibration_words(report: Report | None) -> str:
    """How good forecasts were."""
    if report is None:
        return "not asked for"
    if report.n == 0:
        return "no forecast was made: too little was known"
    error = "none waited over 1 s"
    if report.median_error is not None:
        error = f"median error {percent(report.median_error)} of {report.n_telling:,} waits over 1 s"
    return f"{percent(report.inside_p90)} of {report.n:,} waits were inside p90; {error}"


def cost_words(summary: Summary) -> str:
    """What the tokens cost."""
    if summary.cost is None:
        return "not priced (give --price input=…,output=… in dollars for a million tokens)"
    return dollars(summary.cost.total)
