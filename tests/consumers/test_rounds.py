"""What it costs to ask again whether those who watch still may."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from channels.db import database_sync_to_async
from django.conf import settings
from django.contrib.auth.models import Group, Permission, User
from django.contrib.sessions.models import Session
from django.db import connection
from django.test import Client
from django.utils import timezone

from scheduler.consumers.access import Verdict, Watch, verdicts
from scheduler.consumers.rounds import rounds
from scheduler.live.frames import Key
from scheduler.models import BoundAccount
from tests.support import loops
from tests.support.statements import statements
from tests.support.work import make_tenant

OVERVIEW = Key("overview")


def session_of(user: User) -> str:
    client = Client()
    client.force_login(user)
    return client.cookies[settings.SESSION_COOKIE_NAME].value


def person(name: str, *codenames: str, group: Group | None = None) -> User:
    user = User.objects.create_user(name)
    user.user_permissions.set(Permission.objects.filter(codename__in=codenames))
    if group is not None:
        user.groups.add(group)
    return user


@pytest.mark.django_db
def test_everybody_is_asked_after_in_as_many_statements_as_one_is() -> None:
    watches = [Watch(session_of(person(f"p{n}", "view_console")), OVERVIEW) for n in range(12)]
    with statements() as for_one:
        verdicts(watches[:1])
    with statements() as for_all:
        answers = verdicts(watches)
    assert set(answers.values()) == {Verdict.OK}
    assert len(for_all) == len(for_one) <= 6


@pytest.mark.django_db
def test_each_gets_an_answer_of_its_own() -> None:
    group = Group.objects.create(name="lookouts")
    group.permissions.set(Permission.objects.filter(codename="view_console"))
    inactive, changed, gone = (person(name, "view_console") for name in ("inactive", "changed", "gone"))
    bound = person("bound", "view_console", "view_own_tenant")
    BoundAccount.objects.create(user=bound, tenant_id=make_tenant("acme"))
    admin = User.objects.create_superuser("admin")
    expected = {
        Watch(session_of(person("own", "view_console")), OVERVIEW): Verdict.OK,
        Watch(session_of(person("by-role", group=group)), OVERVIEW): Verdict.OK,
        Watch(session_of(admin), OVERVIEW): Verdict.OK,
        Watch(session_of(person("without")), OVERVIEW): Verdict.FORBIDDEN,
        Watch(session_of(bound), OVERVIEW): Verdict.FORBIDDEN,
        Watch(session_of(bound), Key("still")): Verdict.OK,
        Watch(session_of(inactive), OVERVIEW): Verdict.SIGNED_OUT,
        Watch(session_of(changed), OVERVIEW): Verdict.SIGNED_OUT,
        Watch(session_of(gone), OVERVIEW): Verdict.SIGNED_OUT,
        Watch(None, OVERVIEW): Verdict.SIGNED_OUT,
        Watch("made-up", OVERVIEW): Verdict.SIGNED_OUT,
    }
    User.objects.filter(pk=inactive.pk).update(is_active=False)
    changed.set_password("another one")
    changed.save()
    late = next(s for s in Session.objects.all() if s.get_decoded().get("_auth_user_id") == str(gone.pk))
    Session.objects.filter(pk=late.pk).update(expire_date=timezone.now() - timedelta(seconds=1))
    assert verdicts(list(expected)) == expected


@pytest.mark.usefixtures("live_database")
def test_who_begins_together_is_asked_after_together() -> None:
    watches = [Watch(session_of(person(f"p{n}", "view_console")), OVERVIEW) for n in range(40)]
    said: list[str] = []

    def note(execute: Callable[..., Any], statement: str, *rest: Any) -> Any:
        said.append(statement)
        return execute(statement, *rest)

    async def scenario() -> None:
        asked = rounds()
        await database_sync_to_async(lambda: connection.execute_wrappers.append(note))()
        assert await asked.verdict(watches[0]) is Verdict.OK
        for_one = len(said)
        answers = await asyncio.gather(*(asked.verdict(watch) for watch in [*watches, *watches]))
        await database_sync_to_async(lambda: connection.execute_wrappers.remove(note))()
        assert set(answers) == {Verdict.OK}
        assert len(said) == 2 * for_one > 0

    loops.run(scenario())
