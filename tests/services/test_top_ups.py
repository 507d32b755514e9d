"""More to spend for a while: it counts where work starts, ends by itself, and is never passed."""

from __future__ import annotations

from datetime import timedelta
from random import Random

import pytest
from django.utils import timezone

from scheduler.errors import NotFound, Refused
from scheduler.models import Alert, AuditEvent, Budget, Lease, Tenant, TopUp
from scheduler.policy.types import LeasedTask, LeaseId, Outcome, TenantId
from scheduler.reads.money import budget_detail
from scheduler.reads.spending import list_top_ups
from scheduler.services.budgets import edit_budget
from scheduler.services.changes import Author
from scheduler.services.reconcile import find_drift
from scheduler.services.settle import Report, settle
from scheduler.services.top_ups import AT_ONCE_MAX, add_top_up, end_top_up
from tests.services.test_money import make_llm_pool, make_price, reserved_by, submit_calls, usage
from tests.support.work import HandWorker, make_tenant

pytestmark = pytest.mark.django_db

USD = 1_000_000_000
ADA = Author("ada", reason="a launch")


def limit_of(slug: str = "acme") -> int | None:
    return budget_detail(slug, None).limit


def expire(top_up: int) -> None:
    """Let its time be over, as the clock would."""
    past = timezone.now() - timedelta(seconds=1)
    TopUp.objects.filter(pk=top_up).update(starts_at=past - timedelta(hours=1), ends_at=past)
    budget = TopUp.objects.get(pk=top_up).budget_id
    row = Budget.objects.get(pk=budget)
    ends = dict(TopUp.objects.filter(budget_id=budget, ended_at=None).values_list("pk", "ends_at"))
    amounts = dict(TopUp.objects.filter(budget_id=budget).values_list("pk", "amount_nano"))
    row.top_up_nanos, row.top_up_untils = [amounts[each] for each in ends], list(ends.values())
    row.save()


def test_top_ups_add_up_and_end_one_by_one() -> None:
    make_tenant(monthly_budget_nano=10 * USD)
    short = add_top_up("acme", USD, ADA, for_s=60.0)
    long = add_top_up("acme", 2 * USD, ADA, for_s=3_600.0)
    assert limit_of() == 13 * USD
    assert budget_detail("acme", None).top_up_until == short.ends_at
    expire(short.id)
    assert limit_of() == 12 * USD  # nobody did anything
    assert end_top_up("acme", long.id, ADA).in_force is False
    assert limit_of() == 10 * USD
    assert Budget.objects.get().top_up_nanos is None
    assert end_top_up("acme", long.id, ADA).ended_at is not None  # and again: nothing changes
    assert [row.id for row in list_top_ups("acme", None, rows_max=5)] == [long.id, short.id]
    actions = AuditEvent.objects.order_by("id").values_list("action", "reason")
    assert list(actions) == [("budget.top_up", "a launch")] * 2 + [("budget.end_top_up", "a launch")]


def test_a_top_up_ends_with_its_period_and_the_next_begins_without_it() -> None:
    make_tenant(monthly_budget_nano=10 * USD)
    added = add_top_up("acme", USD, ADA, for_s=300 * 86_400.0)
    assert added.ends_at == budget_detail("acme", None).ends_at
    month = timedelta(days=62)
    Budget.objects.update(period_start=timezone.now() - month, period_end=timezone.now() - timedelta(days=1))
    assert limit_of() == 10 * USD


@pytest.mark.parametrize(
    ("amount", "how", "author"),
    [
        (0, {"for_s": 60.0}, ADA),
        (10**19, {"for_s": 60.0}, ADA),
        (USD, {}, ADA),
        (USD, {"for_s": 60.0, "until": 4e9}, ADA),
        (USD, {"until": 1.0}, ADA),
        (USD, {"until": 4e9}, ADA),
        (USD, {"for_s": 0.0}, ADA),
        (USD, {"for_s": 60.0}, Author("ada", reason=" ")),
    ],
)
def test_a_top_up_that_says_too_little_is_refused(amount: int, how: dict[str, float], author: Author) -> None:
    make_tenant(monthly_budget_nano=10 * USD)
    with pytest.raises(Refused):
        add_top_up("acme", amount, author, until=how.get("until"), for_s=how.get("for_s"))
    assert not TopUp.objects.exists()


