"""People with different permissions, and a process that has forgotten every board it saw."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Protocol

import pytest
from django.contrib.auth.models import Group, Permission, User
from django.test import Client
from django.urls import resolve

from scheduler.live.newest import newest
from scheduler.models import BoundAccount, Pool, Snapshot
from scheduler.policy.roles import Role
from scheduler.policy.types import TaskId
from scheduler.services.people import have_roles
from tests.live import sample
from tests.support.work import make_tenant, submit_tasks

PERMISSIONS = {
    "nobody": [],
    "viewer": ["view_console"],
    "operator": ["view_console", "operate_pool"],
    "reader": ["view_console", "view_payload"],
}
PASSWORD = "correct horse battery staple"

SignIn = Callable[[str], Client]
WithPermissions = Callable[[set[str]], Client]


class WithRole(Protocol):
    """Signs in somebody with a role, and with single permissions besides."""

    def __call__(self, role: str, *, also: Iterable[str] = ()) -> Client: ...


@pytest.fixture(autouse=True)
def forgetful() -> Iterator[None]:
    newest.forget()
    resolve("/ops/")  # reads every module of the site, which takes long on a slow machine: not inside a transaction
    yield
    newest.forget()


@pytest.fixture
def person(db: None) -> Callable[[str], User]:
    def make(role: str) -> User:
        user = User.objects.create_user(role, password=PASSWORD)
        user.user_permissions.set(Permission.objects.filter(codename__in=PERMISSIONS[role]))
        return user

    return make


@pytest.fixture
def signed_in(person: Callable[[str], User]) -> SignIn:
    def sign_in(role: str) -> Client:
        client = Client()
        if role != "anonymous":
            client.force_login(person(role))
        return client

    return sign_in


@pytest.fixture
def with_permissions(db: None) -> WithPermissions:
    """Signs in somebody who from then on holds exactly these, named with their app."""

    def sign_in(permissions: set[str]) -> Client:
        user, _ = User.objects.get_or_create(username="somebody")
        codenames = {name.removeprefix("scheduler.") for name in permissions}
        user.user_permissions.set(Permission.objects.filter(codename__in=codenames))
        client = Client()
        client.force_login(user)
        return client

    return sign_in


@pytest.fixture
def with_role(db: None) -> WithRole:
    """A tenant-viewer is bound to the tenant `globex`, which is made here."""

    def sign_in(role: str, *, also: Iterable[str] = ()) -> Client:
        have_roles()
        user = User.objects.create_user(f"a {role}", password=PASSWORD)
        user.groups.set([Group.objects.get(name=role)])
        codenames = {name.removeprefix("scheduler.") for name in also}
        user.user_permissions.set(Permission.objects.filter(codename__in=codenames))
        if role == Role.TENANT_VIEWER:
            BoundAccount.objects.create(user=user, tenant_id=make_tenant("globex"))
        client = Client()
        client.force_login(user)
        return client

    return sign_in


@pytest.fixture
def llm(db: None) -> Pool:
    return Pool.objects.create(name="llm", executor="llm")


@pytest.fixture
def task(llm: Pool) -> TaskId:
    """A task of `llm` that waits; the first in its database, so that a link may name it."""
    return submit_tasks(make_tenant(), payload='{"prompt": "<script>alert(1)</script>"}', pool="llm", key="order-7")[0]


@pytest.fixture
def snapshot(db: None) -> Snapshot:
    return Snapshot.objects.create(body=sample.body())
