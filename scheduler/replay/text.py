"""The report for a terminal: aligned tables, no colour, nothing wider than needed."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from scheduler.replay.summary import Summary
from scheduler.replay.trace import Trace
from scheduler.replay.wording import (
    USE_HEADINGS,
    WAIT_HEADINGS,
    calibration_words,
    cost_words,
    objective_words,
    percent,
    seconds,
    use_cells,
    wait_cells,
)


def as_text(trace: Trace, summaries: Sequence[Summary]) -> str:
    """The whole report."""
    lines = [f"{trace.name}: {len(trace.requests):,} requests over {seconds(trace.span_s)}", *trace.notes]
    if len(summaries) > 1:
        lines += ["", *comparison(summaries)]
    for summary in summaries:
        lines += ["", *_one(summary)]
    return "\n".join(lines) + "\n"


def comparison(summaries: Sequence[Summary]) -> list[str]:
    """Settings side by side."""
    headings = ("settings", "p50", "p95", "p99", "all done after", "objectives met", "cost", "held up by")
    return _table([headings, *(comparison_cells(s) for s in summaries)])


def comparison_cells(s: Summary) -> tuple[str, ...]:
    """One row of the comparison."""
    met = ", ".join(f"{o.who} {percent(o.met)}" for o in s.objectives) or "none set"
    cost = "not priced" if s.cost is None else cost_words(s)
    return (s.name, *map(seconds, (s.total.p50, s.total.p95, s.total.p99, s.took_s)), met, cost, held_up_by(s))


def held_up_by(summary: Summary) -> str:
    """What held work up longest."""
    most = max((*summary.limits, *summary.pools, *summary.quotas), key=lambda use: use.holds_up, default=None)
    return "nothing" if most is None or most.holds_up == 0.0 else f"{most.name} {percent(most.holds_up)}"


def _one(summary: Summary) -> list[str]:
    lines = [f"== {summary.name}, {summary.how}: all done after {seconds(summary.took_s)} =="]
    counts = (("refused", summary.refused), ("unfinished", summary.unfinished), ("failed", summary.failed))
    told = [f"{number:,} {what}" for what, number in counts if number]
    lines += [", ".join(told)] if told else []
    lines += [f"{slug}: {words}" for slug, words in summary.declared]
    lines += summary.notes
    lines += ["", "Waits", *_table([WAIT_HEADINGS, *(wait_cells(w) for w in (*summary.classes, summary.total))])]
    lines += ["", *_table([("tenant", *WAIT_HEADINGS[1:]), *(wait_cells(w) for w in summary.tenants)])]
    if summary.tenants_left_out:
        lines.append(f"and {summary.tenants_left_out:,} more tenants")
    if len(summary.classes) > 1 and len(summary.tenants) > 1:
        lines += ["", *_table([WAIT_HEADINGS, *(wait_cells(w) for w in summary.seats)])]
    lines += ["", "Use", *_table([USE_HEADINGS, *map(use_cells, (*summary.limits, *summary.pools, *summary.quotas))])]
    lines += ["", "Objectives", *([f"  {objective_words(o)}" for o in summary.objectives] or ["  none set"])]
    lines += ["", f"Cost: {cost_words(summary)}", f"Forecasts: {calibration_words(summary.calibration)}"]
    for size in summary.sizes:
        lines += ["", f"Size of the pool {size.pool}", *(f"  {words}" for words in size.words)]
    return lines


def _table(rows: Iterable[Sequence[str]]) -> list[str]:
    """Columns side by side, the first to the left and the others to the right."""
    rows = list(rows)
    widths = [max(len(row[n]) for row in rows) for n in range(len(rows[0]))]
    return [
        "  " + "  ".join(c.ljust(w) if n == 0 else c.rjust(w) for n, (c, w) in enumerate(zip(row, widths, strict=True)))
        for row in rows
    ]
