"""What calls cost: estimates that bound the bill, and bills to the published figure."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from scheduler.policy.charges import Ended, Line, Pricing, began, bill, read_pricing
from scheduler.policy.money import NANO
from scheduler.policy.prices import (
    Asked,
    Band,
    Buckets,
    PriceTable,
    Rates,
    buckets_of,
    clamped_output,
    cost_of,
    estimate,
    flat,
    table_as_json,
    table_from_json,
    unseen,
)
from scheduler.policy.types import Outcome

LONG = PriceTable(
    (
        Band(-1, Rates(3 * NANO, NANO // 10, 4 * NANO, 6 * NANO, 15 * NANO, 15 * NANO)),
        Band(200_000, Rates(6 * NANO, NANO // 5, 8 * NANO, 12 * NANO, 30 * NANO, 30 * NANO)),
    )
)
SMALL = flat(2 * NANO, 10 * NANO)


def test_long_input_is_priced_whole_at_the_higher_rates() -> None:
    assert cost_of(LONG, Buckets(input_uncached=200_000)) == 600_000_000
    assert cost_of(LONG, Buckets(input_uncached=200_001)) == 1_200_006_000
    # Cached input counts for the length.
    assert cost_of(LONG, Buckets(input_uncached=1, cache_read=200_000)) == 6_000 + 40_000_000


def test_what_is_not_named_costs_what_it_is_a_kind_of() -> None:
    assert flat(1, 2).bands[0].rates == Rates(1, 1, 1, 1, 2, 2)
    assert flat(1, 2, cache_read=0, cache_write=3).bands[0].rates == Rates(1, 0, 3, 3, 2, 2)
    assert flat(1, 2, cache_write_1h=9).bands[0].rates == Rates(1, 1, 1, 9, 2, 2)


def test_free_is_free() -> None:
    assert flat(0, 0).is_free
    assert not SMALL.is_free
    assert clamped_output(reserved=0, input_cost=0, output_most=7, output_rate=0) == 7


@given(st.integers(0, 400_000), st.integers(0, 20_000), st.integers(1, 4), st.data(), st.sampled_from([LONG, SMALL]))
def test_no_bill_exceeds_the_estimate(
    most: int, output: int, answers: int, data: st.DataObject, table: PriceTable
) -> None:
    found = estimate(table, Asked(most, most, output, answers, writes_1h=True))
    parts = [data.draw(st.integers(0, most)) for _ in range(3)]
    read, write, write_1h = (part * most // max(1, 4 * most) for part in parts)
    used = Buckets(most - read - write - write_1h, read, write, write_1h, output * answers - output // 2, output // 2)
    assert cost_of(table, used) <= found.most + 2  # two begun nano-dollars
    assert found.least <= found.most


@given(st.integers(0, 100_000), st.integers(1, 20_000), st.integers(0, 10**12))
def test_what_a_reservation_pays_for_is_never_more_than_it(most: int, output: int, reserved: int) -> None:
    found = estimate(SMALL, Asked(most, most, output))
    tokens = clamped_output(
        reserved=reserved, input_cost=found.input_cost, output_most=output, output_rate=found.output_rate
    )
    assert 0 <= tokens <= output
    if reserved >= found.input_cost:
        assert cost_of(SMALL, Buckets(input_uncached=most, output_visible=tokens)) <= reserved


def test_a_call_without_a_limit_gets_the_pools_and_embeddings_write_nothing() -> None:
    assert estimate(SMALL, Asked(10, 10, None)).output_most == 4_096
    assert estimate(SMALL, Asked(10, 10, None), output_default=9).output_most == 9
    assert estimate(SMALL, Asked(10, 10, None, has_output=False)).most == 20_000


def test_tables_survive_being_kept() -> None:
    assert table_from_json(table_as_json(LONG), "catalog") == LONG
    pricing = Pricing(most=5, model="m", provider="p", tier="flex", table=LONG, input_likely=3)
    assert read_pricing(pricing.as_json()) == pricing
    assert read_pricing(Pricing(most=5).as_json()) == Pricing(most=5)


def test_strange_counts_are_none() -> None:
    assert buckets_of({"input_uncached": 5, "cache_read": True, "output_visible": "9", "cache_write": -1}) == Buckets(5)


def test_unseen_output_grows_with_time_up_to_its_limit() -> None:
    assert unseen(10, 1_000, 4.0) == Buckets(10, output_visible=200)
    assert unseen(10, 100, 4.0) == Buckets(10, output_visible=100)
    assert unseen(10, 100, -1.0) == Buckets(10)


# Bills

CALL = Pricing(most=10_000_000, model="m", table=SMALL, input_likely=1_000, output_most=500, output_rate=10 * NANO)


def ended(outcome: Outcome, usage: dict[str, object] | None = None, **changes: object) -> Ended:
    values: dict[str, object] = {
        "outcome": outcome,
        "began": began(outcome, None),
        "elapsed_s": 2.0,
        "reserved": 7_000,
        "pricing": CALL,
        "table": None,
        "worker_second_nano": None,
        "usage": usage,
    }
    return Ended(**(values | changes))  # type: ignore[arg-type]  # a test's short way


def cost(lines: list[Line]) -> list[tuple[int, int, str]]:
    return [(line.line, line.cost, line.source) for line in lines]


def test_reported_use_is_billed_at_the_prices_of_the_start() -> None:
    usage: dict[str, object] = {"input_uncached": 1_000, "output_visible": 100, "source": "reported", "model": "m-2"}
    (line,) = bill(ended(Outcome.SUCCEEDED, usage))
    assert (line.cost, line.source, line.price_source, line.model) == (3_000_000, "reported", "operator", "m-2")
    (line,) = bill(ended(Outcome.SUCCEEDED, usage, table=LONG))
    assert (line.cost, line.price_source) == (4_500_000, "catalog")


def test_who_fails_and_reports_nothing_cost_nothing_and_a_hand_back_neither() -> None:
    assert bill(ended(Outcome.FAILED)) == []
    assert bill(ended(Outcome.RELEASED)) == []
    assert bill(ended(Outcome.FAILED, pricing=Pricing(most=5))) == []
    assert bill(ended(Outcome.CANCELLED, began=False)) == []


def test_an_end_without_a_word_costs_its_input_and_what_can_have_come() -> None:
    expected = [(0, 2_000_000 + 1_000_000, "unknown")]
    for outcome in (Outcome.TIMED_OUT, Outcome.LOST, Outcome.CANCELLED, Outcome.SUCCEEDED):
        assert cost(bill(ended(outcome))) == expected
    assert cost(bill(ended(Outcome.RELEASED, began=began(Outcome.RELEASED, said=True)))) == expected
    # What is known of it is a floor.
    floor: dict[str, object] = {"input_uncached": 1_000, "output_visible": 0, "source": "unknown"}
    assert cost(bill(ended(Outcome.FAILED, floor))) == expected
    more: dict[str, object] = {"input_uncached": 9_000, "output_visible": 0, "source": "unknown"}
    assert cost(bill(ended(Outcome.FAILED, more))) == [(0, 18_000_000, "unknown")]


def test_flat_prices() -> None:
    plain = Pricing(most=9_000)
    assert cost(bill(ended(Outcome.LOST, pricing=plain))) == [(0, 7_000, "unknown")]
    assert cost(bill(ended(Outcome.SUCCEEDED, {"n": 1}, pricing=plain))) == [(0, 7_000, "estimated")]
    said: dict[str, object] = {"cost_usd": "0.000002", "source": "strange"}
    assert cost(bill(ended(Outcome.SUCCEEDED, said, pricing=plain))) == [(0, 2_000, "reported")]
    assert cost(bill(ended(Outcome.SUCCEEDED, {"cost_usd": "much"}, pricing=plain))) == [(0, 9_000, "reported")]
    assert plain.max_output_tokens(5) is None


def test_a_workers_time_costs_whatever_came_of_it() -> None:
    for outcome in (Outcome.SUCCEEDED, Outcome.FAILED, Outcome.LOST):
        assert cost(bill(ended(outcome, pricing=None, worker_second_nano=1_000))) == [(1, 2_000, "reported")]
        # Nothing was called, so nothing else is billed, whatever was reserved.
        flat = bill(ended(outcome, pricing=Pricing(most=9_000), worker_second_nano=1_000))
        assert cost(flat) == [(1, 2_000, "reported")]
    assert bill(ended(Outcome.RELEASED, pricing=None, worker_second_nano=1_000)) == []
    said: dict[str, object] = {"cost_usd": "0.000002"}
    both = bill(ended(Outcome.SUCCEEDED, said, pricing=None, worker_second_nano=1_000))
    assert cost(both) == [(0, 2_000, "reported"), (1, 2_000, "reported")]
    unread = bill(ended(Outcome.SUCCEEDED, {"cost_usd": "much"}, pricing=None, worker_second_nano=1_000))
    assert cost(unread) == [(0, 7_000, "reported"), (1, 2_000, "reported")]


def test_what_may_be_written_is_what_is_reserved() -> None:
    assert CALL.max_output_tokens(1_000_000) == 100
    assert Pricing(most=1, table=SMALL).max_output_tokens(1) is None
