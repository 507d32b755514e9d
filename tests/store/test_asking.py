"""Questions that are asked together are answered as they are alone, in one statement."""

from __future__ import annotations

import pytest

from scheduler.store import queries
from scheduler.store.asking import Question, Together, asked
from scheduler.store.queries import Row
from tests.support.statements import statements

pytestmark = pytest.mark.django_db

KINDS = """SELECT 3.0::float8, 3.0::float8, 3::smallint, 2::bigint ^ 62, 1.50::numeric, 'a%%b'::varchar, NULL::text,
       ARRAY['x', NULL], '{}'::bigint[], true, '{"a": 1}'::json::text, now(), 'NaN'::float8 = 'NaN' -- the last"""
"""A row of every type that statements give, two of its columns of one name."""


@asked
def rows_of_every_type() -> Question[list[Row]]:
    """Gives the row."""
    return Question(KINDS, {}, lambda rows: rows)


@asked
def count_down(first: int) -> Question[list[int]]:
    """Numbers, the greatest first."""
    statement = "SELECT n FROM generate_series(1, %(first)s::int) n ORDER BY n DESC; "
    return Question(statement, {"first": first}, lambda rows: [row[0] for row in rows])


def test_answers_are_those_of_each_question_alone() -> None:
    asking = Together()
    answers = asking.add(rows_of_every_type.question()), asking.add(rows_of_every_type.question())
    alone = rows_of_every_type()
    assert [answer.value for answer in answers] == [alone, alone]
    assert [type(value) for value in answers[0].value[0]] == [type(value) for value in alone[0]]


def test_questions_of_one_parameter_name_keep_their_own_values_and_order() -> None:
    asking = Together()
    three, none, five = (asking.add(count_down.question(first)) for first in (3, 0, 5))
    with statements() as sent:
        found = five.value, none.value, three.value
    assert found == ([5, 4, 3, 2, 1], [], [3, 2, 1])
    assert len(sent) == 1
    assert count_down(2) == [2, 1]


def test_what_is_sent_cannot_be_added_to() -> None:
    asking = Together()
    assert asking.add(count_down.question(1)).value == [1]
    with pytest.raises(ValueError, match="begin anew"):
        asking.add(count_down.question(1))


def test_a_part_has_no_end_and_names_of_its_own() -> None:
    assert queries.renamed("SELECT %(a)s, '%%', %s; ", "q7_") == "SELECT %(q7_a)s, '%%', %s"
