"""Budgets, prices, costs and alerts over REST."""

from __future__ import annotations

import httpx2
import pytest

from scheduler.models import AuditEvent
from tests.api.conftest import Site

CALL = {"pool": "llm", "payload": {"model": "priced-1", "messages": [{"role": "user", "content": "hello"}]}}


def test_a_price_is_added_used_and_edited(admin: httpx2.Client, api: httpx2.Client) -> None:
    price = {"model": "priced-1", "input_usd_per_mtok": "2", "output_usd_per_mtok": "10.50", "reason": "new contract"}
    made = admin.post("/prices", json=price)
    assert made.status_code == 201, made.text
    body = made.json()
    assert (body["input_usd_per_mtok"], body["cache_read_usd_per_mtok"], body["version"]) == ("2.00", None, 1)
    assert api.post("/tasks", json={**CALL, "max_cost_usd": "1"}).status_code == 202
    too_low = api.post("/tasks", json={**CALL, "max_cost_usd": "0.000001"})
    assert (too_low.status_code, too_low.json()["code"]) == (422, "max_cost_too_low")
    path = f"/prices/{body['id']}"
    edited = admin.patch(path, json={"version": 1, "cache_read_usd_per_mtok": "0.2", "to": "2099-01-01T00:00:00Z"})
    assert edited.status_code == 200, edited.text
    assert edited.json()["valid_to"] == "2099-01-01T00:00:00Z"
    late = admin.patch(path, json={"version": 1, "input_usd_per_mtok": "3"})
    assert (late.status_code, late.json()["code"]) == (409, "version_conflict")
    assert [each["model"] for each in api.get("/prices?model=priced-1").json()["prices"]] == ["priced-1"]
    assert admin.patch("/prices/999", json={"version": 1}).status_code == 404
    assert api.post("/prices", json=price).status_code == 403


@pytest.mark.parametrize("amount", ["1.0000000001", "-1", "much", 2, "1e99"])
def test_an_amount_that_is_none_is_refused_by_its_field(admin: httpx2.Client, amount: object) -> None:
    answer = admin.post("/prices", json={"model": "x", "input_usd_per_mtok": amount, "output_usd_per_mtok": "1"})
    assert answer.status_code == 422
    assert answer.json()["errors"][0]["loc"][-1] == "input_usd_per_mtok"


def test_a_budget_is_set_topped_up_and_shown_to_its_owner_alone(site: Site, admin: httpx2.Client) -> None:
    version = admin.get("/tenants/acme/budget").json()["version"]
    edit = {"version": version, "limit_usd": "25", "alert_at": [0.5, 1.0], "target_usd_per_success": "0.05"}
    answer = admin.patch("/tenants/acme/budget", json=edit)
    assert answer.status_code == 200, answer.text
    body = answer.json()
    assert (body["limit_usd"], body["spent_usd"], body["left_usd"]) == ("25.00", "0.00", "25.00")
    assert body["period"]["time_zone"] == "UTC"
    more = {"amount_usd": "5", "for_s": 3_600, "reason": "a launch"}
    added = admin.post("/tenants/acme/top-ups", json=more, headers={"Idempotency-Key": "launch"})
    assert added.status_code == 201, added.text
    again = admin.post("/tenants/acme/top-ups", json=more, headers={"Idempotency-Key": "launch"})
    assert again.json() == added.json()
    topped = admin.get("/tenants/acme/budget").json()
    assert topped["top_up_until"] == added.json()["ends_at"]
    assert (topped["monthly_limit_usd"], topped["limit_usd"], topped["top_up_usd"]) == ("25.00", "30.00", "5.00")
    with site.client() as owner, site.client(site.rival) as rival:
        assert owner.get("/tenants/acme/budget").json()["limit_usd"] == "30.00"
        assert rival.get("/tenants/acme/budget").status_code == 404
        assert [each["tenant"] for each in rival.get("/budgets").json()["budgets"]] == ["globex"]
        assert [each["reason"] for each in owner.get("/tenants/acme/top-ups").json()["top_ups"]] == ["a launch"]
        assert rival.get("/tenants/acme/top-ups").status_code == 404
        assert owner.post("/tenants/acme/top-ups", json=more).status_code == 403
    ended = admin.delete(f"/tenants/acme/top-ups/{added.json()['id']}").json()
    assert (ended["in_force"], ended["amount_usd"]) == (False, "5.00")
    assert admin.delete(f"/tenants/globex/top-ups/{added.json()['id']}").status_code == 404
    assert admin.get("/tenants/acme/budget").json()["limit_usd"] == "25.00"
    done = AuditEvent.objects.filter(subject="tenant:acme").order_by("id").values_list("action", flat=True)
    assert list(done)[-3:] == ["budget.edit", "budget.top_up", "budget.end_top_up"]


def test_a_tenant_is_declared_with_its_budget_or_not_at_all(admin: httpx2.Client) -> None:
    quota = {"start_rate": 5, "monthly_budget_usd": "12.5", "alert_at": [0.5]}
    made = admin.post("/tenants", json={"slug": "paying", "quota": quota}).json()
    assert (made["quota"]["monthly_budget_usd"], made["quota"]["alert_at"], made["version"]) == ("12.50", [0.5], 2)
    shown = admin.get("/tenants/paying/budget")
    assert shown.status_code == 200, shown.text
    assert shown.json()["limit_usd"] == "12.50"
    edit = {"version": 2, "quota": {"monthly_budget_usd": None, "max_in_flight": 3}}
    changed = admin.patch("/tenants/paying", json=edit).json()
    assert (changed["quota"]["monthly_budget_usd"], changed["quota"]["max_in_flight"]) == (None, 3)
    assert admin.patch("/tenants/paying", json=edit).json()["code"] == "version_conflict"
    bad = admin.post("/tenants", json={"slug": "broke", "quota": {"alert_at": [2.0], "monthly_budget_usd": "1"}})
    assert (bad.status_code, bad.json()["code"]) == (422, "bad_budget")
    assert admin.get("/tenants/broke").status_code == 404


def test_bad_budgets_are_refused_with_what_to_do(admin: httpx2.Client) -> None:
    version = admin.get("/tenants/globex/budget").json()["version"]
    for edit in ({"alert_at": [0.0]}, {"alert_at": [0.5, 0.5]}):
        answer = admin.patch("/tenants/globex/budget", json={"version": version, **edit})
        assert (answer.status_code, answer.json()["code"]) == (422, "bad_budget"), edit


def test_cost_is_told_by_what_is_asked_for(api: httpx2.Client) -> None:
    report = api.get("/cost?by=pool,kind").json()
    assert (report["total"]["cost_usd"], report["total"]["usd_per_success"], report["rows"]) == ("0.00", None, [])
    answer = api.get("/cost?by=colour")
    assert (answer.status_code, answer.json()["code"]) == (422, "bad_filter")


def test_alerts_are_listed(admin: httpx2.Client) -> None:
    assert admin.get("/alerts").json() == {"alerts": [], "next_before": None}
