"""The report as one HTML file: own style, plots as SVG, nothing fetched, no script. The template does the escaping."""

from __future__ import annotations

from collections.abc import Sequence

from django.template.loader import render_to_string

from scheduler.replay.plots import plots
from scheduler.replay.summary import Summary
from scheduler.replay.text import comparison_cells
from scheduler.replay.trace import Trace
from scheduler.replay.wording import (
    USE_HEADINGS,
    WAIT_HEADINGS,
    calibration_words,
    cost_words,
    dollars,
    objective_words,
    percent,
    seconds,
    use_cells,
    wait_cells,
)

COMPARED = ("settings", "p50", "p95", "p99", "all done after", "objectives met", "cost", "held up by")


def as_html(trace: Trace, summaries: Sequence[Summary]) -> str:
    """The whole file."""
    facts = [("requests", f"{len(trace.requests):,}"), ("over", seconds(trace.span_s))]
    context = {
        "trace": trace,
        "facts": facts,
        "compared": _table("Settings side by side", COMPARED, [comparison_cells(s) for s in summaries]),
        "plots": plots(summaries),
        "settings": [_section(summary) for summary in summaries],
    }
    return render_to_string("replay/report.html", context)


def _section(summary: Summary) -> dict[str, object]:
    tables = [
        _table("Waits by class", WAIT_HEADINGS, [wait_cells(w) for w in (*summary.classes, summary.total)]),
        _table("Waits by tenant", WAIT_HEADINGS, [wait_cells(w) for w in summary.tenants]),
    ]
    if len(summary.classes) > 1 and len(summary.tenants) > 1:
        tables.append(_table("Waits by class and tenant", WAIT_HEADINGS, [wait_cells(w) for w in summary.seats]))
    uses = [use_cells(u) for u in (*summary.limits, *summary.pools, *summary.quotas)]
    tables.append(_table("Use of limits, pools and quotas", USE_HEADINGS, uses))
    if summary.declared:
        tables.append(_table("Tenants as set", ("", "weight and quotas"), summary.declared))
    if summary.cost is not None:
        rows = [(tenant, dollars(nanos)) for tenant, nanos in summary.cost.by_tenant]
        tables.append(_table("Cost by tenant", ("", "cost"), [*rows, ("all", dollars(summary.cost.total))]))
    left_out = summary.tenants_left_out
    return {
        "summary": summary,
        "facts": [
            ("half waited at most", seconds(summary.total.p50)),
            ("95 % waited at most", seconds(summary.total.p95)),
            ("all done after", seconds(summary.took_s)),
            ("refused", f"{summary.refused:,}"),
            ("failed or unfinished", f"{summary.failed + summary.unfinished:,}"),
            ("cost", "not priced" if summary.cost is None else dollars(summary.cost.total)),
        ],
        "tables": tables,
        "left_out": f"and {left_out:,} more tenants" if left_out else "",
        "objectives": [(objective_words(o), percent(o.met)) for o in summary.objectives],
        "forecasts": calibration_words(summary.calibration),
        "cost": cost_words(summary),
    }


def _table(title: str, headings: Sequence[str], rows: Sequence[Sequence[str]]) -> dict[str, object]:
    return {"title": title, "headings": headings, "rows": rows}
