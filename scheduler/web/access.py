"""Decides who may open a page or press a button: signed in, and holding the permission the view names."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Concatenate, Final, ParamSpec

from django.contrib.auth.views import redirect_to_login
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse
from django.urls import reverse

VIEW_CONSOLE: Final = "scheduler.view_console"
OPERATE_POOL: Final = "scheduler.operate_pool"
VIEW_PAYLOAD: Final = "scheduler.view_payload"
EDIT_RESOURCE: Final = "scheduler.edit_resource_limit"
OPERATE_TASK: Final = "scheduler.operate_task"
OPERATE_RUN: Final = "scheduler.operate_run"
EDIT_SCHEDULE: Final = "scheduler.edit_schedule"
OPERATE_WORKER: Final = "scheduler.operate_worker"
EDIT_TENANT: Final = "scheduler.edit_tenant"
EDIT_BUDGET: Final = "scheduler.edit_budget"
TOP_UP_BUDGET: Final = "scheduler.top_up_budget"
EDIT_ACCESS: Final = "scheduler.edit_access"
VIEW_AUDIT: Final = "scheduler.view_audit"

P = ParamSpec("P")
View = Callable[Concatenate[HttpRequest, P], HttpResponse]


def needs(permission: str) -> Callable[[View[P]], View[P]]:
    """Guard a view: an anonymous visitor is sent to sign in and comes back; anyone else without it is told its name.

    The guarded view says what it asks for as `permission`, which the tests of every route read.
    """

    def guard(view: View[P]) -> View[P]:
        @wraps(view)
        def guarded(request: HttpRequest, /, *args: P.args, **kwargs: P.kwargs) -> HttpResponse:
            if not request.user.is_authenticated:
                readable = request.method in {"GET", "HEAD"}
                return redirect_to_login(request.get_full_path() if readable else reverse("ops:overview"))
            if not request.user.has_perm(permission):
                raise PermissionDenied(permission)
            return view(request, *args, **kwargs)

        guarded.permission = permission  # type: ignore[attr-defined]  # functions take attributes; their type does not say so
        return guarded

    return guard
