"""Making people of the console, and what their roles come to."""

from __future__ import annotations

from io import StringIO

import pytest
from django.contrib.auth.models import Group, User
from django.core.management import call_command
from django.core.management.base import CommandError

from scheduler.errors import NotFound, Refused
from scheduler.models import AuditEvent
from scheduler.policy.roles import PERMISSIONS, Role
from scheduler.reads.people import tenant_of_account
from scheduler.services.changes import Author
from scheduler.services.people import appoint, have_roles
from tests.support.work import make_tenant

pytestmark = pytest.mark.django_db
GOOD = "a long way from home"
SETUP = Author("setup", "system", "day one")


def test_roles_are_brought_back_to_what_they_mean() -> None:
    have_roles()
    Group.objects.get(name="viewer").permissions.clear()
    own = Group.objects.create(name="night shift")
    have_roles()
    assert {each.name for each in Group.objects.all()} == {*Role, own.name}
    for role in Role:
        held = Group.objects.get(name=role).permissions.values_list("codename", flat=True)
        assert set(held) == PERMISSIONS[role]


def test_a_new_person_may_do_what_the_role_says_and_is_in_the_audit_without_the_password() -> None:
    assert appoint("ada", Role.OPERATOR, tenant=None, password=GOOD, author=SETUP)
    ada = User.objects.get(username="ada")
    assert ada.check_password(GOOD)
    assert ada.get_all_permissions() == {f"scheduler.{name}" for name in PERMISSIONS[Role.OPERATOR]}
    event = AuditEvent.objects.get(action="person.add")
    assert (event.actor, event.subject, event.reason) == ("setup", "person:ada", "day one")
    assert event.after
    assert event.after["groups"] == ["operator"]
    assert GOOD not in str(event.after)


def test_another_role_replaces_the_first_and_the_password_stays() -> None:
    make_tenant("acme")
    appoint("ada", Role.ADMIN, tenant=None, password=GOOD, author=SETUP)
    assert User.objects.get().is_staff
    assert not appoint("ada", Role.TENANT_VIEWER, tenant="acme", password=None, author=SETUP)
    ada = User.objects.get()
    assert (ada.is_staff, ada.check_password(GOOD), tenant_of_account(ada.pk)) == (False, True, "acme")
    assert ada.get_all_permissions() == {"scheduler.view_own_tenant"}
    before = AuditEvent.objects.get(action="person.edit").before
    assert before
    assert before["groups"] == ["admin"]
    appoint("ada", Role.VIEWER, tenant=None, password=None, author=SETUP)
    assert tenant_of_account(ada.pk) is None


@pytest.mark.parametrize(
    ("name", "role", "tenant", "password", "code"),
    [
        ("ada", Role.VIEWER, "acme", GOOD, "bad_role"),
        ("ada", Role.TENANT_VIEWER, None, GOOD, "bad_role"),
        ("ada", Role.TENANT_VIEWER, "nowhere", GOOD, "unknown_tenant"),
        ("ada", Role.VIEWER, None, None, "password_required"),
        ("ada", Role.VIEWER, None, "12345", "weak_password"),
        ("", Role.VIEWER, None, GOOD, "bad_name"),
        ("x" * 151, Role.VIEWER, None, GOOD, "bad_name"),
        ("root", Role.VIEWER, None, GOOD, "superuser"),
    ],
)
def test_what_makes_no_sense_changes_nothing(
    name: str, role: Role, tenant: str | None, *, password: str | None, code: str
) -> None:
    make_tenant("acme")
    User.objects.create_superuser("root")
    with pytest.raises((Refused, NotFound)) as refusal:
        appoint(name, role, tenant=tenant, password=password, author=SETUP)
    assert refusal.value.code == code
    assert not User.objects.exclude(username="root").exists()
    assert not AuditEvent.objects.filter(action__startswith="person").exists()


def test_the_command_reads_the_password_from_a_pipe(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", StringIO(f"{GOOD}\n"))
    said = StringIO()
    call_command("create_person", "ada", "--role", "viewer", stdout=said)
    assert said.getvalue() == "ada can sign in: viewer.\n"
    assert User.objects.get().check_password(GOOD)
    call_command("create_person", "ada", "--role", "operator", "--keep-password", stdout=said)
    assert "ada has the role now: operator." in said.getvalue()
    with pytest.raises(CommandError, match="say which one"):
        call_command("create_person", "bob", "--role", "tenant-viewer", "--keep-password")
