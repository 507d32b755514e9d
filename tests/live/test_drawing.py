"""Geometry: everything stays on its field, and history stands still between its slow steps."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from scheduler.live import drawing
from tests.live import sample

LEVELS = st.lists(st.floats(0, 1e9), max_size=60)


@given(LEVELS)
def test_sparklines_stay_on_their_field(samples: list[float]) -> None:
    spark = drawing.spark(samples, "Waiting")
    if spark.line is None:
        assert len(samples) < 2
        return
    points = [tuple(map(int, point.split(","))) for point in spark.line.points.split()]
    assert len(points) <= drawing.SPARK_POINTS
    assert all(0 <= x <= 120 and 0 <= y <= 28 for x, y in points)


@given(st.lists(st.tuples(st.text(max_size=3), st.floats(-1, 1e12)), max_size=6), st.floats(-1, 1e12))
def test_bars_never_leave_their_track(parts: list[tuple[str, float]], whole: float) -> None:
    x = 0
    for segment in drawing.segments(parts, whole):
        assert segment.x == x
        assert segment.width >= 0
        x += segment.width
    assert x <= drawing.BAR_WIDTH


def test_a_tiny_part_stays_visible() -> None:
    assert drawing.segments([("critical", 1), ("low", 100_000)], 100_001)[0].width == 8


@given(st.floats(0, 1e12))
def test_the_top_of_a_chart_is_above_the_data_and_not_far(highest: float) -> None:
    top = drawing.nice_top(highest)
    assert top >= highest
    assert highest < 1e-9 or top <= highest * 2.01


def test_history_moves_once_per_five_snapshots() -> None:
    shown = [drawing.settled(sample.body(seq)["history"]["waiting"], seq) for seq in range(1000, 1010)]
    assert len(set(shown[:5])) == 1
    assert len(set(shown[5:])) == 1
    assert shown[0] != shown[5]
    assert len(shown[0]) == 55


def test_a_chart_has_the_same_numbers_as_a_table() -> None:
    chart = drawing.chart({"started": [2.0] * 30, "failed": [0.0] * 10 + [1.0] * 20}, 1.0)
    assert chart is not None
    assert chart.top == 2.0
    assert chart.rows == [
        ("0 to 10 s ago", [2.0, 1.0]),
        ("10 to 20 s ago", [2.0, 1.0]),
        ("20 to 30 s ago", [2.0, 0.0]),
    ]


def test_no_history_is_no_chart() -> None:
    assert drawing.chart({"started": [1.0], "failed": []}, 1.0) is None
