"""What several records of use come to, and what calls that were charged while an attempt ran are billed."""

from __future__ import annotations

from typing import Any

import pytest

from scheduler.policy.charges import CHARGED_LINE, Ended, Pricing, bill
from scheduler.policy.money import NANO
from scheduler.policy.prices import Buckets, buckets_of, flat
from scheduler.policy.types import Outcome
from scheduler.policy.usage import in_all

SMALL = flat(2 * NANO, 10 * NANO)
LARGE = flat(20 * NANO, 100 * NANO)
CALL = {"model": "m", "input_uncached": 1_000_000}


@pytest.mark.parametrize(
    ("usages", "comes_to"),
    [
        ([], {}),
        ([{"model": "m", "a": 1, "ok": True}, {"model": "m", "a": 2, "b": 3}], {"model": "m", "a": 3, "b": 3}),
        ([{"model": "m", "a": 1}, {"model": "n", "a": 1}], {"a": 2}),
        ([{"cost_usd": "0.1"}, {"a": 1}, {"cost_usd": "0.25"}], {"cost_usd": "0.35", "a": 1}),
        ([{"cost_usd": "dear"}, {"cost_usd": "NaN"}], {}),
    ],
)
def test_counts_are_added_and_the_rest_is_kept_where_all_agree(
    usages: list[dict[str, Any]], comes_to: dict[str, Any]
) -> None:
    assert in_all(usages) == comes_to


def test_counts_as_providers_give_them_are_understood_where_there_are_no_buckets() -> None:
    assert buckets_of({"input_tokens": 3, "output_tokens": 4}) == Buckets(input_uncached=3, output_visible=4)
    assert buckets_of({"input_tokens": 3, "cache_read": 2}) == Buckets(cache_read=2)


def _ended(outcome: Outcome, **changes: Any) -> Ended:
    priced = Pricing(most=9 * NANO, model="m", table=SMALL, input_likely=50, output_most=100)
    values: dict[str, Any] = {
        "outcome": outcome, "began": True, "elapsed_s": 10.0, "reserved": 9 * NANO, "pricing": priced, "table": SMALL,
        "worker_second_nano": None, "charged": ((CALL, SMALL), ({**CALL, "model": "n"}, LARGE)),
    }  # fmt: skip
    return Ended(**(values | changes))


@pytest.mark.parametrize("outcome", [Outcome.SUCCEEDED, Outcome.LOST, Outcome.FAILED, Outcome.CANCELLED])
def test_each_charged_call_is_billed_at_the_price_of_its_model_and_nothing_is_guessed(outcome: Outcome) -> None:
    lines = bill(_ended(outcome))
    assert [(each.line, each.cost, each.model) for each in lines] == [
        (CHARGED_LINE, 2 * NANO, "m"),
        (CHARGED_LINE + 1, 20 * NANO, "n"),
    ]


def test_what_is_reported_at_the_end_is_billed_besides() -> None:
    lines = bill(_ended(Outcome.SUCCEEDED, usage={"input_uncached": 500_000}, worker_second_nano=7))
    assert [(each.line, each.cost) for each in lines] == [(0, NANO), (1, 70), (2, 2 * NANO), (3, 20 * NANO)]


def test_work_without_prices_of_models_is_charged_what_its_calls_say_that_they_cost() -> None:
    said = ({"cost_usd": "0.5"}, None)
    (time, line) = bill(_ended(Outcome.LOST, pricing=None, table=None, worker_second_nano=1, charged=(said,)))
    assert (time.line, line.line, line.cost, line.model) == (1, 2, NANO // 2, None)
    flat_price = Pricing(most=3 * NANO)
    (whole,) = bill(_ended(Outcome.LOST, pricing=flat_price, table=None, charged=((CALL, None),)))
    assert (whole.line, whole.cost, whole.source) == (0, 9 * NANO, "unknown")
