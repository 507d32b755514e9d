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

P = ParamSpec("P")
View = Callable[Concatenate[HttpRequest, P], HttpResponse]


def needs(permission: str) -> Callable[[View[P]], View[P]]:
    """Guard a view: an anonymous visitor is sent to sign in and comes back; anyone else without it is told its name."""

    def guard(view: View[P]) -> View[P]:
        @wraps(view)
        def guarded(request: HttpRequest, /, *args: P.args, **kwargs: P.kwargs) -> HttpResponse:
            if not request.user.is_authenticated:
                readable = request.method in {"GET", "HEAD"}
                return redirect_to_login(request.get_full_path() if readable else reverse("ops:overview"))
            if not request.user.has_perm(permission):
                raise PermissionDenied(permission)
            return view(request, *args, **kwargs)

        return guarded

    return guard
