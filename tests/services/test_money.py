"""Money through dispatch and settlement: what is reserved, what is charged, and that no budget is ever exceeded."""

from __future__ import annotations

import json
from typing import Any

import pytest
from django.utils import timezone

from scheduler.models import Budget, Lease, LedgerEntry, Price, Task, Tenant
from scheduler.policy.types import LeasedTask, Outcome, PoolId, TenantId, WaitReason
from scheduler.services.settle import Report, settle
from tests.support.work import HandWorker, make_pool, make_tenant, submit_tasks

pytestmark = pytest.mark.django_db

USD = 1_000_000_000
CALL = {"model": "m-1", "messages": [{"role": "user", "content": "hello"}], "max_tokens": 1_000}


def make_price(model: str = "m-1", *, input_usd: int = 2, output_usd: int = 10, **fields: Any) -> None:
    values = {"input_nano": input_usd * USD, "output_nano": output_usd * USD, "valid_from": timezone.now()} | fields
    Price.objects.create(model=model, **values)


def make_llm_pool(slots: int = 50, **config: Any) -> PoolId:
    return make_pool(executor="llm", slots=slots, config={"base_url": "http://127.0.0.1:9", **config})


def submit_calls(tenant: TenantId, count: int = 1, **fields: Any) -> list[Any]:
    return submit_tasks(tenant, count, payload=json.dumps(CALL | fields.pop("call", {})), **fields)


def usage(output: int, *, input_: int = 20, source: str = "reported", **more: Any) -> str:
    return json.dumps({"input_uncached": input_, "output_visible": output, "source": source} | more)


def cost(output: int, input_: int = 20) -> int:
    return (2 * input_ + 10 * output) * USD // 1_000_000


def reserved_by(task: int) -> int:
    return Task.objects.values_list("cost_nano", flat=True).get(pk=task) or 0


def report(leased: LeasedTask, output: int) -> Report:
    return Report(leased.lease, Outcome.SUCCEEDED, result='"ok"', usage=usage(output))


def check_projections() -> None:
    """What every scenario must leave behind: budgets say what ledger and leases say, and are not exceeded."""
    for budget in Budget.objects.all():
        entries = LedgerEntry.objects.filter(budget_ids__contains=[budget.pk])
        leases = Lease.objects.filter(budget_ids__contains=[budget.pk])
        assert budget.spent_nano == sum(e.tenant_charge_nano for e in entries)
        assert budget.reserved_nano == sum(lease.reserved_nano or 0 for lease in leases)
        if budget.limit_nano is not None:
            assert budget.spent_nano + budget.reserved_nano <= budget.limit_nano


def test_a_start_reserves_the_most_it_may_cost_and_its_end_charges_what_it_used() -> None:
    make_price()
    tenant, pool = make_tenant(monthly_budget_nano=USD), make_llm_pool()
    (task,) = submit_calls(tenant)
    worker = HandWorker({pool: 1})
    (leased,) = worker.start()
    budget = Budget.objects.get()
    assert budget.reserved_nano == reserved_by(task) > cost(1_000)
    assert leased.max_output_tokens == 1_000
    assert settle([report(leased, 300)]).stale == ()
    budget.refresh_from_db()
    assert (budget.spent_nano, budget.reserved_nano) == (cost(300), 0)
    entry = LedgerEntry.objects.get()
    assert (entry.provider_cost_nano, entry.tenant_charge_nano, entry.outcome) == (cost(300), cost(300), "success")
    assert (entry.model, entry.usage_source, entry.price_source) == ("m-1", "reported", "operator")
    check_projections()


def test_fifty_calls_on_a_budget_for_three_start_three() -> None:
    make_price()
    tenant, pool = make_tenant(), make_llm_pool()
    tasks = submit_calls(tenant, 50)
    Tenant.objects.filter(pk=tenant).update(monthly_budget_nano=3 * reserved_by(tasks[0]))
    worker = HandWorker({pool: 50})
    done = worker.dispatch()
    assert len(done.leased) == 3
    assert done.holds[pool].reason is WaitReason.TENANT_BUDGET
    assert worker.start() == []
    budget = Budget.objects.get()
    assert budget.reserved_nano == budget.limit_nano
    # All of it is used: nothing is left, so nothing else starts.
    per_call = reserved_by(tasks[0])
    settle(
        [
            Report(each.lease, Outcome.SUCCEEDED, usage=json.dumps({"cost_usd": f"{per_call / USD:.9f}"}))
            for each in done.leased
        ]
    )
    assert worker.start() == []
    budget.refresh_from_db()
    assert budget.spent_nano == budget.limit_nano
    assert Task.objects.filter(state="ready").count() == 47
    check_projections()
