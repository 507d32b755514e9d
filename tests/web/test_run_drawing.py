"""Steps over time: lanes that are as many as run at once, and a drawing that stays small however long a run is."""

from __future__ import annotations

from scheduler.policy.states import TaskState
from scheduler.policy.types import Outcome, TaskId
from scheduler.reads.run_pages import AttemptSpan, Span, StepRow
from scheduler.web.run_drawing import LANES_MAX, WIDE, Scale, draw, parts_of


def span(
    task: int,
    began: float | None,
    ended: float | None,
    *,
    state: TaskState = TaskState.SUCCEEDED,
    writes: bool = False,
) -> Span:
    return Span(TaskId(task), state, writes, began, ended)


def test_a_lane_is_used_again_once_its_step_has_ended() -> None:
    drawing = draw([span(1, 0, 10), span(2, 5, 20), span(3, 10, 30), span(4, None, None)], [], now=40)
    assert drawing is not None
    assert (drawing.lanes, drawing.drawn, drawing.undrawn, drawing.crowded) == (2, 3, 1, False)
    assert drawing.paths == [("done", "M0 0h333v9h-333zM167 14h500v9h-500zM333 0h667v9h-667z")]


def test_nothing_is_drawn_before_a_step_has_begun() -> None:
    assert draw([span(1, None, None, state=TaskState.READY)], [], now=1) is None


def test_each_kind_has_a_shape_of_its_own() -> None:
    drawing = draw(
        [
            span(1, 0, 10),
            span(2, 0, None, state=TaskState.RUNNING, writes=True),
            span(3, 0, 4, state=TaskState.CANCELLED),
            span(4, 0, 4, state=TaskState.DEAD_LETTERED),
        ],
        [(TaskId(2), TaskId(1)), (TaskId(2), TaskId(99))],
        now=20,
    )
    assert drawing is not None
    assert [tone for tone, _ in drawing.paths] == ["done", "fail", "off", "run"]
    assert "v3h" in dict(drawing.paths)["off"], "thinner"
    assert drawing.writes == "M0 24h1000v2h-1000z"
    assert drawing.links == "M500 4L0 18"
    assert (drawing.begin, drawing.end) == (0, 20)


def test_a_thousand_steps_at_once_stay_within_the_lanes_and_the_field() -> None:
    spans = [span(n, n * 0.01, 100 + n) for n in range(1000)]
    links = [(TaskId(n), TaskId(n - 1)) for n in range(1, 1000)]
    drawing = draw(spans, links, now=2000)
    assert drawing is not None
    assert (drawing.lanes, drawing.crowded) == (LANES_MAX, True)
    assert drawing.links == "", "more lines than anybody could follow"
    assert sum(len(path) for _, path in drawing.paths) < 40_000
    for bar in drawing.paths[0][1].removesuffix("z").split("z"):
        x, width = bar.removeprefix("M").split(" ")[0], bar.split("h")[1].split("v")[0]
        assert 0 <= int(x) <= int(x) + int(width) <= WIDE + 1


def test_a_step_shows_its_wait_its_attempts_and_what_runs() -> None:
    step = StepRow(TaskId(1), "read", None, "llm", TaskState.RUNNING, False, 2, 0.0, 10.0, 60.0, None)  # noqa: FBT003 - a row
    failed = AttemptSpan(TaskId(1), 20.0, 30.0, Outcome.FAILED)
    parts = parts_of(step, [failed], Scale(0.0, 100.0), now=100.0)
    assert [(part.name, part.x, part.width) for part in parts] == [
        ("wait", 100, 100),
        ("fail", 200, 100),
        ("run", 600, 400),
    ]
