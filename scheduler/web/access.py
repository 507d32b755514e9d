"""Decides who may open a page or press a button: signed in, and holding the permission the view names.

An account that is bound to one tenant opens only what is marked as being for tenants, and of that only its own.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import wraps
from typing import Any, Concatenate, Final, ParamSpec

from django.contrib.auth.views import redirect_to_login
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import NoReverseMatch, reverse
from django.utils import timezone

from scheduler.reads.people import Rights, rights_of_account
from scheduler.web.look import zone_of

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
VIEW_OWN_TENANT: Final = "scheduler.view_own_tenant"

P = ParamSpec("P")
View = Callable[Concatenate[HttpRequest, P], HttpResponse]
Own = Callable[[str, HttpRequest, Mapping[str, Any]], bool]
"""Whether what is asked for, by the request and the parts of its address, is this tenant's own."""


def tenant_of(request: HttpRequest) -> str | None:
    """The slug of the tenant that the visitor's account is bound to; None: to none."""
    return _rights(request).tenant


def may(request: HttpRequest, permission: str) -> bool:
    """Whether the visitor holds a permission (`app.codename`): by themselves, by a role, or as a superuser."""
    user = request.user
    return user.is_active and (user.is_superuser or permission in _rights(request).permissions)


def _rights(request: HttpRequest) -> Rights:
    """Read once in a request: Django asks three times for as much."""
    if not hasattr(request, "rights"):
        known = request.user.pk
        found = Rights(frozenset(), None) if known is None else rights_of_account(known)
        request.rights = found  # type: ignore[attr-defined]  # ours
    rights: Rights = request.rights  # type: ignore[attr-defined]  # set above
    return rights


def named_by(part: str) -> Own:
    """For addresses that name the tenant: in this part."""
    return lambda tenant, _request, address: address.get(part) == tenant


def home_of(tenant: str) -> str | None:
    """The one page of somebody who is bound to this tenant."""
    try:
        return reverse("ops:tenant", kwargs={"slug": tenant})
    except NoReverseMatch:
        return None


def needs(permission: str, *, own: Own | None = None) -> Callable[[View[P]], View[P]]:
    """Guard a view: an anonymous visitor is sent to sign in and comes back; anyone else without it is told its name.

    With `own` the view is for tenants too: an account that is bound to one opens it for what is that tenant's own, and
    finds nothing else; the view reads whom it draws for from `tenant_of`. The guarded view says what it asks for as
    `permission`, and whether it is for tenants as `for_tenants`, which the tests of every route read.
    """

    def guard(view: View[P]) -> View[P]:
        @wraps(view)
        def guarded(request: HttpRequest, /, *args: P.args, **kwargs: P.kwargs) -> HttpResponse:
            if not request.user.is_authenticated:
                readable = request.method in {"GET", "HEAD"}
                return redirect_to_login(request.get_full_path() if readable else reverse("ops:overview"))
            tenant = tenant_of(request)
            if tenant is not None:
                home = home_of(tenant)
                if own is None and home and request.path == reverse("ops:overview"):
                    return redirect(home)
                _check_bound(request, permission, own, kwargs, tenant)
            elif not may(request, permission):
                raise PermissionDenied(permission)
            with timezone.override(zone_of(request)):
                return view(request, *args, **kwargs)

        guarded.permission = permission  # type: ignore[attr-defined]  # functions take attributes; their type does not say so
        guarded.for_tenants = own is not None  # type: ignore[attr-defined]  # as above
        return guarded

    return guard


def _check_bound(
    request: HttpRequest, permission: str, own: Own | None, address: Mapping[str, Any], tenant: str
) -> None:
    if own is None:
        raise PermissionDenied(permission)
    if not may(request, VIEW_OWN_TENANT):
        raise PermissionDenied(VIEW_OWN_TENANT)
    if not own(tenant, request, address):
        message = "There is no such page for this account."
        raise Http404(message)
