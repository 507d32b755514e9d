"""Money through dispatch and settlement: what is reserved, what is charged, and that no budget is ever exceeded."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any

import pytest
from django.db import DatabaseError, connection, transaction
from django.utils import timezone

from scheduler.errors import Conflict, Refused
from scheduler.models import (
    Alert,
    Attempt,
    AuditEvent,
    Budget,
    EventFresh,
    Lease,
    LeaseCharge,
    LedgerEntry,
    Price,
    Task,
    Tenant,
)
from scheduler.policy.money import format_usd
from scheduler.policy.retry import Failure
from scheduler.policy.types import FailureClass, LeasedTask, Outcome, PoolId, TenantId, WaitReason
from scheduler.reads.why import why
from scheduler.services.changes import Author
from scheduler.services.reconcile import find_drift, repair
from scheduler.services.settle import Report, reap, settle
from scheduler.services.top_ups import add_top_up
from scheduler.services.using import charge_call
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


@pytest.mark.parametrize("outcome", [Outcome.SUCCEEDED, Outcome.LOST])
def test_calls_that_are_charged_while_an_attempt_runs_are_paid_however_it_ends(outcome: Outcome) -> None:
    make_price()
    make_price("m-2", input_usd=4, output_usd=20)
    tenant, pool = make_tenant(monthly_budget_nano=USD), make_llm_pool()
    (task,) = submit_calls(tenant)
    (leased,) = HandWorker({pool: 1}).start()
    used = json.loads(usage(10))
    assert charge_call(leased.lease, "one", used, tenant=tenant)
    assert not charge_call(leased.lease, "one", json.loads(usage(999)), tenant=tenant)
    assert charge_call(leased.lease, "two", used | {"model": "m-2"}, tenant=tenant)
    with pytest.raises(Conflict, match="not yours"):
        charge_call(leased.lease, "three", used, tenant=TenantId(tenant + 1))
    settle([Report(leased.lease, outcome, result='"ok"', failure=Failure(FailureClass.LOST, "gone"))])
    lines = LedgerEntry.objects.filter(task_id=task).order_by("line")
    assert [(e.line, e.model, e.tenant_charge_nano) for e in lines] == [(2, "m-1", cost(10)), (3, "m-2", 2 * cost(10))]
    assert Attempt.objects.get(task_id=task).usage == used | {"input_uncached": 40, "output_visible": 20}
    assert not LeaseCharge.objects.exists()
    with pytest.raises(Conflict, match="nothing was charged"):
        charge_call(leased.lease, "late", used, tenant=tenant)
    check_projections()


def test_charges_that_cannot_be_kept_are_refused_with_a_sentence() -> None:
    tenant, pool = make_tenant(), make_pool()
    submit_tasks(tenant, 1)
    (leased,) = HandWorker({pool: 1}).start()
    for call, used, code in (("", {}, "bad_call"), ("a", [1], "bad_usage"), ("a", {"x": "y" * 20_000}, "bad_usage")):
        with pytest.raises(Refused) as refused:
            charge_call(leased.lease, call, used, tenant=tenant)
        assert refused.value.code == code
    LeaseCharge.objects.bulk_create(LeaseCharge(lease_id=leased.lease, call=f"{n}", usage={}) for n in range(1_000))
    with pytest.raises(Refused, match="1,000 calls at most"):
        charge_call(leased.lease, "one more", {"a": 1}, tenant=tenant)
    assert not charge_call(leased.lease, "7", {"a": 1}, tenant=tenant)


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


def test_the_last_call_is_cut_short_to_what_is_left_if_that_is_worth_it() -> None:
    make_price()
    tenant, pool = make_tenant(), make_llm_pool()
    tasks = submit_calls(tenant, 3)
    whole = reserved_by(tasks[0])
    Tenant.objects.filter(pk=tenant).update(monthly_budget_nano=whole + whole // 2)
    first, second = HandWorker({pool: 50}).dispatch().leased
    assert first.max_output_tokens == 1_000
    assert second.max_output_tokens is not None
    assert 250 <= second.max_output_tokens < 500
    check_projections()


def test_without_a_limit_nothing_is_cut_and_what_is_spent_is_known() -> None:
    make_price()
    tenant, pool = make_tenant(), make_llm_pool()
    submit_calls(tenant)
    (leased,) = HandWorker({pool: 1}).dispatch().leased
    assert leased.max_output_tokens is None
    settle([report(leased, 5_000)])
    assert Budget.objects.get().spent_nano == cost(5_000)
    check_projections()


def test_no_budget_pays_more_than_it_has_whatever_the_provider_bills() -> None:
    make_price()
    tenant, pool = make_tenant(), make_llm_pool()
    (task,) = submit_calls(tenant)
    limit = reserved_by(task)
    Tenant.objects.filter(pk=tenant).update(monthly_budget_nano=limit)
    (leased,) = HandWorker({pool: 1}).dispatch().leased
    settle([report(leased, 90_000)])
    entry, budget = LedgerEntry.objects.get(), Budget.objects.get()
    assert (entry.provider_cost_nano, entry.tenant_charge_nano, budget.spent_nano) == (cost(90_000), limit, limit)
    check_projections()


def test_a_repeated_report_is_charged_once() -> None:
    make_price()
    tenant, pool = make_tenant(), make_llm_pool()
    submit_calls(tenant)
    (leased,) = HandWorker({pool: 1}).dispatch().leased
    settle([report(leased, 10)])
    assert settle([report(leased, 10)]).stale == (leased.lease,)
    assert LedgerEntry.objects.count() == 1
    check_projections()


def test_a_worker_that_dies_is_charged_for_its_input_and_frees_the_rest() -> None:
    make_price()
    tenant, pool = make_tenant(monthly_budget_nano=USD), make_llm_pool(max_attempts=1)
    submit_calls(tenant)
    HandWorker({pool: 1}).dispatch()
    with connection.cursor() as cursor:
        cursor.execute("UPDATE lease SET expires_at = now() - interval '1 second', started_at = now() - interval '4 s'")
    assert reap() == 1
    entry, budget = LedgerEntry.objects.get(), Budget.objects.get()
    assert (entry.usage_source, entry.outcome) == ("unknown", "waste")
    assert cost(150) < entry.tenant_charge_nano < cost(1_000)
    assert (budget.spent_nano, budget.reserved_nano) == (entry.tenant_charge_nano, 0)
    check_projections()


@pytest.mark.parametrize(
    ("outcome", "said", "charged"),
    [
        (Outcome.FAILED, None, False),
        (Outcome.FAILED, usage(40, source="estimated"), True),
        (Outcome.CANCELLED, None, True),
        (Outcome.RELEASED, None, False),
        (Outcome.TIMED_OUT, None, True),
    ],
    ids=["refused", "stream cut", "stopped", "handed back", "timed out"],
)
def test_how_an_attempt_ended_decides_what_it_is_charged(outcome: Outcome, said: str | None, charged: bool) -> None:
    make_price()
    tenant, pool = make_tenant(monthly_budget_nano=USD), make_llm_pool()
    submit_calls(tenant)
    (leased,) = HandWorker({pool: 1}).dispatch().leased
    failure = Failure(FailureClass.ERROR, "it broke") if outcome in (Outcome.FAILED, Outcome.TIMED_OUT) else None
    settle([Report(leased.lease, outcome, failure, usage=said)])
    assert (Budget.objects.get().spent_nano > 0) is charged
    assert Budget.objects.get().reserved_nano == 0
    assert LedgerEntry.objects.filter(outcome="waste").exists() is charged
    check_projections()


def test_a_model_without_a_price_is_refused_with_what_to_do() -> None:
    tenant = make_tenant()
    make_llm_pool()
    with pytest.raises(Refused, match=r"POST /prices") as refused:
        submit_calls(tenant)
    assert refused.value.code == "unknown_price"
    assert not Task.objects.exists()


def test_a_pools_ceiling_stands_in_for_a_price() -> None:
    tenant = make_tenant(monthly_budget_nano=USD)
    pool = make_llm_pool(ceiling_input_usd_per_mtok="2", ceiling_output_usd_per_mtok="10")
    submit_calls(tenant)
    (leased,) = HandWorker({pool: 1}).dispatch().leased
    settle([report(leased, 100)])
    entry = LedgerEntry.objects.get()
    assert (entry.tenant_charge_nano, entry.price_source) == (cost(100), "ceiling")


def test_a_free_model_runs_on_an_empty_budget_and_its_success_is_counted() -> None:
    make_price()
    make_price("local", input_usd=0, output_usd=0)
    tenant, pool = make_tenant(monthly_budget_nano=0), make_llm_pool()
    submit_calls(tenant, 3)
    (free,) = submit_calls(tenant, call={"model": "local"})
    worker = HandWorker({pool: 50})
    (leased,) = worker.start()
    assert leased.task == free
    settle([report(leased, 100)])
    entry = LedgerEntry.objects.get()
    assert (entry.provider_cost_nano, entry.outcome, entry.budget_ids) == (0, "success", [])


def test_prices_follow_their_validity_from_start_to_start() -> None:
    now = timezone.now()
    make_price(valid_from=now - timedelta(days=9), valid_to=now + timedelta(hours=1))
    make_price(input_usd=200, output_usd=1_000, valid_from=now + timedelta(hours=1))
    tenant, pool = make_tenant(), make_llm_pool()
    submit_calls(tenant)
    (leased,) = HandWorker({pool: 1}).dispatch().leased
    # The dearer price begins while it runs: what counts is its start.
    Price.objects.filter(input_nano=200 * USD).update(valid_from=timezone.now())
    Price.objects.filter(input_nano=2 * USD).update(valid_to=timezone.now())
    settle([report(leased, 100)])
    assert LedgerEntry.objects.get().provider_cost_nano == cost(100)


def test_the_model_that_answered_is_the_one_that_is_paid() -> None:
    make_price()
    make_price("m-2", input_usd=20, output_usd=100)
    tenant, pool = make_tenant(), make_llm_pool()
    submit_calls(tenant)
    (leased,) = HandWorker({pool: 1}).dispatch().leased
    settle([Report(leased.lease, Outcome.SUCCEEDED, usage=usage(100, model="m-2"))])
    entry = LedgerEntry.objects.get()
    assert (entry.model, entry.provider_cost_nano) == ("m-2", 10 * cost(100))


def test_a_task_may_name_the_most_that_it_costs() -> None:
    make_price()
    tenant, pool = make_tenant(), make_llm_pool()
    (capped,) = submit_calls(tenant, max_cost_nano=cost(400, 300))
    assert reserved_by(capped) == cost(400, 300)
    with pytest.raises(Refused) as refused:
        submit_calls(tenant, max_cost_nano=1)
    assert refused.value.code == "max_cost_too_low"
    plain = make_pool("plain")
    submit_tasks(tenant, pool="plain", max_cost_nano=USD)
    worker = HandWorker({plain: 1, pool: 1})
    for leased in worker.start():
        settle([Report(leased.lease, Outcome.SUCCEEDED)])
    assert LedgerEntry.objects.get(pool_id=plain).tenant_charge_nano == USD
    check_projections()


@pytest.mark.parametrize(("outcome", "said"), [(Outcome.SUCCEEDED, "success"), (Outcome.FAILED, "waste")])
def test_a_workers_time_is_charged_and_nothing_else_whatever_came_of_it(outcome: Outcome, said: str) -> None:
    tenant, pool = make_tenant(monthly_budget_nano=USD), make_pool(worker_second_nano=1_000_000, timeout_s=60.0)
    submit_tasks(tenant)
    worker = HandWorker({pool: 1})
    (leased,) = worker.start()
    assert Budget.objects.get().reserved_nano == 60_000_001
    with connection.cursor() as cursor:
        cursor.execute("UPDATE lease SET started_at = now() - interval '5 seconds'")
    settle([Report(leased.lease, outcome)])
    entry = LedgerEntry.objects.get()
    assert (entry.line, entry.outcome) == (1, said)
    assert 5_000_000 <= entry.tenant_charge_nano < 60_000_000
    check_projections()


def test_the_ledger_cannot_be_changed() -> None:
    make_price()
    tenant, pool = make_tenant(), make_llm_pool()
    submit_calls(tenant)
    (leased,) = HandWorker({pool: 1}).dispatch().leased
    settle([report(leased, 10)])
    for act in (lambda: LedgerEntry.objects.update(tenant_charge_nano=0), lambda: LedgerEntry.objects.all().delete()):
        with pytest.raises(DatabaseError, match="append-only"), transaction.atomic():
            act()


def test_a_task_that_waits_for_money_says_so() -> None:
    make_price()
    tenant, pool = make_tenant(monthly_budget_nano=1), make_llm_pool()
    (task,) = submit_calls(tenant)
    HandWorker({pool: 1}).dispatch()
    reason = next(each for each in why(task, tenant).reasons if each.code == "tenant_budget")
    assert "0.000000001" in reason.text
    assert reason.detail["spent_usd"] == "0.00"


def test_a_threshold_is_told_once_and_a_raised_limit_lets_work_go_on() -> None:
    make_price()
    tenant, pool = make_tenant(), make_llm_pool()
    tasks = submit_calls(tenant, 6)
    per_call = reserved_by(tasks[0])
    Tenant.objects.filter(pk=tenant).update(monthly_budget_nano=5 * per_call)
    worker = HandWorker({pool: 50})
    for leased in worker.dispatch().leased:
        settle([Report(leased.lease, Outcome.SUCCEEDED, usage=json.dumps({"cost_usd": format_usd(per_call)}))])
    assert list(Alert.objects.order_by("threshold").values_list("threshold", "spent_nano")) == [
        (0.8, 4 * per_call),
        (1.0, 5 * per_call),
    ]
    assert worker.start() == []
    add_top_up("acme", per_call, Author("test", reason="a launch"), for_s=60.0)
    assert [leased.task for leased in worker.dispatch().leased] == [tasks[5]]
    assert AuditEvent.objects.filter(action="budget.top_up").count() == 1
    assert Alert.objects.count() == 2
    told = list(EventFresh.objects.filter(type="alert.budget").order_by("id"))
    assert [each.data["threshold"] for each in told if each.data is not None] == [0.8, 1.0]
    assert {each.tenant_id for each in told} == {tenant}


def test_a_new_month_begins_with_a_new_budget_and_an_old_reservation_stays_in_its_own() -> None:
    make_price()
    tenant, pool = make_tenant(time_zone="Asia/Tokyo"), make_llm_pool()
    tasks = submit_calls(tenant, 4)
    Tenant.objects.filter(pk=tenant).update(monthly_budget_nano=2 * reserved_by(tasks[0]))
    worker = HandWorker({pool: 50})
    first = worker.dispatch().leased
    assert len(first) == 2
    # The month ends while they run.
    end = timezone.now() - timedelta(seconds=1)
    Budget.objects.update(period_end=end, period_start=end - timedelta(days=30))
    assert len(worker.dispatch().leased) == 2
    old, new = Budget.objects.order_by("period_start")
    assert (new.period_start, new.reserved_nano) == (old.period_end, old.reserved_nano)
    settle([report(leased, 10) for leased in first])
    old.refresh_from_db()
    assert (old.spent_nano, old.reserved_nano) == (2 * cost(10), 0)
    assert Budget.objects.get(pk=new.pk).spent_nano == 0
    check_projections()


def test_books_that_disagree_are_found_and_corrected() -> None:
    make_price()
    tenant, pool = make_tenant(), make_llm_pool()
    submit_calls(tenant, 2)
    one, _ = HandWorker({pool: 2}).dispatch().leased
    settle([report(one, 10)])
    assert find_drift() == []
    Budget.objects.update(spent_nano=5, reserved_nano=7)
    (drift,) = find_drift()
    assert (drift.said_spent, drift.spent) == (5, cost(10))
    assert repair([drift], actor="test") == [drift]
    assert find_drift() == []
    assert AuditEvent.objects.get(action="budget.repair").before == {"spent_nano": 5, "reserved_nano": 7}
    check_projections()
