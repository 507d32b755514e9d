"""How classes stand against their targets: on the page, in one sentence, and among what needs attention."""

from __future__ import annotations

from typing import Any

import pytest

from scheduler.live.attention import needs_attention
from scheduler.live.board import Board, read_board
from scheduler.live.promise import promise_rows, summary
from tests.live import sample

SURE = {"high": {"p50_s": 1.0, "p90_s": 2.0}}


def board(**changes: Any) -> Board:
    pools = [sample.pool("llm", **{"slo": {"high": 5.0}, "forecast": SURE, **changes})]
    return read_board(9, sample.AS_OF_S, sample.body(pools=pools, resources=[]))


@pytest.mark.parametrize(
    ("changes", "word", "wait"),
    [
        ({}, "On target", "1.0 s to 2.0 s"),
        ({"forecast": {"high": {"p50_s": 1.0, "p90_s": 6.0}}}, "At risk", "1.0 s to 6.0 s"),
        ({"forecast": {"high": {"p50_s": 1.0, "p90_s": None}}}, "At risk", "1.0 s to over 15 min"),
        ({"forecast": {"high": {"p50_s": 6.0, "p90_s": 9.0}}}, "Will miss", "6.0 s to 9.0 s"),
        ({"forecast": {"high": {"p50_s": None, "p90_s": None}}}, "Will miss", "over 15 min"),
        ({"forecast": None}, "Not enough data", "not enough data"),
        ({"forecast": {"low": {"p50_s": 1.0, "p90_s": 2.0}}}, "No work", "—"),
        ({"oldest_by_class": {"high": 5.1}}, "Missed", "1.0 s to 2.0 s"),
        ({"oldest_by_class": {"high": 4.9}, "state": "paused"}, "Paused", "1.0 s to 2.0 s"),
        ({"slo": {}}, "No target", "1.0 s to 2.0 s"),
    ],
)
def test_what_happened_goes_before_what_is_foreseen(changes: dict[str, Any], word: str, wait: str) -> None:
    row = promise_rows(board(**changes))[0]
    assert (row.chip.word, row.wait) == (word, wait)


@pytest.mark.parametrize(
    ("changes", "chance"),
    [
        ({}, "over 95 %"),
        ({"forecast": {"high": {"p50_s": 5.0, "p90_s": 9.0}}}, "50 %"),
        ({"forecast": {"high": {"p50_s": 50.0, "p90_s": 90.0}}}, "under 5 %"),
        ({"forecast": None}, "—"),
        ({"slo": {}}, "—"),
    ],
)
def test_how_likely_it_is_in_time_is_said_only_where_it_is_known(changes: dict[str, Any], chance: str) -> None:
    assert promise_rows(board(**changes))[0].chance == chance


def test_the_worst_comes_first_with_its_cause() -> None:
    bound = {"code": "resource", "resource": "openai", "text": "openai is short"}
    slo = {"critical": 9.0, "high": 5.0}
    rows = promise_rows(board(slo=slo, oldest_by_class={"high": 8.0}, bound_by=bound))
    assert [(row.cls, row.chip.word, row.cause, row.resource) for row in rows] == [
        ("high", "Missed", "openai is short", "openai"),
        ("critical", "No work", "—", None),
    ]
    assert summary(rows) == "1 target is missed or will be: llm (high)."


def test_the_sentence_never_says_that_all_is_well_when_it_is_not_known() -> None:
    assert summary(promise_rows(board())) == "The one target is kept."
    assert summary(promise_rows(board(slo={"high": 5.0, "low": 5.0}))) == "All 2 targets kept."
    assert summary(promise_rows(board(forecast=None))) == "Nothing is known to be at risk: 0 of 1 target kept."
    assert summary(promise_rows(board(slo={}))).startswith("No pool has a target.")


def test_a_missed_target_needs_somebody_at_once() -> None:
    [notice] = needs_attention(board(oldest_by_class={"high": 8.0}))
    assert (notice.urgency.word, notice.says) == ("Act now", "keeps high work waiting past its target")
    assert notice.detail == "high has waited 8.0 s, target 5.0 s"
    [notice] = needs_attention(board(forecast={"high": {"p50_s": 6.0, "p90_s": 9.0}}))
    assert (notice.urgency.word, notice.says) == ("Watch", "will keep high work waiting past its target")


def test_a_budget_that_runs_out_and_tasks_that_die_need_somebody() -> None:
    budget = {"tenant": "acme", "spent_nano": 84 * 10**9, "allowed_nano": 100 * 10**9, "ends": sample.AS_OF_S}
    death = {"pool": "llm", "tenant": "acme", "n": 31, "class": "invalid", "shape": "too long", "at": sample.AS_OF_S}
    body = sample.body(pools=[], resources=[], budgets=[budget, {**budget, "tenant": "x", "allowed_nano": 0}])
    found = needs_attention(read_board(9, sample.AS_OF_S, {**body, "deaths": [death]}))
    assert [(n.urgency.word, n.kind, n.subject, n.says) for n in found] == [
        ("Act now", "pool", "llm", "has 31 dead letters with one cause, the newest just now"),
        ("Act now", "tenant", "x", "has used 100 % of its budget"),
        ("Watch", "tenant", "acme", "has used 84 % of its budget"),
    ]
    assert found[0].detail == "invalid · too long · acme"
    said = body | {"deaths": [death], "budgets": []}
    for succeeded, failed, word in ((99.0, 1.0, "Watch"), (3.0, 1.0, "Act now"), (0.0, 0.0, "Act now")):
        said["pools"] = [sample.pool("llm", succeeded_per_s=succeeded, failed_per_s=failed)]
        dead = next(n for n in needs_attention(read_board(9, sample.AS_OF_S, said)) if "dead letters" in n.says)
        assert dead.urgency.word == word, "what dies beside much that succeeds can wait"
    assert found[2].detail.startswith("$84 of $100") or found[2].detail.startswith("$84.00 of $100.00")