def test_what_has_no_limit_is_not_topped_up_nor_what_is_not_there() -> None:
    make_tenant()
    make_tenant("globex", monthly_budget_nano=USD)
    with pytest.raises(Refused, match="no limit"):
        add_top_up("acme", USD, ADA, for_s=60.0)
    other = add_top_up("globex", USD, ADA, for_s=60.0)
    for slug, top_up in (("acme", other.id), ("globex", 0), ("nobody", other.id)):
        with pytest.raises(NotFound):
            end_top_up(slug, top_up, ADA)


def test_there_is_a_bound_to_how_many_there_are_at_once() -> None:
    make_tenant(monthly_budget_nano=USD)
    for _ in range(AT_ONCE_MAX):
        add_top_up("acme", USD, ADA, for_s=60.0)
    with pytest.raises(Refused, match="at most 20"):
        add_top_up("acme", USD, ADA, for_s=60.0)
    assert TopUp.objects.count() == AT_ONCE_MAX


def test_thresholds_are_those_of_the_limit_with_its_top_ups() -> None:
    make_tenant(monthly_budget_nano=10 * USD)
    edit_budget("acme", 1, {"limit": 10 * USD}, actor="ada")
    Budget.objects.update(spent_nano=9 * USD)
    added = add_top_up("acme", 10 * USD, ADA, for_s=60.0)
    assert not Alert.objects.exists()
    end_top_up("acme", added.id, ADA)
    assert list(Alert.objects.values_list("threshold", "limit_nano")) == [(0.8, 10 * USD)]


def submitted(calls: int) -> tuple[TenantId, HandWorker, int]:
    """A tenant with so many calls, and what each of them reserves."""
    make_price()
    tenant, pool = make_tenant(), make_llm_pool(max_attempts=1)
    per_call = reserved_by(submit_calls(tenant, calls)[0])
    Tenant.objects.filter(pk=tenant).update(monthly_budget_nano=2 * per_call)
    return tenant, HandWorker({pool: 50}), per_call


def test_work_starts_while_it_lasts_and_stops_when_it_is_over() -> None:
    _, worker, per_call = submitted(8)
    assert len(worker.start()) == 2
    added = add_top_up("acme", 3 * per_call, ADA, for_s=3_600.0)
    assert len(worker.start()) == 3
    expire(added.id)
    assert worker.start() == []
    leases = [LeaseId(lease) for lease in Lease.objects.values_list("pk", flat=True)]
    settle([Report(lease, Outcome.SUCCEEDED, usage=usage(1)) for lease in leases])
    assert worker.dispatch().leased != ()  # little was spent of the limit itself


@pytest.mark.parametrize("seed", range(4))
def test_what_is_spent_and_reserved_never_passes_limit_and_top_ups(seed: int) -> None:
    """Nothing that starts or is charged goes beyond what is allowed then; what is over is taken from nobody."""
    chance = Random(seed)
    _, worker, per_call = submitted(60)
    running: list[LeasedTask] = []
    live: list[int] = []
    used = 0
    for _ in range(40):
        step = chance.choice(["start", "start", "end", "add", "drop", "expire"])
        if step == "start":
            running += worker.dispatch(chance.randint(1, 5)).leased
        elif step == "end" and running:
            leased = running.pop(chance.randrange(len(running)))
            settle([Report(leased.lease, Outcome.SUCCEEDED, usage=usage(chance.choice([1, 500, 90_000])))])
        elif step == "add":
            live.append(add_top_up("acme", chance.randint(1, 2 * per_call), ADA, for_s=3_600.0).id)
        elif step in {"drop", "expire"} and live:
            top_up = live.pop(chance.randrange(len(live)))
            expire(top_up) if step == "expire" else end_top_up("acme", top_up, ADA)
        budget = budget_detail("acme", None)
        before, used = used, budget.spent + budget.reserved
        assert budget.limit == 2 * per_call + sum(TopUp.objects.get(pk=each).amount_nano for each in live)
        assert used <= max(budget.limit, before), step
        if step == "start" and used > before:
            assert used <= budget.limit
    assert find_drift() == []
