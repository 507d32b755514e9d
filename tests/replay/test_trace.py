"""Reading a trace: what is taken, in which forms; a fault is named by its line, and nothing is half-imported."""

from __future__ import annotations

from pathlib import Path

import pytest

from scheduler.policy.types import PriorityClass
from scheduler.replay.faults import FAULTS_MAX, ReplayRefused
from scheduler.replay.moments import parse_moment
from scheduler.replay.trace import LINE_BYTES_MAX, Request, first_part, read_trace
from tests.replay.traffic import HEADER, write

ROW = "2023-11-16 18:17:03.9799600,4808,10"
NEXT = "2023-11-16 18:17:04.0319600,3180,8"


def refusal(path: Path, **options: int) -> str:
    with pytest.raises(ReplayRefused) as refused:
        read_trace(path, **options)
    return str(refused.value)


def test_a_trace_is_read_with_seven_decimals(tmp_path: Path) -> None:
    trace = read_trace(write(tmp_path / "t.csv", ROW, NEXT))
    assert [r.at_s for r in trace.requests] == pytest.approx([0.0, 0.052], abs=1e-6)
    assert trace.requests[0][1:3] == (4808, 10)
    assert trace.notes == ()


@pytest.mark.parametrize("end", ["\n", "\r\n"])
@pytest.mark.parametrize("mark", ["", "\ufeff"])
@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
def test_how_a_table_was_saved_does_not_matter(tmp_path: Path, end: str, mark: str, delimiter: str) -> None:
    lines = [line.replace(",", delimiter) for line in (HEADER, ROW, "", NEXT)]
    trace = read_trace(write(tmp_path / "t.csv", *lines[1:], header=mark + lines[0], end=end))
    assert len(trace.requests) == 2


def test_other_names_quotes_and_the_optional_columns(tmp_path: Path) -> None:
    header = "pool,time,Output_Tokens,input_tokens,tenant,class,unknown"
    rows = ['llm,1700000000.5,"8",20,acme,HIGH,x', "llm,1700000001.5,8,20,,,"]
    first, second = read_trace(write(tmp_path / "t.csv", *rows, header=header)).requests
    assert first == Request(0.0, 20, 8, "acme", PriorityClass.HIGH, "llm")
    assert second == Request(1.0, 20, 8, None, None, "llm")


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("2023-11-16T18:17:03Z", 1700158623.0),
        ("2023-11-16 18:17:03.5", 1700158623.5),
        ("2023/11/16 18:17", 1700158620.0),
        ("2023-11-16T19:17:03.123456789+01:00", 1700158623.123456789),
        ("2023-11-16T13:17:03-0500", 1700158623.0),
        ("0", 0.0),
        ("1700158623.25", 1700158623.25),
        ("1.7e9", 1.7e9),
        ("1700158623250", 1700158623.25),
        ("1700158623250000", 1700158623.25),
        ("1700158623250000000", 1700158623.25),
    ],
)
def test_moments(text: str, moment: float) -> None:
    assert parse_moment(text) == pytest.approx(moment, abs=1e-6)


@pytest.mark.parametrize(
    "text", ["", "nan", "inf", "-5", "11/16/2023 18:17", "2023-02-30 10:00:00", "18:17:03", "2023-11-16 18:17:03+25:00"]
)
def test_what_is_no_moment(text: str) -> None:
    with pytest.raises(ValueError, match=r"is no time|has a zone"):
        parse_moment(text)


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        ("soon,1,1", "'soon' is no time"),
        ("1,-4,1", "'-4' is no number of input tokens"),
        ("1,nan,1", "'nan' is no number of input tokens"),
        ("1,inf,1", "'inf' is no number of input tokens"),
        ("1,2.5,1", "'2.5' is no number of input tokens"),
        ("1,1,many", "'many' is no number of output tokens"),
        ("1,1,", "'' is no number of output tokens"),
        ("1,1", "has 2 fields where the header has at least 3"),
        ('1,1,"1', "has a quote that is not closed"),
    ],
)
def test_a_malformed_row_is_named_by_line_and_reason(tmp_path: Path, row: str, reason: str) -> None:
    said = refusal(write(tmp_path / "t.csv", ROW, "", row, NEXT))
    assert f"line 4: {reason}" in said
    assert said.count("line ") == 1


def test_a_row_with_a_bad_name_is_named(tmp_path: Path) -> None:
    header = "time,input_tokens,output_tokens,tenant,class,pool"
    said = refusal(write(tmp_path / "t.csv", "1,1,1,Acme Inc,,", "2,1,1,,urgent,", "3,1,1,,,a b", header=header))
    assert "line 2: 'Acme Inc' is no tenant" in said
    assert "line 3: 'urgent' is no class" in said
    assert "line 4: 'a b' is no name of a pool" in said


def test_faults_are_collected_up_to_a_bound(tmp_path: Path) -> None:
    said = refusal(write(tmp_path / "t.csv", *["x,1,1"] * 100))
    assert said.count("line ") == FAULTS_MAX
    assert f"looked no further after {FAULTS_MAX}" in said


def test_rows_out_of_order_are_sorted_with_a_note(tmp_path: Path) -> None:
    trace = read_trace(write(tmp_path / "t.csv", "30,1,1", "10,2,1", "20,3,1"))
    assert [(r.at_s, r.input_tokens) for r in trace.requests] == [(0.0, 2), (10.0, 3), (20.0, 1)]
    assert trace.notes == ("1 rows were earlier than the row before them; all were sorted by time.",)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "is empty"),
        (b"\n\n", "is empty"),
        (HEADER.encode() + b"\n", "has a header and no row"),
        (b"a,b,c\n1,2,3\n", "line 1: needs the columns"),
        (b"time,timestamp,input_tokens,output_tokens\n1,1,1,1\n", "two columns say the time"),
        (HEADER.encode() + b"\n1,1,1\n\xff\xfe,1,1\n", "line 3: is not UTF-8"),
        (HEADER.encode("utf-16"), "line 1: is not UTF-8"),
        (HEADER.encode() + b"\n" + b"1" * (LINE_BYTES_MAX + 1), "line 2: is longer than"),
        (HEADER.encode() + b"\n0,1,1\n1700000000,1,1\n", "spans 19,676 days"),
    ],
)
def test_files_that_are_no_trace(tmp_path: Path, content: bytes, said: str) -> None:
    path = tmp_path / "t.csv"
    path.write_bytes(content)
    assert said in refusal(path)


def test_a_file_has_a_bound_and_must_be_there(tmp_path: Path) -> None:
    assert "more than 2 rows" in refusal(write(tmp_path / "t.csv", "1,1,1", "2,1,1", "3,1,1"), rows_max=2)
    assert "cannot be read" in refusal(tmp_path / "none.csv")


def test_a_part_of_a_trace(tmp_path: Path) -> None:
    trace = read_trace(write(tmp_path / "t.csv", *[f"{n},1,{n}" for n in range(10, 20)]))
    part = first_part(trace, from_s=2.0, until_s=5.0)
    assert [(r.at_s, r.output_tokens) for r in part.requests] == [(0.0, 12), (1.0, 13), (2.0, 14)]
    with pytest.raises(ReplayRefused, match="has no request between"):
        first_part(trace, until_s=0.0)
