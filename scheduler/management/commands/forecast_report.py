"""Says how good forecasts have been: predictions that were sampled, against what then happened."""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand, CommandParser

from scheduler.policy.calibration import Report
from scheduler.reads.forecast import calibration


class Command(BaseCommand):
    """`manage.py forecast_report --hours 24`."""

    help = "Compare sampled forecasts with what then happened: inside p90 (wanted: 85 to 97 %), median error (30 %)."

    def add_arguments(self, parser: CommandParser) -> None:
        """Take the window."""
        parser.add_argument("--hours", type=float, default=1.0, help="how far to look back")

    def handle(self, *args: Any, hours: float, **options: Any) -> None:
        """Print a line for each pool and class, and one for all."""
        record = calibration(window_s=hours * 3_600.0)
        self.stdout.write(f"{'pool, class':<32}{'n':>7}{'inside p90':>12}{'n > 1 s':>9}{'inside p90':>12}{'error':>8}")
        for (pool, priority), report in record.by_seat.items():
            self.stdout.write(_line(f"{pool}, {priority.label}", report))
        self.stdout.write(_line("all", record.overall))


def _line(name: str, report: Report) -> str:
    return (
        f"{name:<32}{report.n:>7}{_percent(report.inside_p90):>12}{report.n_telling:>9}"
        f"{_percent(report.inside_p90_telling):>12}{_percent(report.median_error):>8}"
    )


def _percent(part: float | None) -> str:
    return "-" if part is None else f"{100 * part:.1f} %"
