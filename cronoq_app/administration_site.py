"""Decides who may open the administration, and sends everybody else to the console's own sign-in with its throttle."""

from __future__ import annotations

from typing import Any

from django.contrib.admin import AdminSite
from django.contrib.auth.views import redirect_to_login
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from django.utils.http import url_has_allowed_host_and_scheme

from scheduler.reads.people import tenant_of_account


class Site(AdminSite):
    """Stock pages; no form for passwords of its own."""

    site_header = "cronoq administration"
    site_title = "cronoq"
    index_title = "What is declared"
    site_url = "/ops/"

    def has_permission(self, request: HttpRequest) -> bool:
        """Staff that is bound to no tenant. What they may do here, each page asks for itself."""
        user = request.user
        return bool(user.is_active and user.is_staff) and tenant_of_account(int(user.pk or 0)) is None

    def login(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> HttpResponse:  # noqa: ARG002 - Django's
        """Sign in at the console and come back; whoever is signed in already may not."""
        if request.user.is_authenticated:
            raise PermissionDenied("staff")
        target = request.GET.get("next", "")
        ours = url_has_allowed_host_and_scheme(target, {request.get_host()}, require_https=request.is_secure())
        return redirect_to_login(target if ours else reverse("admin:index"))
