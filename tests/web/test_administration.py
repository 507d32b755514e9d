"""The administration: who gets in, that its changes are those of the services, and that nothing passes by the audit."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib import admin
from django.contrib.auth.models import Group, Permission, User
from django.test import Client
from django.urls import reverse

from scheduler.models import AuditEvent, BoundAccount, Pool, Resource, Tenant
from scheduler.policy.roles import PERMISSIONS, Role
from scheduler.reads.people import tenant_of_account
from scheduler.services.people import have_roles
from tests.support.work import make_tenant
from tests.web.conftest import PASSWORD, WithRole

ASKS = {
    "tenant": "edit_tenant",
    "tenantbudget": "edit_budget",
    "pool": "operate_pool",
    "resource": "edit_resource_limit",
    "user": "edit_people",
    "group": "edit_people",
}
"""What a change of each needs."""


def address(model: str, page: str, *args: Any) -> str:
    app = "auth" if model in {"user", "group"} else "scheduler"
    return reverse(f"admin:{app}_{model}_{page}", args=args)


@pytest.fixture
def root(db: None) -> Client:
    client = Client()
    client.force_login(User.objects.create_superuser("root", password=PASSWORD))
    return client


def form_of(client: Client, url: str, **changes: Any) -> dict[str, Any]:
    """What a browser would send after these changes to the form."""
    form = client.get(url).context["adminform"].form
    given = {name: form[name].value() for name in form.fields}
    return {name: "" if value is None else value for name, value in {**given, **changes}.items() if value is not False}


def change(client: Client, model: str, row: int, **changes: Any) -> Any:
    url = address(model, "change", row)
    return client.post(url, form_of(client, url, **changes))


def test_every_model_that_is_shown_is_known_to_these_tests() -> None:
    assert {model._meta.model_name for model in admin.site._registry} == set(ASKS)


def test_strangers_sign_in_at_the_console_and_come_back(db: None) -> None:
    first = Client().get("/admin/")
    assert first["Location"] == "/admin/login/?next=/admin/"
    second = Client().get(first["Location"])
    assert second["Location"] == "/ops/sign-in/?next=/admin/"
    assert Client().post("/admin/login/", {"username": "root", "password": PASSWORD}).status_code == 302
    assert Client().get("/admin/login/?next=https://evil.example/")["Location"] == "/ops/sign-in/?next=/admin/"


@pytest.mark.parametrize("role", list(Role))
def test_every_page_and_form_is_for_the_roles_that_hold_its_permission(role: Role, with_role: WithRole) -> None:
    client = with_role(role)
    user = User.objects.get(username=f"a {role}")
    user.is_staff = True
    user.save()
    pool, tenant = Pool.objects.create(name="p", executor="llm"), make_tenant("umbrella")
    limit = Resource.objects.create(name="r", kind="semaphore", permits=1)
    group, other = Group.objects.create(name="g"), User.objects.create_user("other")
    rows = {"tenant": tenant, "tenantbudget": tenant, "pool": pool.pk, "resource": limit.pk}
    rows |= {"user": other.pk, "group": group.pk}
    for model, codename in ASKS.items():
        allowed = codename in PERMISSIONS[role]
        for page, args in (("add", ()), ("change", (rows[model],))):
            status = client.post(address(model, page, *args), {}).status_code
            if role is Role.TENANT_VIEWER:
                assert status == 302, (model, page)
            elif allowed and (model, page) != ("tenantbudget", "add"):
                assert status == 200, (model, page)
            else:
                assert status == 403, (model, page)
        assert client.post(address(model, "delete", rows[model]), {"post": "yes"}).status_code in {302, 403}
    assert not AuditEvent.objects.exists()


def test_a_bound_account_does_not_get_in_even_as_staff_with_every_permission(with_role: WithRole) -> None:
    client = with_role(Role.TENANT_VIEWER)
    User.objects.update(is_staff=True, is_superuser=True)
    assert client.get("/admin/").status_code == 302
    assert client.get("/admin/login/").status_code == 403


def test_a_tenant_is_changed_by_the_service(root: Client) -> None:
    tenant = make_tenant("acme")
    answer = change(root, "tenant", tenant, weight="2.5", max_cost_per_run_usd="12.50", reason="they pay more")
    assert answer.status_code == 302
    row = Tenant.objects.get()
    assert (row.weight, row.max_cost_per_run_nano, row.version) == (2.5, 12_500_000_000, 2)
    event = AuditEvent.objects.get()
    assert (event.actor, event.source, event.action, event.reason) == ("root", "admin", "tenant.edit", "they pay more")
    assert event.before == {"weight": 1.0, "max_cost_per_run_nano": None}


def test_a_form_without_a_change_changes_nothing(root: Client) -> None:
    tenant = make_tenant("acme")
    assert change(root, "tenant", tenant).status_code == 302
    assert Tenant.objects.get().version == 1
    assert not AuditEvent.objects.exists()


def test_an_edit_of_an_older_version_is_refused_and_says_so(root: Client) -> None:
    tenant = make_tenant("acme")
    url = address("tenant", "change", tenant)
    late = form_of(root, url, weight="9")
    change(root, "tenant", tenant, weight="3")
    answer = root.post(url, late)
    assert answer.status_code == 200
    assert "was changed meanwhile" in answer.content.decode()
    assert Tenant.objects.get().weight == 3.0


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"time_zone": "Mars/Olympus"}, "is not the name of a time zone"),
        ({"weight": "-1"}, "weight"),
        ({"max_cost_per_run_usd": "a lot"}, "Write an amount of dollars"),
    ],
)
def test_what_the_service_refuses_stands_in_the_form(changes: dict[str, str], says: str, root: Client) -> None:
    tenant = make_tenant("acme")
    answer = change(root, "tenant", tenant, **changes)
    assert answer.status_code == 200
    assert says in answer.content.decode()
    assert Tenant.objects.get().version == 1


def test_a_pool_and_a_limit_are_declared_and_edited(root: Client) -> None:
    for model, given in (
        ("pool", {"name": "fresh", "executor": "llm", "slots": "5"}),
        ("resource", {"name": "gpu", "kind": "semaphore", "permits": "4"}),
    ):
        url = address(model, "add")
        assert root.post(url, form_of(root, url, **given)).status_code == 302, model
    pool, limit = Pool.objects.get(), Resource.objects.get()
    assert (pool.slots, limit.permits) == (5, 4)
    change(root, "pool", pool.pk, slots="7", slo='{"high": 2.0}')
    change(root, "resource", limit.pk, permits="6")
    assert Pool.objects.get().slo == {"high": 2.0}
    assert (Pool.objects.get().slots, Resource.objects.get().permits) == (7, 6)
    actions = list(AuditEvent.objects.order_by("id").values_list("action", flat=True))
    assert actions == ["pool.add", "resource.add", "pool.edit", "resource.edit"]
    refused = change(root, "pool", pool.pk, slots="99999")
    assert refused.status_code == 200
    assert Pool.objects.get().slots == 7


def test_a_budget_is_changed_in_dollars(root: Client) -> None:
    tenant = make_tenant("acme")
    change(root, "tenantbudget", tenant, limit_usd="2000", alert_at="0.5, 1")
    row = Tenant.objects.get()
    assert (row.monthly_budget_nano, row.alert_at) == (2_000_000_000_000, [0.5, 1.0])
    assert AuditEvent.objects.get().action == "budget.edit"
    assert "0 and up to 1" in change(root, "tenantbudget", tenant, alert_at="7").content.decode()
    assert "Write numbers with commas" in change(root, "tenantbudget", tenant, alert_at="x").content.decode()


def test_what_somebody_may_do_is_changed_with_the_audit(root: Client) -> None:
    have_roles()
    make_tenant("acme")
    ada = User.objects.create_user("ada", password=PASSWORD)
    role = Group.objects.get(name="tenant-viewer").pk
    assert "say which one" in change(root, "user", ada.pk, groups=[role]).content.decode()
    assert tenant_of_account(ada.pk) is None
    change(root, "user", ada.pk, groups=[role], tenant="acme", reason="their own page")
    assert tenant_of_account(ada.pk) == "acme"
    event = AuditEvent.objects.get()
    assert (event.action, event.subject, event.reason) == ("person.edit", "person:ada", "their own page")
    assert event.after == {"groups": ["tenant-viewer"], "tenant": "acme"}
    change(root, "user", ada.pk, groups=[Group.objects.get(name="viewer").pk], tenant="")
    assert not BoundAccount.objects.exists()


def test_another_password_is_in_the_audit_and_ends_sessions(root: Client) -> None:
    ada = User.objects.create_user("ada", password=PASSWORD)
    session = Client()
    session.force_login(ada)
    given = {"password1": "another long one", "password2": "another long one", "usable_password": "true"}
    assert root.post(f"/admin/auth/user/{ada.pk}/password/", given).status_code == 302
    assert AuditEvent.objects.get().action == "person.password"
    assert session.get("/ops/")["Location"].startswith("/ops/sign-in/")


def test_nobody_makes_themselves_or_others_a_superuser(with_role: WithRole) -> None:
    client = with_role(Role.ADMIN)
    User.objects.update(is_staff=True)
    boss, me = User.objects.create_superuser("boss", password=PASSWORD), User.objects.get(username="a admin")
    url = address("user", "change", me.pk)
    client.post(url, {**form_of(client, url), "is_superuser": "on"})
    assert not User.objects.get(pk=me.pk).is_superuser
    assert client.post(address("user", "change", boss.pk), {"username": "boss"}).status_code == 403
    assert client.post(f"/admin/auth/user/{boss.pk}/password/", {"password1": "x" * 12}).status_code == 403


def test_a_role_is_looked_at_and_another_group_changed(root: Client) -> None:
    role, own = Group.objects.create(name="viewer"), Group.objects.create(name="night shift")
    assert root.post(address("group", "change", role.pk), {"name": "viewer"}).status_code == 403
    permission = Permission.objects.get(codename="operate_pool")
    change(root, "group", own.pk, permissions=[permission.pk])
    assert list(own.permissions.all()) == [permission]
    assert AuditEvent.objects.get().after == {"permissions": ["operate_pool"]}


def test_every_page_is_under_the_strict_policy(root: Client) -> None:
    make_tenant("t")
    for model in ASKS:
        policy = root.get(address(model, "changelist")).headers["Content-Security-Policy"]
        assert policy == root.get("/ops/sign-in/").headers["Content-Security-Policy"]
        assert "default-src 'none'" in policy
        assert "unsafe" not in policy


def test_lists_cost_no_count_of_everything(root: Client, django_assert_max_num_queries: Any) -> None:
    for n in range(3):
        make_tenant(f"t{n}")
    for model in ASKS:
        with django_assert_max_num_queries(14):
            assert root.get(address(model, "changelist")).status_code == 200, model
