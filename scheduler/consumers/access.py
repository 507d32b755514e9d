"""Decides whether the person behind an open socket may still watch: session, account and permission, asked again."""

from __future__ import annotations

from enum import IntEnum
from importlib import import_module
from typing import Final

from django.conf import settings
from django.contrib.auth import get_user
from django.http import HttpRequest

VIEW_CONSOLE: Final = "scheduler.view_console"


class Verdict(IntEnum):
    """The close code that says so; `OK` closes nothing."""

    OK = 0
    SIGNED_OUT = 4401
    FORBIDDEN = 4403


def verdict(session_key: str | None, permission: str = VIEW_CONSOLE) -> Verdict:
    """What the stored session says now. A changed password, a deactivated account and a sign-out all end it."""
    if not session_key:
        return Verdict.SIGNED_OUT
    request = HttpRequest()
    request.session = import_module(settings.SESSION_ENGINE).SessionStore(session_key)
    user = get_user(request)
    if not user.is_authenticated:
        return Verdict.SIGNED_OUT
    return Verdict.OK if user.has_perm(permission) else Verdict.FORBIDDEN
