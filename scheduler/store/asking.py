"""Asks several independent questions in one statement: one way to the database and back, and answers of one moment.

A loader that is `asked` can be called, and is then a statement of its own; or its question is taken (`question`) and
given to `Together`, which sends it with others. Answers have the types that they have alone: the server sends the rows
of each question as records, in binary.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache, update_wrapper
from typing import Generic, LiteralString, ParamSpec, TypeVar, cast

from scheduler.store import queries
from scheduler.store.queries import Row

T = TypeVar("T")
P = ParamSpec("P")


@dataclass(frozen=True, slots=True)
class Question(Generic[T]):
    """A statement that reads, its parameters, and what makes an answer of its rows."""

    statement: LiteralString
    params: Mapping[str, object]
    read: Callable[[list[Row]], T]


class Asked(Generic[P, T]):
    """A loader: called, it asks at once; `question` is what it would ask."""

    def __init__(self, question: Callable[P, Question[T]]) -> None:
        self.question = question
        update_wrapper(self, question)

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> T:
        """Ask, and return the answer."""
        question = self.question(*args, **kwargs)
        return question.read(queries.fetch(question.statement, question.params))


def asked(question: Callable[P, Question[T]]) -> Asked[P, T]:
    """Make a loader of a function that says what to ask."""
    return Asked(question)


class Answer(Generic[T]):
    """What is answered to one question among others. The first answer that is looked at sends them all."""

    def __init__(self, together: Together, read: Callable[[list[Row]], T], place: int) -> None:
        self._together = together
        self._read = read
        self._place = place

    @property
    def value(self) -> T:
        """The answer."""
        return self._read(self._together.rows(self._place))


class Together:
    """Questions that go as one statement once an answer is looked at; nothing can be added then."""

    def __init__(self) -> None:
        self._questions: list[Question[object]] = []
        self._rows: list[list[Row]] | None = None

    def add(self, question: Question[T]) -> Answer[T]:
        """Ask this too. Raises ValueError when the questions have been sent."""
        if self._rows is not None:
            raise ValueError("these questions have been sent: begin anew")
        self._questions.append(cast("Question[object]", question))
        return Answer(self, question.read, len(self._questions) - 1)

    def rows(self, place: int) -> list[Row]:
        """The rows that answer the question at this place."""
        if self._rows is None:
            statement = _merged(tuple(each.statement for each in self._questions))
            params = {
                f"q{n}_{name}": value for n, each in enumerate(self._questions) for name, value in each.params.items()
            }
            self._rows = queries.fetch_records(statement, params)
        return self._rows[place]


@lru_cache(maxsize=200)
def _merged(statements: tuple[LiteralString, ...]) -> LiteralString:
    """One statement whose columns are the rows of these; parameters of the first are named `q0_…`, and so on."""
    parts = [f"ARRAY(SELECT q FROM (\n{queries.renamed(each, f'q{n}_')}\n) q)" for n, each in enumerate(statements)]  # noqa: S608 - texts of the files alone
    return "SELECT " + ",\n".join(parts)
