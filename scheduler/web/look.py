"""Decides how the console looks for one browser: theme, density and single-key shortcuts, kept in a small cookie."""

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
DENSITIES: Final = ("comfortable", "compact")
_YEAR_S: Final = 365 * 24 * 3600


@dataclass(frozen=True, slots=True)
class Look:
    """`theme` and `density` are of `THEMES` and `DENSITIES`; `shortcuts`: do single keys do anything (WCAG 2.1.4)?"""

    theme: str = "system"
    shortcuts: bool = True
    density: str = "comfortable"

    def text(self) -> str:
        """As kept in the cookie."""
        return f"{self.theme}.{'keys' if self.shortcuts else 'nokeys'}.{self.density}"


def look_of(request: HttpRequest) -> Look:
    """The look this browser asked for; anything unreadable is the default."""
    theme, keys, density, *_ = [*request.COOKIES.get(COOKIE, "").split("."), "", "", ""]
    return _look(theme, density, shortcuts=keys != "nokeys")


def _look(theme: str, density: str, *, shortcuts: bool) -> Look:
    known = Look()
    return Look(
        theme if theme in THEMES else known.theme, shortcuts, density if density in DENSITIES else known.density
    )


@require_POST
def change_look(request: HttpRequest) -> HttpResponse:
    """Change one part of the look and return to where the person was. Needs no account."""
    before = look_of(request)
    theme = request.POST.get("theme", before.theme)
    density = request.POST.get("density", before.density)
    keys = request.POST.get("shortcuts", "on" if before.shortcuts else "off")
    after = _look(theme if theme in THEMES else before.theme, density, shortcuts=keys != "off")
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
