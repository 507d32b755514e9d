"""The grammar of filters: which tasks a person or a program asks for, as one line of text.

It decides what a text means and how a filter is written, and nothing else: not whether a pool of that name exists, not
how tasks are found. One grammar for the console's boxes, the API and the command line.

    pool:llm-a tenant:acme state:dead reason:timeout class:high age>10m cost>1.50 "quoted text" -tenant:test

Terms are joined by AND, values behind one key by OR, and `-` before a term means all others.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final, NamedTuple, assert_never

from scheduler.errors import FieldError, Refused
from scheduler.policy.money import format_usd, parse_usd
from scheduler.policy.payload import fault_in_text
from scheduler.policy.states import WAITING, TaskState
from scheduler.policy.types import FailureClass, PriorityClass

CHARS_MAX: Final = 8_000
TERMS_MAX: Final = 20
VALUES_MAX: Final = 50
TASKS_MAX: Final = 500
ID_MAX: Final = 2**63 - 1
COUNT_MAX: Final = 2**31 - 1


class Key(StrEnum):
    """What a term with values is about."""

    POOL = "pool"
    TENANT = "tenant"
    STATE = "state"
    CLASS = "class"
    KIND = "kind"
    KEY = "key"
    REASON = "reason"
    FINGERPRINT = "fingerprint"
    TASK = "task"


class Measure(StrEnum):
    """What a term with a comparison is about: seconds since submission, nano-dollars spent, attempts made."""

    AGE = "age"
    COST = "cost"
    ATTEMPTS = "attempts"


class Sign(StrEnum):
    """How a measure is compared."""

    AT_LEAST = ">="
    AT_MOST = "<="
    OVER = ">"
    UNDER = "<"


DEAD: Final = "dead"
WAITS: Final = "waiting"
DISCARDED: Final = "discarded"
_STATES: Final = (*(state.value for state in TaskState), WAITS, DEAD, DISCARDED)
_CLOSED: Final[Mapping[Key, tuple[str, ...]]] = {
    Key.STATE: _STATES,
    Key.CLASS: tuple(priority.label for priority in PriorityClass),
    Key.REASON: tuple(reason.value for reason in FailureClass),
}
_KEYS: Final = (*(key.value for key in Key), *(measure.value for measure in Measure))
_UNITS: Final = {"w": 604_800, "d": 86_400, "h": 3_600, "m": 60, "s": 1}
_DURATION = re.compile(r"([0-9]{1,9})([smhdw])")
_NUMBER = re.compile(r"[0-9]{1,19}")
_FINGERPRINT = re.compile(r"[0-9a-f]{16}")
_BARE = re.compile(r"[^\s,\"\\<>=:-][^\s,\"\\<>=:]*")
_VALUE = re.compile(r"[^\s,\"\\]+")
_WORD = re.compile(r"[A-Za-z_]+")


@dataclass(frozen=True, slots=True)
class Is:
    """The task has one of these values. `at` is where the term stands in the text, counted from 1."""

    key: Key
    values: tuple[str, ...]
    negated: bool = False
    at: int = field(default=1, compare=False)


@dataclass(frozen=True, slots=True)
class Than:
    """A measure of the task is above or below a bound: seconds, nano-dollars or a number."""

    measure: Measure
    sign: Sign
    bound: int
    negated: bool = False
    at: int = field(default=1, compare=False)


@dataclass(frozen=True, slots=True)
class Has:
    """The text stands in the task's kind, key, or the message of its death."""

    text: str
    negated: bool = False
    at: int = field(default=1, compare=False)


Term = Is | Than | Has


@dataclass(frozen=True, slots=True)
class Filter:
    """All of these terms; none: every task."""

    terms: tuple[Term, ...] = ()

    def values_of(self, key: Key) -> tuple[str, ...] | None:
        """What a task must be one of, where exactly one term says so."""
        said = [term for term in self.terms if isinstance(term, Is) and term.key is key and not term.negated]
        return said[0].values if len(said) == 1 else None


