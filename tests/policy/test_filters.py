"""What a filter's text means, how it is written again, and what is said about a text that is none."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scheduler.policy.filters import (
    Filter,
    FilterFault,
    Has,
    Is,
    Key,
    Measure,
    Sign,
    Term,
    Than,
    format_filter,
    parse_filter,
    refusal,
    states_in,
)
from scheduler.policy.money import USD_MAX
from scheduler.policy.states import WAITING, TaskState

WORDS = st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1, max_size=12)
CLOSED = {
    Key.STATE: st.sampled_from(["dead", "waiting", "discarded", *TaskState]).map(str),
    Key.CLASS: st.sampled_from(["critical", "high", "normal", "low"]),
    Key.REASON: st.sampled_from(["timeout", "throttled"]),
    Key.FINGERPRINT: st.integers(0, 2**63 - 1).map(lambda n: f"{n:016x}"),
    Key.TASK: st.integers(1, 2**63 - 1).map(str),
}
VALUES = {key: CLOSED.get(key, WORDS) for key in Key}
BOUNDS = {
    Measure.AGE: st.integers(0, 999_999_999),
    Measure.COST: st.integers(0, USD_MAX * 10**9),
    Measure.ATTEMPTS: st.integers(0, 2**31 - 1),
}


def several(values: st.SearchStrategy[str]) -> st.SearchStrategy[tuple[str, ...]]:
    return st.lists(values, min_size=1, max_size=4, unique=True).map(tuple)


ISES = st.sampled_from(list(Key)).flatmap(lambda key: st.builds(Is, st.just(key), several(VALUES[key]), st.booleans()))
THANS = st.sampled_from(list(Measure)).flatmap(
    lambda measure: st.builds(Than, st.just(measure), st.sampled_from(list(Sign)), BOUNDS[measure], st.booleans())
)
TERMS: st.SearchStrategy[Term] = ISES | THANS | st.builds(Has, WORDS.filter(str.strip), st.booleans())
FILTERS = st.lists(TERMS, max_size=6).map(lambda terms: Filter(tuple(terms)))


def parsed(text: str) -> tuple[Term, ...]:
    found = parse_filter(text)
    assert isinstance(found, Filter), found
    return found.terms


def fault(text: str) -> FilterFault:
    found = parse_filter(text)
    assert isinstance(found, FilterFault), found
    return found


@given(FILTERS)
def test_a_filter_written_and_read_again_is_the_same(wanted: Filter) -> None:
    assert parse_filter(format_filter(wanted)) == wanted


@given(st.text(max_size=60) | st.text('poltenad:"\\,<>=- 0123456789m', max_size=60))
def test_any_text_is_a_filter_or_a_fault_within_it(text: str) -> None:
    found = parse_filter(text)
    if isinstance(found, Filter):
        assert parse_filter(format_filter(found)) == found
    else:
        assert 1 <= found.at <= len(text) + 1
        assert str(found) == f"At character {found.at}: {found.says}"


def test_every_kind_of_term() -> None:
    text = 'pool:llm-a,b Tenant:acme state:DEAD -reason:timeout class:high age>10m cost<=1.50 "quoted, text" -"no \\"q"'
    assert parsed(text) == (
        Is(Key.POOL, ("llm-a", "b")),
        Is(Key.TENANT, ("acme",)),
        Is(Key.STATE, ("dead",)),
        Is(Key.REASON, ("timeout",), negated=True),
        Is(Key.CLASS, ("high",)),
        Than(Measure.AGE, Sign.OVER, 600),
        Than(Measure.COST, Sign.AT_MOST, 1_500_000_000),
        Has("quoted, text"),
        Has('no "q', negated=True),
    )


def test_blanks_are_nothing_and_words_are_searched_for() -> None:
    assert parsed("  ") == ()
    assert parsed("invoice attempts>=2") == (Has("invoice"), Than(Measure.ATTEMPTS, Sign.AT_LEAST, 2))
    assert [term.at for term in parsed("invoice attempts>=2")] == [1, 9]


@pytest.mark.parametrize(
    ("text", "at", "says"),
    [
        ("colour:red", 1, "There is no key 'colour'; there are pool, tenant, state"),
        ("pool:a colour>3", 8, "There is no key 'colour'"),
        ("state:ded", 7, "There is no state 'ded'; there are blocked"),
        ("class:high,urgent", 12, "There is no class 'urgent'; there are critical, high, normal, low."),
        ("reason:slow", 8, "There is no reason 'slow'"),
        ("pool:", 6, "A value is missing here."),
        ("pool:a,", 8, "A value is missing here."),
        ('kind:""', 6, "A value is missing here."),
        ("age:10m", 4, "Compare age with > or <, as in age>10m."),
        ("age>ten", 5, "'ten' is no length of time; write it as in age>10m."),
        ("cost>-1", 6, "'-1' is no amount of dollars; write it as in cost>1.50."),
        ("attempts>99999999999", 10, "is no number"),
        ("pool>a", 5, "Write pool:value; only age, cost, attempts are compared."),
        ('pool:a "open', 8, "These quotes are not closed."),
        ('""', 1, "There is nothing between these quotes"),
        ('"a"b', 4, "Put a blank between two terms."),
        ('pool:"a"b', 9, "Put a blank between two terms."),
        ("pool=a", 5, "Write key:value"),
        ("-", 2, "Write key:value"),
        ("fingerprint:xyz", 13, "A fingerprint has sixteen digits"),
        ("task:0", 6, "A task is named by its number."),
        ("a\x00b", 1, "This text"),
        ("x" * 8001, 8001, "at most 8,000 characters"),
        ("a " * 21, 41, "at most 20 terms"),
        ("kind:" + ",".join(f"k{n}" for n in range(51)), 0, "at most 50 values"),
    ],
)
def test_what_is_wrong_is_said_with_its_place(text: str, at: int, says: str) -> None:
    found = fault(text)
    assert says in found.says
    assert at in (found.at, 0)


def test_words_for_several_states() -> None:
    assert states_in(("waiting",)) == WAITING
    assert states_in(("dead", "discarded")) == frozenset()
    assert states_in(("shed", "dead")) == {TaskState.SHED}


def test_what_one_term_alone_says() -> None:
    wanted = Filter(parsed("pool:a -tenant:x state:ready state:failed"))
    assert wanted.values_of(Key.POOL) == ("a",)
    assert wanted.values_of(Key.TENANT) is None
    assert wanted.values_of(Key.STATE) is None


def test_a_fault_is_answered_with_its_place() -> None:
    found = refusal(fault("pool:"))
    assert (found.code, found.errors[0].loc) == ("bad_filter", ("filter",))
    assert found.detail == "At character 6: A value is missing here."
