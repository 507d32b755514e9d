"""Decides whether the person behind an open socket may still watch it: session, account, permission and binding."""

from __future__ import annotations

from enum import IntEnum
from importlib import import_module
from typing import Final

from django.conf import settings
from django.contrib.auth import get_user
from django.http import HttpRequest

from scheduler.live.audience import is_for_tenant
from scheduler.live.frames import Key
from scheduler.reads.people import tenant_of_account

VIEW_CONSOLE: Final = "scheduler.view_console"
VIEW_OWN_TENANT: Final = "scheduler.view_own_tenant"


class Verdict(IntEnum):
    """The close code that says so; `OK` closes nothing."""

    OK = 0
    SIGNED_OUT = 4401
    FORBIDDEN = 4403


def verdict(session_key: str | None, key: Key) -> Verdict:
    """What the stored session says now. A changed password, a deactivated account and a sign-out all end it.

    An account that is bound to one tenant watches what is that tenant's own, whatever else it may do.
    """
    if not session_key:
        return Verdict.SIGNED_OUT
    request = HttpRequest()
    request.session = import_module(settings.SESSION_ENGINE).SessionStore(session_key)
    user = get_user(request)
    if not user.is_authenticated:
        return Verdict.SIGNED_OUT
    tenant = tenant_of_account(user.pk)
    if tenant is None:
        allowed = user.has_perm(VIEW_CONSOLE)
    else:
        allowed = is_for_tenant(key, tenant) and user.has_perm(VIEW_OWN_TENANT)
    return Verdict.OK if allowed else Verdict.FORBIDDEN
