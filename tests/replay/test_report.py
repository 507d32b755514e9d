"""The command and its report: text, JSON and one HTML file that stands alone and escapes what it is given."""

from __future__ import annotations

import io
import json
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command
from django.core.management.base import CommandError

from scheduler.replay.comparing import compare
from scheduler.replay.page import as_html
from scheduler.replay.plots import nice_marks, plots
from scheduler.replay.wording import dollars, percent, seconds
from tests.replay.traffic import bursts, rows_of, setup, write


def run(*arguments: object) -> str:
    out = io.StringIO()
    call_command("replay_trace", *map(str, arguments), stdout=out)
    return out.getvalue()


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return write(tmp_path / "t.csv", *rows_of(bursts()))


def test_the_text_compares_settings(file: Path) -> None:
    said = run(file, "--set", "rpm=30", "--setting", "twice:rpm=60", "--forecasts", "0")
    for words in (
        "200 requests over",
        "== base, in virtual time",
        "== twice",
        "held up by",
        "not priced",
        "Recommended:",
    ):
        assert words in said


def test_json_is_one_object_with_every_figure(file: Path) -> None:
    said = json.loads(run(file, "--set", "rpm=30", "--price", "input=1,output=2", "--json", "--forecasts", "3"))
    (base,) = said["settings"]
    assert said["requests"] == base["requests"] == 200
    assert base["total"]["p50"] > 0.0
    assert base["cost"]["total"] > 0
    assert base["calibration"]["n"] > 0
    assert {"classes", "tenants", "limits", "pools", "sizes", "objectives", "series"} <= base.keys()


def test_files_are_compared(file: Path, tmp_path: Path) -> None:
    for name, rate in (("one", 30), ("two", 60)):
        (tmp_path / f"{name}.toml").write_text(f"[limits.r]\nrequests_per_minute = {rate}\n", encoding="utf-8")
    said = json.loads(
        run(file, "--compare", tmp_path / "one.toml", tmp_path / "two.toml", "--json", "--forecasts=0", "--until-s=60")
    )
    assert [s["name"] for s in said["settings"]] == ["one", "two"]
    assert said["notes"]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--set", "slots=0"], "slots"),
        (["--setting", "base:rpm=1"], "Two settings are named 'base'"),
        ([f"--setting=v{n}:rpm=1" for n in range(12)], "at most 12"),
        (["--live", "--setting", "x:rpm=1"], "takes one setting"),
        (["--live", "--speed", "0"], "must be above 0"),
        (["--live", "--provider", "http://127.0.0.1:1"], "go together"),
        (["--html", "/nowhere/r.html"], "cannot be written"),
    ],
)
def test_what_cannot_be_done_is_a_sentence(file: Path, arguments: list[str], said: str) -> None:
    with pytest.raises(CommandError, match=said):
        run(file, "--forecasts=0", *arguments)


def test_a_bad_row_ends_it_before_a_report_is_written(tmp_path: Path) -> None:
    with pytest.raises(CommandError, match="line 3: '-1' is no number"):
        run(write(tmp_path / "t.csv", "1,1,1", "2,-1,1"), "--html", tmp_path / "r.html")
    assert not (tmp_path / "r.html").exists()


class _Outline(HTMLParser):
    """What a page refers to, and its tables and pictures."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str, str | None]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += [(tag, *attr) for attr in attrs]


def outline(html: str) -> _Outline:
    found = _Outline()
    found.feed(html)
    return found


def test_the_page_stands_alone_and_its_plots_can_be_read_without_seeing(file: Path, tmp_path: Path) -> None:
    run(file, "--set", "rpm=30", "--setting", "twice:rpm=60", "--html", tmp_path / "r.html", "--forecasts=0")
    html = (tmp_path / "r.html").read_text(encoding="utf-8")
    page = outline(html)
    assert not {"script", "link", "img", "iframe"} & set(page.tags)
    assert not [a for a in page.attributes if a[1] in {"src", "href", "style"}]
    assert "url(" not in html
    assert "prefers-color-scheme:dark" in html
    pictures = [a for a in page.attributes if a == ("svg", "role", "img")]
    assert len(pictures) == page.tags.count("figure") == page.tags.count("details") == page.tags.count("title") - 1
    assert html.count("<caption>") == page.tags.count("table")
    named = {a[2] for a in page.attributes if a[1] == "aria-labelledby"}
    assert named <= {a[2] for a in page.attributes if a[1] == "id"}


def test_names_from_files_are_escaped() -> None:
    trace = bursts(5)
    named: Any = type(trace)("<script>.csv", trace.began_at, trace.requests, ("<b>note</b>",))
    html = as_html(named, compare(named, [setup()]))
    assert "<script>" not in html
    assert "<b>" not in html


def test_lines_of_plots_stay_in_their_field() -> None:
    for plot in plots(compare(bursts(), [setup("rpm=30"), setup("rpm=60", name="twice")])):
        for line in plot.lines:
            points = [tuple(map(float, pair.split(","))) for pair in line.points.split()]
            assert all(plot.left - 0.1 <= x <= plot.right + 0.1 for x, _ in points), plot.id
            assert all(plot.top - 0.1 <= y <= plot.bottom + 0.1 for _, y in points), plot.id
        assert 1 < len(plot.rows) <= 17


@pytest.mark.parametrize(("most", "marks"), [(0.0, 2), (1.0, 5), (7.0, 5), (99.0, 5), (26.0, 4)])
def test_marks_are_round_and_reach_the_top(most: float, marks: int) -> None:
    found = nice_marks(most)
    assert found[0] == 0.0
    assert found[-1] >= most
    assert len(found) <= marks + 1


def test_figures_in_words() -> None:
    assert [seconds(v) for v in (None, 0.0, 0.35, 2.345, 42.0, 59.99, 245.0, 3725.0)] == [
        "–", "0 ms", "350 ms", "2.35 s", "42.0 s", "1 min 00 s", "4 min 05 s", "1 h 02 min",
    ]  # fmt: skip
    assert (percent(0.5), percent(None)) == ("50.0 %", "–")
    assert (dollars(None), dollars(1_500_000_000)) == ("not priced", "$1.5000")
