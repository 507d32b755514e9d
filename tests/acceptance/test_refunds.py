"""A worker that dies anywhere between claim and report refunds each order once, and its run goes on elsewhere."""

from __future__ import annotations

import json

import pytest

from scheduler.models import Attempt, Checkpoint, Task, TaskResult
from scheduler.policy.admission import RetrySettings, Submission
from scheduler.services.runs import create_run
from scheduler.services.submit import submit
from tests.acceptance.refunds import POINTS, payment_service
from tests.acceptance.site import Site, wait_for_all
from tests.support.waiting import wait_until
from tests.support.work import make_pool, make_tenant

pytestmark = pytest.mark.acceptance
AT_ONCE = RetrySettings(initial_backoff_s=0.0)


def test_each_order_is_refunded_once_wherever_the_worker_dies(site: Site) -> None:
    make_pool("refunds", slots=1, lease_ttl_s=1.0, config={"handler": "tests.acceptance.refunds:refund"})
    tenant = make_tenant()
    with payment_service() as payments:
        runs = {}
        for order, point in enumerate(POINTS, start=1):
            runs[point] = create_run(tenant, json.dumps({"order": order})).id
            payload = json.dumps({"order": order, "die": point, "url": payments.url})
            step = Submission(payload, pool="refunds", run=runs[point], writes=True, retry=AT_ONCE)
            submit(tenant, step)
        for _ in POINTS:
            with site.engine_coming_up() as doomed:
                wait_until(lambda d=doomed: d.process.poll() is not None, what="the worker to die")  # type: ignore[misc]  # mypy cannot infer a lambda with a default
        with site.engine() as engine:
            wait_for_all(timeout_s=180, said=[engine])
        assert len(payments.refunds) == len(POINTS), "exactly one refund for each key"
        assert payments.asked == len(POINTS) + 1, "only the one that died after paying asked twice, with the same key"
    assert Attempt.objects.filter(outcome="lost").count() == len(POINTS)
    assert Checkpoint.objects.count() == len(POINTS)
    results = {r["run"]: r for r in TaskResult.objects.values_list("result", flat=True)}
    assert {results[run]["receipt"]["refund"] for run in runs.values()} == set(range(1, len(POINTS) + 1))
    assert set(Task.objects.values_list("attempts", flat=True)) == {2}
