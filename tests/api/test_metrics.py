"""The newest picture as Prometheus reads it."""

import re

import pytest

from scheduler.api.metrics import exposition
from scheduler.api.observing import visible_to
from scheduler.reads.snapshot import SnapshotRow, latest_snapshot
from scheduler.services.autoscale import autoscale
from scheduler.services.snapshot import take_snapshot
from tests.live import sample
from tests.support.work import make_bucket, make_pool, make_tenant, submit_tasks

LINE = re.compile(r"# (HELP|TYPE) cronoq_\w+ .+|cronoq_\w+(\{\w+=\"(\\.|[^\"\\])*\"(,\w+=\"(\\.|[^\"\\])*\")*\})? \S+")

BREAKER = {"closed": 1, "open": 0, "half_open": 0}


def test_a_token_of_a_tenant_sees_nothing_of_others_in_the_picture() -> None:
    money = {"spent_nano": 8, "allowed_nano": 10, "ends": 1.0}
    budgets = [{"tenant": name, **money} for name in ("acme", "globex")]
    body = sample.body(budgets=budgets, deaths=[{"tenant": "globex", "shape": "x"}], tally={"runs": 1}, later="globex")
    seen = visible_to(body, "acme")
    assert "globex" not in str(seen)
    assert "tally" not in seen
    assert [row["tenant"] for row in seen["budgets"]] == ["acme"]
    assert seen["spending"]["burn"] == 4_350_000_000
    assert visible_to(body, None) == body


@pytest.mark.django_db
def test_an_autoscaled_pool_exports_what_it_should_have() -> None:
    make_pool(autoscale={}, slots=4, slots_max=40)
    make_bucket("tokens", rate=2.0, burst=10.0)
    submit_tasks(make_tenant(), 300, resources={"tokens": 1.0})
    take_snapshot(None, {}, interval_s=1.0)
    autoscale()
    take_snapshot(None, {}, interval_s=1.0)
    text = exposition(latest_snapshot())
    assert 'cronoq_pool_desired{pool="p"} 3' in text
    assert 'cronoq_pool_demand_slots{pool="p"} 10' in text
    assert 'cronoq_pool_ceiling_slots{pool="p"} 2' in text
    assert all(LINE.fullmatch(line) for line in text.splitlines())


@pytest.mark.django_db
def test_a_real_picture_is_all_lines_that_prometheus_reads() -> None:
    tenant = make_tenant()
    make_pool()
    make_bucket("tokens", rate=1.0, burst=10.0)
    submit_tasks(tenant, 3, resources={"tokens": 1.0})
    take_snapshot(None, {}, interval_s=1.0)
    text = exposition(latest_snapshot())
    assert all(LINE.fullmatch(line) for line in text.splitlines())
    assert 'cronoq_pool_waiting{pool="p",class="normal"} 3' in text
    assert 'cronoq_resource_available{resource="tokens"} 10' in text
    assert 'cronoq_pool_paused{pool="p"} 0' in text
    assert 'cronoq_resource_factor{resource="tokens"} 1' in text
    states = [f'cronoq_resource_breaker{{resource="tokens",state="{s}"}} {n}' for s, n in BREAKER.items()]
    assert all(line in text for line in [*states, 'cronoq_resource_paused{resource="tokens"} 0'])
    names = [line.split()[2] for line in text.splitlines() if line.startswith("# TYPE")]
    assert len(names) == len(set(names))


def test_odd_pictures_do_no_harm() -> None:
    body: dict[str, object] = {
        "pools": [{"name": 'a"b\\c\n', "running": 1, "waiting": None}, "x", {"running": 2}],
        "resources": "none",
    }
    text = exposition(SnapshotRow(1, 2.0, body))
    assert 'cronoq_pool_running{pool="a\\"b\\\\c\\n"} 1' in text
    assert all(LINE.fullmatch(line) for line in text.splitlines())
    assert exposition(None).endswith("cronoq_up 0\n")
