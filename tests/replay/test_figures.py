"""What a replay comes to: waits, limits, objectives, cost, sizes; and that only what was changed changes."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from itertools import accumulate

import pytest

from scheduler.policy.types import PriorityClass
from scheduler.replay.comparing import compare
from scheduler.replay.faults import ReplayRefused
from scheduler.replay.judged import judge
from scheduler.replay.settings import Price
from scheduler.replay.summary import summarise
from scheduler.replay.text import as_text
from scheduler.replay.trace import Request, Trace
from scheduler.replay.virtual import play
from scheduler.replay.world import lay_out
from tests.replay.traffic import bursts, setup


def trace(*requests: Request) -> Trace:
    return Trace("t.csv", 0.0, requests)


def at(*times: float, input_tokens: int = 100, output_tokens: int = 10) -> Trace:
    return trace(*(Request(t, input_tokens, output_tokens) for t in times))


EXACT = ("noise=0", "seconds_per_request=2", "seconds_per_input_token=0", "seconds_per_output_token=0")


def test_a_slot_makes_waits_that_can_be_told_in_advance() -> None:
    (found,) = compare(at(0.0, 0.0, 0.0, 10.0), [setup("slots=1", *EXACT)])
    total = found.total
    assert (total.requests, total.p50, total.p95, total.most) == (4, 0.0, 4.0, 4.0)
    assert found.took_s == 12.0
    assert found.pools[0].mean == pytest.approx(8.0 / 13.0)
    assert (found.refused, found.unfinished, found.failed) == (0, 0, 0)


def test_service_times_follow_tokens_and_noise_keeps_their_mean() -> None:
    works = lay_out(bursts(4000), setup("noise=0.5"))
    assert works[0].expected_s == pytest.approx(
        0.3 + 0.00002 * works[0].request.input_tokens + 0.02 * works[0].request.output_tokens
    )
    assert sum(w.runs_s for w in works) / sum(w.expected_s for w in works) == pytest.approx(1.0, abs=0.03)


def test_a_rate_limit_holds_work_up_and_is_named() -> None:
    (found,) = compare(bursts(), [setup("rpm=30", "limits.requests.margin=0")])
    (limit,) = found.limits
    assert limit.holds_up > 0.5
    assert max(found.series.starts) <= 1.0 + 2.0 / found.series.bin_s
    assert found.sizes[0].limit == "requests"
    assert found.sizes[0].recommended < 32
    assert any("only wait" in words for words in found.sizes[0].words)


def test_quotas_hold_up_their_tenant_alone_and_are_named() -> None:
    words = ["tenants.a.share=1", "tenants.b.share=1", "tenants.b.weight=3"]
    quota = ["tenants.a.start_rate=0.2", "tenants.a.start_burst=1", "tenants.a.max_in_flight=1"]
    free, held = compare(bursts(), [setup(*words), setup(*words, *quota, name="held")])
    waits = {w.who: w for w in held.tenants}
    assert all(w.most == 0.0 for w in free.tenants)
    assert waits["b"].most == 0.0
    assert (waits["a"].p50 or 0.0) > 10.0
    assert max(held.quotas[0].series) <= 1.0 + 1.0 / 0.2
    assert [use.name for use in held.quotas] == ["a: start rate", "a: in flight"]
    assert held.quotas[0].holds_up > 0.5
    assert dict(held.declared) == {"a": "weight 1, 0.2 starts/s, 1 at once, 1 in flight", "b": "weight 3"}
    text = as_text(bursts(), [free, held])
    assert "a: start rate" in text
    assert "a: weight 1, 0.2 starts/s" in text
    assert free.quotas == ()


def test_in_flight_is_never_above_the_quota() -> None:
    words = ["tenants.a.share=1", "tenants.a.max_in_flight=2", *EXACT]
    fates = play(lay_out(bursts(), setup(*words)), setup(*words)).fates
    steps = sorted([(f.started_s or 0.0, 1) for f in fates] + [(f.ended_s or 0.0, -1) for f in fates])
    assert max(accumulate(step for _, step in steps)) == 2


def test_a_class_leaves_what_its_ceiling_says() -> None:
    words = ["rpm=60", "limits.requests.burst=10", "limits.requests.margin=0", "limits.requests.ceilings.low=0.5"]
    low = trace(*(Request(0.0, 1, 1, priority=PriorityClass.LOW) for _ in range(20)))
    fates = play(lay_out(low, setup(*words)), setup(*words)).fates
    assert sum(f.wait_s == 0.0 for f in fates) == 5
    (found,) = compare(low, [setup(*words)])
    assert found.limits[0].declared == "60 requests a minute, 10 at once, low leaves 50 %"


def test_settings_that_differ_in_one_thing_see_the_same_traffic() -> None:
    words = ["tenants.a.share=1", "tenants.b.share=2", "classes.high.share=1", "classes.low.share=1"]
    one, two = lay_out(bursts(), setup("slots=1", *words)), lay_out(bursts(), setup("slots=9", "rpm=60", *words))
    assert [(w.tenant, w.priority, w.runs_s) for w in one] == [(w.tenant, w.priority, w.runs_s) for w in two]
    assert {w.tenant for w in one} == {"a", "b"}
    assert one != lay_out(bursts(), setup("slots=1", "seed=2", *words))
    assert [f.started_s for f in play(one, setup(*words)).fates] == [
        f.started_s for f in play(one, setup(*words)).fates
    ]


def test_by_content_the_same_request_is_always_the_same_tenants() -> None:
    named = setup("assign=content", "tenants.a.share=1", "tenants.b.share=1")
    works = lay_out(bursts(), named)
    again = lay_out(bursts(), replace(named, seed=5))
    assert [w.tenant for w in works] == [w.tenant for w in again]
    assert {w.tenant for w in works} == {"a", "b"}


def test_what_a_row_says_goes_before_what_settings_say() -> None:
    works = lay_out(trace(Request(0.0, 1, 1, "x", PriorityClass.LOW, "llm")), setup("tenants.a.share=1"))
    assert (works[0].tenant, works[0].priority, works[0].pool) == ("x", PriorityClass.LOW, "llm")
    with pytest.raises(ReplayRefused, match="names the pool 'gpu'"):
        lay_out(trace(Request(0.0, 1, 1, None, None, "gpu")), setup())


def test_objectives_and_deadlines() -> None:
    named = setup("slots=1", *EXACT, "classes.normal.slo_s=2", "classes.normal.deadline_s=4")
    (found,) = compare(at(0.0, 0.0, 0.0, 0.0), [named])
    assert [(o.what, o.met) for o in found.objectives] == [("started", 0.5), ("done", 0.5)]


def test_tokens_that_can_never_fit_are_refused_and_told() -> None:
    big = trace(Request(0.0, 10, 1), Request(1.0, 5000, 1))
    (found,) = compare(big, [setup("tpm=1000")])
    assert (found.refused, found.total.requests) == (1, 1)
    assert "ask for more than the limit tokens ever gives" in found.notes[0]


def test_a_paused_limit_leaves_work_unfinished() -> None:
    (found,) = compare(at(0.0, 1.0), [setup("rpm=0", "classes.normal.slo_s=5")])
    assert (found.unfinished, found.total.p50, found.objectives[0].met) == (2, None, 0.0)


def test_cost_is_exact_and_without_a_price_there_is_none() -> None:
    priced = replace(setup(), price=Price(input=Decimal("0.15"), output=Decimal("0.60")))
    dear, none = compare(at(0.0, 1.0, input_tokens=1_000_000, output_tokens=100_000), [priced, setup(name="x")])
    assert dear.cost is not None
    assert dear.cost.total == 2 * (150_000_000 + 60_000_000)
    assert none.cost is None


def test_weights_favour_a_tenant() -> None:
    named = setup("slots=1", *EXACT, "tenants.a.weight=9", "tenants.b.weight=1")
    (found,) = compare(bursts(100, size=50), [named])
    p50 = {waits.who: waits.p50 or 0.0 for waits in found.tenants}
    assert p50["a"] < p50["b"] / 2


def test_little_s_law_in_words() -> None:
    (found,) = compare(at(*(float(n) for n in range(120))), [setup("slots=9", *EXACT)])
    (size,) = found.sizes
    assert size.recommended == 3
    assert size.words[0] == "On average 1.01 requests/s × 2 s each keep 2.02 slots busy."
    assert "Replayed with what is recommended" in size.words[-1]


def test_forecasts_are_judged_with_what_was_known() -> None:
    named = setup("rpm=40")
    found = judge(lay_out(bursts(300), named), named, forecasts=10)
    assert found.n > 0
    assert found.inside_p90 is not None
    assert found.n < 300


def test_a_summary_bounds_what_it_lists() -> None:
    many = trace(*(Request(float(n), 1, 1, f"t{n}") for n in range(120)))
    found = summarise(play(lay_out(many, setup()), setup()))
    assert (len(found.tenants), found.tenants_left_out) == (50, 70)
