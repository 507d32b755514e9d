"""What operators do to a tenant: edits with both versions shown, suspending, budgets, and top-ups that add once."""

from __future__ import annotations

import pytest
from django.test import Client

from scheduler.models import AuditEvent, Tenant, TopUp
from scheduler.reads.money import budget_detail
from scheduler.services.tenants import edit_tenant
from tests.support.books import USD
from tests.support.work import make_tenant
from tests.web.conftest import SignIn, WithPermissions
from tests.web.test_tenants import text

AT = "/ops/tenants/acme/"


@pytest.fixture
def admin(with_permissions: WithPermissions) -> Client:
    make_tenant(monthly_budget_nano=100 * USD)
    names = ("view_console", "edit_tenant", "edit_budget", "top_up_budget")
    return with_permissions({f"scheduler.{name}" for name in names})


def tenant() -> Tenant:
    return Tenant.objects.get(slug="acme")


def post(client: Client, action: str, status: int = 303, /, **fields: str) -> str:
    response = client.post(f"{AT}{action}/", fields)
    assert response.status_code == status, response.content.decode()[:2000]
    return response.content.decode()


def undo(client: Client) -> None:
    """Press Undo in the notice."""
    toast = client.session["toast"]["undo"]
    assert client.post(toast["url"], {"reason": toast["reason"], **toast["values"]}).status_code == 303


def test_limits_are_edited_and_the_edit_is_undone(admin: Client) -> None:
    page = text(admin, f"{AT}edit/")
    assert 'name="weight"' in page
    post(
        admin,
        "save",
        version="1",
        weight="2.5",
        max_in_flight="7",
        max_cost_per_run_usd="1.25",
        start_rate="",
        reason="x",
    )
    now = tenant()
    assert (now.weight, now.max_in_flight, now.max_cost_per_run_nano) == (2.5, 7, 1_250_000_000)
    undo(admin)
    now = tenant()
    assert (now.weight, now.max_in_flight, now.max_cost_per_run_nano, now.version) == (1.0, None, None, 3)
    assert AuditEvent.objects.filter(action="tenant.edit", source="ui").count() == 2


def test_an_edit_that_came_too_late_shows_both_versions(admin: Client) -> None:
    edit_tenant("acme", 1, {"weight": 4.0}, actor="ada", reason="a launch")
    page = post(admin, "save", 409, version="1", weight="2")
    assert "Somebody was faster" in page
    assert "a launch" in page
    assert "<b>2</b>" in page
    assert tenant().weight == 4.0
    post(admin, "save", version="2", weight="2")
    assert tenant().weight == 2.0


@pytest.mark.parametrize(
    ("field", "value", "says"),
    [
        ("weight", "heavy", "Write a number"),
        ("weight", "", "Write a number"),
        ("weight", "-1", "weight must be from 0"),
        ("max_in_flight", "1.5", "Write a whole number"),
        ("time_zone", "Mars", "is not the name of a time zone"),
        ("max_cost_per_run_usd", "cheap", "Write an amount of dollars"),
    ],
)
def test_what_cannot_be_is_said_beside_its_field(admin: Client, field: str, value: str, says: str) -> None:
    page = post(admin, "save", 422, version="1", **{field: value})
    assert says in page
    assert f'id="{field}-fault"' in page
    assert f'value="{value}"' in page
    assert tenant().version == 1


def test_an_effect_is_shown_and_nothing_is_changed(admin: Client) -> None:
    page = post(admin, "preview", 200, version="1", weight="9")
    assert "What it would do" in page
    assert 'value="9"' in page
    assert tenant().weight == 1.0


def test_a_tenant_is_suspended_for_a_reason_and_resumed(admin: Client) -> None:
    assert "Say why" in post(admin, "suspend", 422, reason=" ")
    post(admin, "suspend", reason="unpaid")
    assert tenant().status == "suspended"
    assert "Resume acme" in text(admin, AT)
    post(admin, "suspend", reason="again")
    assert tenant().version == 2


def test_suspending_is_undone(admin: Client) -> None:
    post(admin, "suspend", reason="unpaid")
    undo(admin)
    assert tenant().status == "active"


def test_a_budget_is_set_and_the_old_one_comes_back(admin: Client) -> None:
    assert "Say why" in post(admin, "budget/save", 422, version="1", limit="50")
    post(
        admin, "budget/save", version="1", limit="$1,250.50", alert_at="50, 90%", success_target="0.02", reason="grown"
    )
    now = tenant()
    assert (now.monthly_budget_nano, now.alert_at, now.success_target_nano) == (
        1_250_500_000_000,
        [0.5, 0.9],
        20_000_000,
    )
    assert budget_detail("acme", None).limit == 1_250_500_000_000
    undo(admin)
    now = tenant()
    assert (now.monthly_budget_nano, now.alert_at, now.success_target_nano) == (100 * USD, [0.8, 1.0], None)
    assert "Somebody was faster" in post(admin, "budget/save", 409, version="1", limit="1", reason="late")
    assert 'id="alert_at-fault"' in post(admin, "budget/save", 422, version="3", alert_at="120", reason="x")
    assert 'id="limit-fault"' in post(admin, "budget/save", 422, version="3", limit="lots", reason="x")


def test_a_top_up_adds_once_however_often_its_form_is_sent(admin: Client) -> None:
    form = {"amount": "5", "lasts": "3600", "why": "a launch", "form": "f-1"}
    post(admin, "top-up", **form)
    post(admin, "top-up", **form)
    assert budget_detail("acme", None).limit == 105 * USD
    page = text(admin, AT)
    assert "+ $5.00" in page
    assert "“a launch”" in page
    post(admin, "top-up", **{**form, "form": "f-2", "lasts": "period"})
    assert budget_detail("acme", None).limit == 110 * USD
    undo(admin)
    assert budget_detail("acme", None).limit == 105 * USD
    post(admin, f"top-ups/{TopUp.objects.earliest('id').pk}/end")
    assert budget_detail("acme", None).limit == 100 * USD
    assert "over since" in text(admin, AT)


def test_a_top_up_that_says_too_little_keeps_what_was_typed(admin: Client) -> None:
    page = post(admin, "top-up", 422, amount="much", lasts="3600", why="", form="f-1")
    assert 'id="amount-fault"' in page
    assert 'id="why-fault"' in page
    assert 'value="much"' in page
    assert 'id="amount-fault"' in post(admin, "top-up", 422, amount="", lasts="x", why="y")
    assert not TopUp.objects.exists()


def test_what_is_not_there_is_not_found(admin: Client) -> None:
    for action in ("edit", "budget"):
        assert admin.get(f"/ops/tenants/nobody/{action}/").status_code == 404
    for action in ("save", "preview", "suspend", "resume", "budget/save", "top-up"):
        form = {"reason": "x", "amount": "1", "lasts": "3600", "why": "y", "version": "1"}
        assert admin.post(f"/ops/tenants/nobody/{action}/", form).status_code == 404, action
    assert admin.post(f"{AT}top-ups/999/end/").status_code == 404


def test_who_may_only_look_sees_what_it_takes(signed_in: SignIn) -> None:
    make_tenant(monthly_budget_nano=USD)
    page = text(signed_in("viewer"), AT)
    assert '<button class="strong">Top up' not in page
    assert all(name in page for name in ("scheduler.edit_tenant", "scheduler.edit_budget", "scheduler.top_up_budget"))
