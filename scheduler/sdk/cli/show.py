"""What a terminal shows of tasks, pools and limits. Answers in, rich's renderables out; nothing is asked here."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from rich.console import Group, RenderableType
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from scheduler.sdk.remote.answers import Operation, Preview, TaskInfo, Why

CLASSES: Final = ("critical", "high", "normal", "low")
TONES: Final = {
    "succeeded": "green",
    "running": "cyan",
    "ready": "blue",
    "retrying": "yellow",
    "failed": "red",
    "dead_lettered": "red",
    "running slots": "cyan",
    "paused": "yellow",
}
BAR_CELLS: Final = 12
SAMPLE_TASKS: Final = 5
"""Of a preview, how many are named."""
MINUTE_S: Final = 60.0
HOUR_S: Final = 3_600.0


def duration(seconds: float | None) -> str:
    """Seconds as people say them."""
    if seconds is None:
        return "–"
    if seconds < 10.0:  # noqa: PLR2004 - where a decimal stops to matter
        return f"{max(0.0, seconds):.1f} s"
    if seconds < MINUTE_S:
        return f"{seconds:.0f} s"
    if seconds < HOUR_S:
        return f"{int(seconds // MINUTE_S)} min {int(seconds % MINUTE_S)} s"
    return f"{int(seconds // HOUR_S)} h {int(seconds % HOUR_S // MINUTE_S)} min"


def bar(part: float) -> Text:
    """How full something is."""
    full = round(min(1.0, max(0.0, part)) * BAR_CELLS)
    tone = "red" if part >= 0.95 else "yellow" if part >= 0.75 else "green"  # noqa: PLR2004 - the console's own steps
    return Text("█" * full, style=tone) + Text("░" * (BAR_CELLS - full), style="dim")


def state(word: str) -> Text:
    """A state in its colour."""
    return Text(word, style=TONES.get(word, ""))


def task(found: TaskInfo) -> RenderableType:
    """A task with its attempts."""
    head = Text.assemble(("Task ", "bold"), (str(found.id), "bold"), " is ", state(found.state))
    facts = Table.grid(padding=(0, 2))
    rows = {
        "pool": found.pool,
        "kind": found.kind,
        "priority": found.priority,
        "tenant": found.tenant,
        "key": found.key or "–",
        "attempts": f"{found.attempts} of {found.max_attempts}",
        "created": found.created_at or "–",
        "finished": found.finished_at or "–",
    }
    for name, value in rows.items():
        facts.add_row(Text(name, style="dim"), escape(str(value)))
    parts: list[RenderableType] = [head, facts]
    if found.history:
        parts.append(attempts(found.history))
    return Group(*parts)


def tasks(found: Sequence[TaskInfo]) -> RenderableType:
    """Tasks, one in a line."""
    if not found:
        return "No task matches."
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="dim")
    table.add_column("task", justify="right")
    for column in ("state", "pool", "class", "kind", "attempts", "submitted", "key"):
        table.add_column(column)
    for each in found:
        tried = f"{each.attempts} of {each.max_attempts}"
        cells = (each.pool, each.priority, each.kind, tried, (each.created_at or "")[:19], each.key or "–")
        table.add_row(str(each.id), state(each.state), *(Text(cell) for cell in cells))
    return table


def preview(found: Preview) -> RenderableType:
    """What an operation would be done to."""
    if not found.count:
        return Text(f"Nothing to {found.kind} matches {found.filter}.")
    some = ", ".join(map(str, found.sample[:SAMPLE_TASKS]))
    more = ", …" if found.count > min(len(found.sample), SAMPLE_TASKS) else ""
    return Group(
        Text.assemble((f"{found.count:,}", "bold"), f" to {found.kind}: {found.filter}"), Text(f"  {some}{more}")
    )


def operation(found: Operation, done: str) -> RenderableType:
    """How far an operation is; `done` is the word for a task that it was done to."""
    line = f"Operation {found.id} is {found.state}: {found.applied:,} of {found.total:,} {done}"
    skips = ", ".join(f"{count:,} {why.replace('_', ' ')}" for why, count in found.skips.items())
    return Text(line + (f", {found.skipped:,} skipped ({skips})." if found.skipped else "."))


def attempts(history: Sequence[Mapping[str, Any]]) -> Table:
    """Attempts, newest first."""
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="dim")
    for column in ("attempt", "outcome", "started", "message"):
        table.add_column(column)
    for each in history:
        outcome = each.get("outcome") or "running"
        table.add_row(
            str(each.get("number", "")), state(outcome), each.get("started_at", ""), escape(each.get("message") or "")
        )
    return table


def why(found: Why) -> RenderableType:
    """The reasons in words, the place in the order, and when it should start."""
    lines = [Text.assemble(("Task ", "bold"), (str(found.id), "bold"), " is ", state(found.state))]
    lines += [Text(f"  ▸ {reason.get('text', '')}") for reason in found.reasons]
    if found.position is not None:
        ahead = "it is next" if found.position <= 0 else f"about {found.position:,} start before it"
        lines.append(Text(f"  Order     {ahead}"))
    if found.forecast:
        p50, p90 = found.forecast.get("p50_s"), found.forecast.get("p90_s")
        late = "" if p90 is None else f", nine times in ten within {duration(p90)}"
        lines.append(Text("  Forecast  " + (f"starts in {duration(p50)}{late}" if p50 is not None else "not soon")))
    return Group(*lines)


def limits(found: Sequence[Mapping[str, Any]]) -> Table:
    """Shared limits and what is left of them."""
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="dim")
    for column in ("limit", "declared", "left"):
        table.add_column(column)
    table.add_column("waiting", justify="right")
    for each in found:
        bucket = each.get("kind") == "token_bucket"
        declared = (
            f"{each.get('rate') or 0:g}/s, burst {each.get('burst') or 0:g}"
            if bucket
            else f"{each.get('permits')} at once"
        )
        left, capacity = float(each.get("available") or 0.0), float(each.get("capacity") or 0.0)
        table.add_row(
            escape(str(each.get("name"))),
            declared,
            Text.assemble(bar(1.0 - left / capacity if capacity else 1.0), f" {left:g} of {capacity:g}"),
            str(each.get("waiting", 0)),
        )
    return table


def top(body: Mapping[str, Any]) -> RenderableType:
    """The live view: totals, pools and limits, from the picture that the console shows."""
    totals = body.get("totals", {})
    later = totals.get("scheduled", 0)
    head = Text.assemble(
        ("cronoq", "bold"),
        f"  {totals.get('running', 0):,} running  {totals.get('waiting', 0):,} waiting  ",
        f"{later:,} later  " if later else "",
        f"{totals.get('started_per_s', 0):.1f} started/s  ",
        f"{totals.get('failed_per_min', 0):g} failed/min  oldest {duration(totals.get('oldest_waiting_s'))}",
    )
    return Group(head, Text(), pools(body.get("pools", ())), Text(), limits(body.get("resources", ())))


def pools(found: Sequence[Mapping[str, Any]]) -> Table:
    """Pools: how busy, who waits, and what keeps them from starting more."""
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="dim")
    table.add_column("pool")
    table.add_column("slots", no_wrap=True)
    for column in (*CLASSES, "started/s"):
        table.add_column(column, justify="right")
    table.add_column("oldest", justify="right", no_wrap=True)
    table.add_column("bound by")
    for each in found:
        waiting = each.get("waiting", {})
        slots, running = int(each.get("slots") or 0), int(each.get("running") or 0)
        bound = each.get("bound_by") or {}
        table.add_row(
            Text(str(each.get("name"))) + (Text(" ") + state("paused") if each.get("state") == "paused" else Text()),
            Text.assemble(bar(running / slots if slots else 0.0), f" {running}/{slots}"),
            *(f"{waiting.get(label, 0):,}" for label in CLASSES),
            f"{each.get('started_per_s', 0):.1f}",
            duration(each.get("oldest_waiting_s")),
            escape(str(bound.get("text") or "–")),
        )
    return table