class FilterFault(NamedTuple):
    """Why a text is no filter: where (counted from 1), and what to write instead."""

    at: int
    says: str

    def __str__(self) -> str:
        """The sentence for a person."""
        return f"At character {self.at}: {self.says}"


class _FaultFoundError(Exception):
    def __init__(self, at: int, says: str) -> None:
        super().__init__(says)
        self.fault = FilterFault(at + 1, says)


def states_in(values: tuple[str, ...]) -> frozenset[TaskState]:
    """The states that words of `state:` name by themselves; `dead` and `discarded` are left out."""
    named = {TaskState(value) for value in values if value not in {WAITS, DEAD, DISCARDED}}
    return frozenset(named | WAITING if WAITS in values else named)


def parse_filter(text: str) -> Filter | FilterFault:
    """What a text asks for, or what is wrong with it."""
    said = fault_in_text(text)
    if said is not None:
        return FilterFault(1, f"This text {said}.")
    if len(text) > CHARS_MAX:
        return FilterFault(CHARS_MAX + 1, f"A filter has at most {CHARS_MAX:,} characters.")
    try:
        return Filter(_terms(text))
    except _FaultFoundError as found:
        return found.fault


def _terms(text: str) -> tuple[Term, ...]:
    terms: list[Term] = []
    at = _skip(text, 0)
    while at < len(text):
        if len(terms) == TERMS_MAX:
            raise _FaultFoundError(at, f"A filter has at most {TERMS_MAX} terms.")
        term, at = _term(text, at)
        terms.append(term)
        at = _skip(text, at)
    return tuple(terms)


def _skip(text: str, at: int) -> int:
    while at < len(text) and text[at].isspace():
        at += 1
    return at


def _term(text: str, start: int) -> tuple[Term, int]:
    """The term that begins here, and where it ends."""
    negated = text[start] == "-"
    at = start + negated
    if at < len(text) and text[at] == '"':
        words, at = _quoted(text, at)
        return Has(_searched(words, start), negated, start + 1), _end(text, at)
    word = _WORD.match(text, at)
    behind = text[word.end() : word.end() + 2] if word else ""
    if word and behind[:1] == ":":
        return _is(text, word, start, negated=negated)
    if word and behind[:1] in {"<", ">"}:
        return _than(text, word, start, negated=negated)
    bare = _BARE.match(text, at)
    end = bare.end() if bare else at
    if bare is None or (end < len(text) and not text[end].isspace()):
        raise _FaultFoundError(end, "Write key:value, or put text that is to be found in quotes.")
    return Has(_searched(bare[0], start), negated, start + 1), end


def _searched(words: str, at: int) -> str:
    if not words.strip():
        raise _FaultFoundError(at, "There is nothing between these quotes to look for.")
    return words


def _is(text: str, word: re.Match[str], start: int, *, negated: bool) -> tuple[Term, int]:
    name = word[0].lower()
    if name in set(Measure):
        raise _FaultFoundError(word.end(), f"Compare {name} with > or <, as in {_EXAMPLES[Measure(name)]}.")
    if name not in set(Key):
        raise _FaultFoundError(word.start(), f"There is no key {name!r}; there are {', '.join(_KEYS)}.")
    key, at = Key(name), word.end() + 1
    values: list[str] = []
    while True:
        begins = at
        value, at = _value(text, at)
        values.append(_checked(key, value, begins))
        values_max = TASKS_MAX if key is Key.TASK else VALUES_MAX
        if len(values) > values_max:
            raise _FaultFoundError(begins, f"One key takes at most {values_max} values.")
        if text[at : at + 1] != ",":
            break
        at += 1
    return Is(key, tuple(dict.fromkeys(values)), negated, start + 1), _end(text, at)


def _value(text: str, at: int) -> tuple[str, int]:
    if text[at : at + 1] == '"':
        return _quoted(text, at)
    found = _VALUE.match(text, at)
    if found is None:
        raise _FaultFoundError(at, "A value is missing here.")
    return found[0], found.end()


