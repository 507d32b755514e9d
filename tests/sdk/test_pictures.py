"""The pictures of the command in README.md are what it shows today."""

from __future__ import annotations

from io import StringIO
from typing import Any

import pytest
from rich.console import Console, RenderableType

from scheduler.sdk.cli import show
from scheduler.sdk.remote.answers import Operation, Preview, TaskInfo, Why
from tests.support.processes import ROOT

COLUMNS = 120
SNAPSHOT: dict[str, Any] = {
    "totals": {
        "running": 19, "waiting": 194, "scheduled": 0, "started_per_s": 6.91, "failed_per_min": 0,
        "oldest_waiting_s": 4.8,
    },
    "pools": [
        {
            "name": "llm", "slots": 32, "running": 19, "waiting": {"high": 15, "normal": 1, "low": 178},
            "started_per_s": 6.91, "oldest_waiting_s": 4.8,
            "bound_by": {"text": "openai-concurrency has 0 of the 1 that the next task needs."},
        },
        {"name": "crunch", "slots": 64, "running": 0, "waiting": {}, "started_per_s": 0.0, "state": "paused"},
    ],
    "resources": [
        {"name": "openai", "kind": "token_bucket", "rate": 50.0, "burst": 100.0, "available": 86.08, "capacity": 98,
         "waiting": 194},
        {"name": "openai-concurrency", "kind": "semaphore", "permits": 20, "available": 0, "capacity": 20,
         "waiting": 194},
    ],
}  # fmt: skip
WHY: dict[str, Any] = {
    "id": 1042,
    "state": "ready",
    "reasons": [{"text": "openai has 0.3 of the 1 it needs; the next token comes in 0.01 s."}],
    "position": 17,
    "forecast": {"p50_s": 1.4, "p90_s": 2.6},
}
PREVIEW = Preview(
    kind="replay",
    filter="pool:llm state:dead reason:timeout",
    count=42,
    sample=(1031, 1028, 1027, 1019, 1004, 1003),
    as_of="2026-01-01T00:00:00Z",
)


def seen(picture: RenderableType, *, columns: int = COLUMNS) -> str:
    """What a terminal of so many columns shows."""
    out = StringIO()
    Console(file=out, width=columns, color_system=None).print(picture)
    return "\n".join(line.rstrip() for line in out.getvalue().splitlines())


@pytest.mark.parametrize(
    ("words", "picture"),
    [
        ("why 1042", show.why(Why.of(WHY))),
        ("top", show.top(SNAPSHOT)),
        ("replay --filter 'pool:llm state:dead reason:timeout' --reason \"provider is back\"", show.preview(PREVIEW)),
    ],
)
def test_the_readme_shows_what_the_command_shows(words: str, picture: RenderableType) -> None:
    assert f"$ cronoq {words}\n{seen(picture)}\n" in (ROOT / "README.md").read_text()


def test_figures_are_not_broken_in_a_narrow_terminal() -> None:
    assert "░ 19/32" in seen(show.top(SNAPSHOT), columns=80)


def test_what_users_named_is_never_markup() -> None:
    task = TaskInfo(id=7, state="ready", pool="[red]", kind="[/]", key="[bold]", priority="low")
    assert "[red]" in seen(show.tasks([task]))
    assert "[/]" in seen(show.tasks([task]))
    assert "[bold]" in seen(show.task(task))


def test_an_operation_says_what_was_skipped_and_why() -> None:
    found = Operation(id=3, kind="cancel", state="done", total=9, applied=7, skipped=2, skips={"ended": 2})
    assert seen(show.operation(found, "cancelled")) == ("Operation 3 is done: 7 of 9 cancelled, 2 skipped (2 ended).")
