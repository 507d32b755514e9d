"""Makes people of the console: accounts with a role, bound to one tenant where the role is about one.

Accounts, groups and permissions are Django's own; only what a role means is ours (`policy/roles.py`).
"""

from __future__ import annotations

from collections.abc import Mapping

from django.contrib.auth.models import Group, Permission, User
from django.contrib.auth.password_validation import validate_password
from django.core.exceptions import ValidationError
from django.db import transaction

from scheduler.errors import FieldError, Refused
from scheduler.policy.roles import PERMISSIONS, STAFF, Role, fault_in_role
from scheduler.services.changes import Author, differences, record
from scheduler.services.tenants import load_tenant
from scheduler.store import people as store

NAME_CHARS_MAX = 150


def have_roles() -> None:
    """Have every role exist as a group with exactly its permissions. Doing it again changes nothing."""
    with transaction.atomic():
        known = {
            each.codename: each
            for each in Permission.objects.filter(
                content_type__app_label="scheduler", codename__in=frozenset().union(*PERMISSIONS.values())
            )
        }
        for role, codenames in PERMISSIONS.items():
            group, _ = Group.objects.get_or_create(name=role.value)
            group.permissions.set([known[codename] for codename in codenames])


def appoint(username: str, role: Role, *, tenant: str | None, password: str | None, author: Author) -> bool:
    """Have a person with this role; returns whether they are new. A password that is None stays as it is.

    Raises Refused with what has to change first, NotFound for a tenant that is not there.
    """
    fault = fault_in_role(role, tenant)
    if fault is not None:
        raise Refused(fault, code="bad_role", errors=(FieldError(("tenant",), fault),))
    with transaction.atomic():
        have_roles()
        owner = None if tenant is None else load_tenant(tenant).id
        user = User.objects.select_for_update().filter(username=username).first()
        before = {} if user is None else standing_of(user)
        user = user or _new(username, password)
        if user.is_superuser:
            raise Refused(f"{username} is a superuser, who may do everything; make another account.", code="superuser")
        if password is not None:
            _check_password(password, user)
            user.set_password(password)
        user.is_staff = role in STAFF
        user.save()
        user.groups.set([Group.objects.get(name=role.value)])
        user.user_permissions.clear()
        store.bind(user.pk, owner)
        note_person(user, before, author)
        return not before


def bind(user: User, tenant: str | None) -> None:
    """Let an account see this tenant only; None: it sees what its permissions say. Raises NotFound."""
    store.bind(user.pk, None if tenant is None else load_tenant(tenant).id)


def note_person(user: User, before: Mapping[str, object], author: Author) -> None:
    """Tell the audit how an account stands now; `before` is how it stood, empty for a new one."""
    was, now = differences(before, standing_of(user))
    action = "person.edit" if before else "person.add"
    record(author, action, f"person:{user.get_username()}", before=was or None, after=now)


def note_password(user: User, author: Author) -> None:
    """Tell the audit that somebody got another password; never which."""
    record(author, "person.password", f"person:{user.get_username()}")


def note_group(group: Group, before: Mapping[str, object], author: Author) -> None:
    """Tell the audit what a group may do now; `before` is what it could do, empty for a new one."""
    was, now = differences(before, standing_of_group(group))
    record(author, "group.edit" if before else "group.add", f"people:{group.name}", before=was or None, after=now)


def standing_of_group(group: Group) -> Mapping[str, object]:
    """What the audit keeps of a group."""
    return {"name": group.name, "permissions": sorted(group.permissions.values_list("codename", flat=True))}


def standing_of(user: User) -> Mapping[str, object]:
    """What the audit keeps of an account: never its password."""
    return {
        "active": user.is_active,
        "staff": user.is_staff,
        "superuser": user.is_superuser,
        "groups": sorted(user.groups.values_list("name", flat=True)),
        "permissions": sorted(user.user_permissions.values_list("codename", flat=True)),
        "tenant": store.load_binding(user.pk),
    }


def _new(username: str, password: str | None) -> User:
    if not username or len(username) > NAME_CHARS_MAX or "\x00" in username:
        detail = f"A name has 1 to {NAME_CHARS_MAX} characters."
        raise Refused(detail, code="bad_name", errors=(FieldError(("username",), detail),))
    if password is None:
        detail = f"{username} is new: give a password."
        raise Refused(detail, code="password_required", errors=(FieldError(("password",), detail),))
    return User.objects.create_user(username)


def _check_password(password: str, user: User) -> None:
    try:
        validate_password(password, user)
    except ValidationError as weak:
        detail = " ".join(weak.messages)
        raise Refused(detail, code="weak_password", errors=(FieldError(("password",), detail),)) from weak
