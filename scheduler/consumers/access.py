"""Decides whether the person behind an open socket may still watch it: session, account, permission and binding."""

from __future__ import annotations

from collections.abc import Collection
from enum import IntEnum
from typing import Final, NamedTuple

from django.conf import settings
from django.contrib.auth import BACKEND_SESSION_KEY, HASH_SESSION_KEY, SESSION_KEY
from django.contrib.auth.models import User
from django.contrib.sessions.models import Session
from django.utils import timezone
from django.utils.crypto import constant_time_compare

from scheduler.live.audience import is_for_tenant
from scheduler.live.frames import Key
from scheduler.reads.people import tenants_of_accounts

VIEW_CONSOLE: Final = "scheduler.view_console"
VIEW_OWN_TENANT: Final = "scheduler.view_own_tenant"
_BACKEND: Final = "django.contrib.auth.backends.ModelBackend"


class Verdict(IntEnum):
    """The close code that says so; `OK` closes nothing."""

    OK = 0
    SIGNED_OUT = 4401
    FORBIDDEN = 4403


class Watch(NamedTuple):
    """Who watches what: the key of a stored session (None: there is none), and the page."""

    session_key: str | None
    key: Key


def verdict(watch: Watch) -> Verdict:
    """What the stored session of one watch says now."""
    return verdicts([watch])[watch]


def verdicts(watches: Collection[Watch]) -> dict[Watch, Verdict]:
    """What the stored sessions say now, in as many statements for thousands of watches as for one.

    A changed password, a deactivated account and a sign-out all end a session. An account that is bound to one tenant
    watches what is that tenant's own, whatever else it may do.
    """
    people = _signed_in({watch.session_key for watch in watches if watch.session_key})
    accounts = {user.pk for user in people.values()}
    bound = tenants_of_accounts(accounts) if accounts else {}
    holders = {name: _holders(name, accounts) if accounts else set() for name in (VIEW_CONSOLE, VIEW_OWN_TENANT)}

    def judged(watch: Watch) -> Verdict:
        user = people.get(watch.session_key or "")
        if user is None:
            return Verdict.SIGNED_OUT
        tenant = bound.get(user.pk)
        needed = VIEW_CONSOLE if tenant is None else VIEW_OWN_TENANT
        allowed = user.pk in holders[needed] and (tenant is None or is_for_tenant(watch.key, tenant))
        return Verdict.OK if allowed else Verdict.FORBIDDEN

    return {watch: judged(watch) for watch in set(watches)}


def _signed_in(session_keys: set[str]) -> dict[str, User]:
    """The active accounts behind sessions that are in force, by session."""
    stored = Session.objects.filter(session_key__in=session_keys, expire_date__gt=timezone.now())
    said = {session.session_key: session.get_decoded() for session in stored}
    numbers = {key: number for key, data in said.items() if (number := _account_in(data)) is not None}
    users = User.objects.filter(is_active=True).in_bulk(set(numbers.values()))
    return {
        key: users[number] for key, number in numbers.items() if number in users and _is_of(said[key], users[number])
    }


def _account_in(data: dict[str, object]) -> int | None:
    return int(str(data[SESSION_KEY])) if data.get(BACKEND_SESSION_KEY) in settings.AUTHENTICATION_BACKENDS else None


def _is_of(data: dict[str, object], user: User) -> bool:
    """Whether the session was begun with the password that the account has now."""
    kept = str(data.get(HASH_SESSION_KEY, ""))
    return any(
        constant_time_compare(kept, known)
        for known in (user.get_session_auth_hash(), *user.get_session_auth_fallback_hash())
    )


def _holders(permission: str, accounts: set[int]) -> set[int]:
    """Which of these accounts hold a permission, by themselves, by a role or as administrators of everything."""
    holders = User.objects.with_perm(permission, backend=_BACKEND).filter(pk__in=accounts)
    return set(holders.values_list("pk", flat=True))
