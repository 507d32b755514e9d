"""Settings from files and words: what they come to, and that every fault is named by its key."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path

import pytest

from scheduler.policy.types import PriorityClass
from scheduler.replay.faults import ReplayRefused
from scheduler.replay.reading import parse_price, parse_setup, read_file, variant, with_words
from scheduler.replay.settings import Counts, LimitModel, Price, TenantModel
from tests.replay.traffic import setup

WHOLE = """
seed = 7
assign = "content"
[pools.chat]
slots = 8
seconds_per_output_token = 0.01
needs = ["rate"]
[pools.batch]
needs = []
[limits.rate]
requests_per_minute = 120
margin = 0
[limits.size]
tokens_per_minute = 60000
burst = 5000
ceilings = {low = 0.25}
[tenants.acme]
weight = 3
start_rate = 2
max_in_flight = 4
[classes.high]
share = 1
slo_s = 2
[price]
input_usd_per_mtok = 0.15
output_usd_per_mtok = "0.60"
"""


LOW_LEAVES = {PriorityClass.LOW: 0.25}


def test_a_file(tmp_path: Path) -> None:
    path = tmp_path / "s.toml"
    path.write_text(WHOLE, encoding="utf-8")
    found = parse_setup("s", read_file(path))
    assert (found.pool, found.seed, found.by_content, list(found.pools)) == ("chat", 7, True, ["chat", "batch"])
    assert (found.needs("chat"), found.needs("batch")) == (("rate",), ())
    assert found.limits["rate"] == LimitModel(counts=Counts.REQUESTS, per_minute=120.0, burst=2.0, margin=0.0)
    assert found.limits["size"] == LimitModel(
        counts=Counts.TOKENS, per_minute=60_000.0, burst=5_000.0, ceilings=LOW_LEAVES
    )
    assert found.tenants["acme"] == TenantModel(weight=3.0, start_rate=2.0, max_in_flight=4)
    assert found.tenants["acme"].burst == 2.0
    assert found.classes[PriorityClass.HIGH].slo_s == 2.0
    assert found.price == Price(input=Decimal("0.15"), output=Decimal("0.60"))


def test_short_words_and_variants() -> None:
    found = setup("rpm=60", "tpm=1000", "concurrency=3", "slots=5", "tenants.a.weight=2")
    assert [limit.counts for limit in found.limits.values()] == [Counts.REQUESTS, Counts.TOKENS, Counts.CONCURRENCY]
    assert (found.pools["llm"].slots, found.tenants["a"].weight) == (5, 2.0)
    tree = with_words({}, ["rpm=60"])
    name, changed = variant(tree, "twice:rpm=120,slots=4")
    assert name == "twice"
    assert parse_setup(name, changed).limits["requests"].per_minute == 120.0
    assert parse_setup("base", tree).limits["requests"].per_minute == 60.0


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["slots=0"], "pools.llm.slots: '0' must be a whole number"),
        (["slots=nan"], "pools.llm.slots: 'nan' must be a whole number"),
        (["pools.llm.colour=red"], "pools.llm.colour: is not known; there are:"),
        (["colour=red"], "colour: is not known"),
        (["limits.x.burst=3"], "limits.x.: needs one of"),
        (["limits.concurrency.burst=3", "concurrency=2"], "burst: is of no use"),
        (["rpm=-1"], "requests_per_minute: '-1' must be a number"),
        (["classes.urgent.share=1"], "classes.urgent: there are critical"),
        (["tenants.ACME.weight=1"], "tenants.ACME: A slug has"),
        (["tenants.a.share=0"], "no tenant has a share"),
        (["tenants.a.start_rate=fast"], "tenants.a.start_rate: 'fast' must be a number from 0"),
        (
            ["tenants.a.start_rate=1", "tenants.a.start_burst=0.5"],
            "tenants.a.start_burst: '0.5' must be a number from 1",
        ),
        (["tenants.a.start_burst=5"], "tenants.a.start_burst: goes with a start_rate; give both or neither"),
        (["tenants.a.max_in_flight=2.5"], "tenants.a.max_in_flight: '2.5' must be a whole number"),
        (
            ["rpm=60", "limits.requests.ceilings.low=1"],
            "limits.requests.ceilings.low: '1' must be a number from 0 to 0.99",
        ),
        (
            ["rpm=60", "limits.requests.ceilings.urgent=0.1"],
            "requests.ceilings.urgent: is not known; there are: crit",
        ),
        (["rpm=60", "limits.requests.ceilings=0.1"], "limits.requests.ceilings: must be a table of classes"),
        (["concurrency=2", "limits.concurrency.ceilings.low=0.1"], "ceilings: are of no use to a concurrency"),
        (["pools.llm=5"], "pools.llm: must be a table"),
        (["pools=5"], "pools: must be a table"),
        (["price=5"], "price: must be a table"),
        (["assign=alphabet"], "assign: 'alphabet' must be one of"),
        (["price.input_usd_per_mtok=1", "price.output_usd_per_mtok=NaN"], "price.output_usd_per_mtok: 'NaN' must be"),
        (["rpm"], "must look like key=value"),
        (["slots=1", "pools.llm.slots.x=1"], "slots is no table"),
    ],
)
def test_faults_are_named(words: list[str], said: str) -> None:
    with pytest.raises(ReplayRefused) as refused:
        setup(*words)
    assert said in str(refused.value)


def test_a_pool_cannot_need_what_is_not_there() -> None:
    with pytest.raises(ReplayRefused, match="there is no limit 'rate'"):
        parse_setup("s", {"pools": {"p": {"needs": ["rate"]}}})
    with pytest.raises(ReplayRefused, match="must be a list"):
        parse_setup("s", {"pools": {"p": {"needs": "rate"}}})


def test_files_and_prices_that_are_none(tmp_path: Path) -> None:
    (tmp_path / "s.toml").write_text("a = ", encoding="utf-8")
    with pytest.raises(ReplayRefused, match="is no TOML"):
        read_file(tmp_path / "s.toml")
    with pytest.raises(ReplayRefused, match="cannot be read"):
        read_file(tmp_path / "none.toml")
    with pytest.raises(ReplayRefused, match="must look like input="):
        parse_price("0.15")
    with pytest.raises(ReplayRefused, match="must look like NAME"):
        variant({}, "rpm=120")
