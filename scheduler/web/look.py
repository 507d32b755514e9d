"""Decides how the console looks for one browser: theme and single-key shortcuts, kept in one small cookie."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.utils.http import url_has_allowed_host_and_scheme
from django.views.decorators.http import require_POST

COOKIE: Final = "cronoq_look"
THEMES: Final = ("system", "light", "dark")
_YEAR_S: Final = 365 * 24 * 3600


@dataclass(frozen=True, slots=True)
class Look:
    """`theme` is one of `THEMES`; `shortcuts` says whether single keys do anything (WCAG 2.1.4)."""

    theme: str = "system"
    shortcuts: bool = True

    def text(self) -> str:
        """As kept in the cookie."""
        return f"{self.theme}.{'keys' if self.shortcuts else 'nokeys'}"


def look_of(request: HttpRequest) -> Look:
    """The look this browser asked for; anything unreadable is the default."""
    theme, _, keys = request.COOKIES.get(COOKIE, "").partition(".")
    return Look(theme if theme in THEMES else "system", shortcuts=keys != "nokeys")


@require_POST
def change_look(request: HttpRequest) -> HttpResponse:
    """Change one part of the look and return to where the person was. Needs no account."""
    before = look_of(request)
    theme = request.POST.get("theme", before.theme)
    keys = request.POST.get("shortcuts", "on" if before.shortcuts else "off")
    after = Look(theme if theme in THEMES else before.theme, shortcuts=keys != "off")
    response = redirect(safe_next(request))
    response.status_code = 303
    response.set_cookie(
        COOKIE, after.text(), max_age=_YEAR_S, httponly=True, samesite="Lax", secure=request.is_secure()
    )
    return response


def safe_next(request: HttpRequest) -> str:
    """Where to go next: the page named by the form when it is ours, else the Overview."""
    target = request.POST.get("next", "")
    if url_has_allowed_host_and_scheme(target, {request.get_host()}, require_https=request.is_secure()):
        return target
    return reverse("ops:overview")
