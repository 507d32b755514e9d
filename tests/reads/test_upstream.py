"""What a task is handed of those it came after: states, results, and the size of what is left out."""

from __future__ import annotations

from dataclasses import replace

import orjson
import pytest

from scheduler.policy.admission import RetrySettings, Submission
from scheduler.policy.graph import Dependency, EdgeCondition
from scheduler.policy.types import FailureClass, Outcome
from scheduler.policy.upstream import UPSTREAM_BYTES_MAX
from scheduler.reads.upstream import with_upstream
from scheduler.services.settle import Report, settle
from scheduler.services.submit import submit_batch
from tests.support.work import HandWorker, make_pool, make_tenant

pytestmark = pytest.mark.django_db

PLAIN = Submission("{}", pool="p", retry=RetrySettings(max_attempts=1))


def test_results_come_in_order_and_what_is_too_large_says_its_size() -> None:
    tenant = make_tenant()
    worker = HandWorker({make_pool(slots=20): 20})
    results = {
        "small": {"n": 1},
        # Random enough that storing it small does not make it small to send.
        "large": [f"{n * 7919 % 1_000_003:x}" for n in range(60_000)],
        "zeros": "0" * (UPSTREAM_BYTES_MAX + 1),
        "last": ["é", None],
    }
    parents = [replace(PLAIN, key=key) for key in [*results, "fails"]]
    after = tuple(Dependency(key, on=EdgeCondition.COMPLETE) for key in [*results, "fails"])
    submit_batch(tenant, [*parents, replace(PLAIN, key="child", after=after)])
    leased = {each.key: each for each in worker.start()}
    assert not any(each.has_parents for each in leased.values())
    settle(
        [
            Report(leased[key].lease, Outcome.SUCCEEDED, result=orjson.dumps(value).decode())
            for key, value in results.items()
        ]
    )
    worker.fail([leased["fails"]], FailureClass.PERMANENT)
    (child,) = with_upstream(worker.start())
    assert child.upstream is not None
    upstream = orjson.loads(child.upstream)
    assert list(upstream) == [*results, "fails"]
    assert upstream["small"] == {"state": "succeeded", "result": {"n": 1}}
    assert upstream["last"] == {"state": "succeeded", "result": ["é", None]}
    assert upstream["fails"] == {"state": "failed", "result": None}
    for key in ("large", "zeros"):
        assert upstream[key]["result"] is None
        assert upstream[key]["truncated"]["bytes"] > 100_000
    assert len(child.upstream) < UPSTREAM_BYTES_MAX


def test_one_that_is_picked_up_elsewhere_gets_them_too() -> None:
    tenant, pool = make_tenant(), make_pool()
    submit_batch(tenant, [replace(PLAIN, key="a"), replace(PLAIN, key="b", after=(Dependency("a"),))])
    worker = HandWorker({pool: 1})
    worker.succeed(worker.start())
    planner = HandWorker({})
    planner.dispatch()
    (child,) = with_upstream(worker.start())
    assert child.upstream == '{"a":{"state":"succeeded","result":"done"}}'