def _quoted(text: str, start: int) -> tuple[str, int]:
    """What stands between the quotes that open here; a backslash takes the next character as it is."""
    out: list[str] = []
    at = start + 1
    while at < len(text):
        if text[at] == '"':
            return "".join(out), at + 1
        if text[at] == "\\" and at + 1 < len(text):
            at += 1
        out.append(text[at])
        at += 1
    raise _FaultFoundError(start, "These quotes are not closed.")


def _end(text: str, at: int) -> int:
    if at < len(text) and not text[at].isspace():
        raise _FaultFoundError(at, "Put a blank between two terms.")
    return at


def _checked(key: Key, value: str, at: int) -> str:
    """The value as it is kept. Raises for one that cannot be."""
    if not value:
        raise _FaultFoundError(at, "A value is missing here.")
    allowed = _CLOSED.get(key)
    if allowed is not None:
        if value.lower() not in allowed:
            raise _FaultFoundError(at, f"There is no {key} {value!r}; there are {', '.join(allowed)}.")
        return value.lower()
    if key is Key.FINGERPRINT and not _FINGERPRINT.fullmatch(value):
        raise _FaultFoundError(at, "A fingerprint has sixteen digits from 0 to f; copy it from the group's page.")
    if key is Key.TASK and not (_NUMBER.fullmatch(value) and 0 < int(value) <= ID_MAX):
        raise _FaultFoundError(at, "A task is named by its number.")
    return value


_EXAMPLES: Final = {Measure.AGE: "age>10m", Measure.COST: "cost>1.50", Measure.ATTEMPTS: "attempts>=3"}


def _than(text: str, word: re.Match[str], start: int, *, negated: bool) -> tuple[Term, int]:
    name, at = word[0].lower(), word.end()
    if name in set(Key):
        raise _FaultFoundError(at, f"Write {name}:value; only {', '.join(Measure)} are compared.")
    if name not in set(Measure):
        raise _FaultFoundError(word.start(), f"There is no key {name!r}; there are {', '.join(_KEYS)}.")
    measure = Measure(name)
    sign = next(each for each in Sign if text.startswith(each, at))
    at += len(sign)
    value, end = _value(text, at)
    bound = _bound(measure, value)
    if bound is None:
        raise _FaultFoundError(at, f"{value!r} is no {_OF_WHAT[measure]}; write it as in {_EXAMPLES[measure]}.")
    return Than(measure, sign, bound, negated, start + 1), _end(text, end)


_OF_WHAT: Final = {Measure.AGE: "length of time", Measure.COST: "amount of dollars", Measure.ATTEMPTS: "number"}


def _bound(measure: Measure, value: str) -> int | None:
    if measure is Measure.AGE:
        found = _DURATION.fullmatch(value)
        return None if found is None else int(found[1]) * _UNITS[found[2]]
    if measure is Measure.COST:
        try:
            return parse_usd(value)
        except ValueError:
            return None
    return int(value) if _NUMBER.fullmatch(value) and int(value) <= COUNT_MAX else None


def format_filter(wanted: Filter) -> str:
    """The filter as text; read again it is the same filter."""
    return " ".join(_written(term) for term in wanted.terms)


def _written(term: Term) -> str:
    minus = "-" if term.negated else ""
    match term:
        case Is(key=key, values=values):
            return f"{minus}{key}:{','.join(value if _VALUE.fullmatch(value) else _quote(value) for value in values)}"
        case Than(measure=measure, sign=sign, bound=bound):
            return f"{minus}{measure}{sign}{_write_bound(measure, bound)}"
        case Has(text=text):
            return minus + _quote(text)
        case never:
            assert_never(never)


def _quote(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def _write_bound(measure: Measure, bound: int) -> str:
    if measure is Measure.COST:
        return format_usd(bound)
    if measure is Measure.ATTEMPTS:
        return str(bound)
    unit, seconds = next((u, s) for u, s in _UNITS.items() if bound % s == 0 and (bound or s == 1))
    return f"{bound // seconds}{unit}"


def refusal(fault: FilterFault) -> Refused:
    """The fault as every edge answers it."""
    return Refused(str(fault), code="bad_filter", errors=(FieldError(("filter",), str(fault)),))
