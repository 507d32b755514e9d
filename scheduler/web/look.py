"""Decides how the console looks for one browser: theme, density, keys, zone and pace, kept in a small cookie.

What the lists begin with is kept in another.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, tzinfo
from typing import Final
from urllib.parse import parse_qsl, urlencode

from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.utils.http import url_has_allowed_host_and_scheme
from django.views.decorators.http import require_POST

from scheduler.web.times import UTC_NAME, zone_named

COOKIE: Final = "cronoq_look"
FIRST_COOKIE: Final = "cronoq_first"
THEMES: Final = ("system", "light", "dark")
DENSITIES: Final = ("comfortable", "compact")
PACES: Final = ("1", "5", "15", "off")
"""How often the numbers of an open page move, in seconds."""
COLUMNS: Final = ("pool", "tenant", "class", "attempts", "age", "cost")
"""What lists of tasks show of each beside its number and state, unless it is hidden."""
LISTS: Final = ("tasks", "dead")
"""The lists that may begin with a filter of one's own."""
_YEAR_S: Final = 365 * 24 * 3600


@dataclass(frozen=True, slots=True)
class Look:
    """Each is of its list above, or its default; `shortcuts`: do single keys do anything (WCAG 2.1.4)?"""

    theme: str = "system"
    shortcuts: bool = True
    density: str = "comfortable"
    pace: str = "1"
    zone: str = UTC_NAME
    hidden: tuple[str, ...] = ()

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns of lists of tasks that are shown."""
        return tuple(name for name in COLUMNS if name not in self.hidden)

    def text(self) -> str:
        """As kept in the cookie."""
        keys = "keys" if self.shortcuts else "nokeys"
        return f"{self.theme}.{keys}.{self.density}.{self.pace}.{self.zone}.{'-'.join(self.hidden)}"


def look_of(request: HttpRequest) -> Look:
    """The look this browser asked for; anything unreadable is the default."""
    names = ("theme", "shortcuts", "density", "pace", "zone", "hidden")
    return _moved(Look(), dict(zip(names, request.COOKIES.get(COOKIE, "").split("."), strict=False)))


def _moved(before: Look, asked: Mapping[str, str]) -> Look:
    """The look with what is asked for, as far as that is known."""
    known = {"theme": THEMES, "density": DENSITIES, "pace": PACES}
    changes = {name: asked[name] for name, words in known.items() if asked.get(name) in words}
    if zone_named(asked.get("zone", "")) is not None:
        changes["zone"] = asked["zone"]
    hidden = before.hidden
    if "hidden" in asked:
        hidden = tuple(name for name in COLUMNS if name in asked["hidden"].split("-"))
    keys = {"on": True, "keys": True, "off": False, "nokeys": False}.get(asked.get("shortcuts", ""), before.shortcuts)
    return replace(before, shortcuts=keys, hidden=hidden, **changes)


def zone_of(request: HttpRequest) -> tzinfo:
    """On whose clock this browser reads times."""
    return zone_named(look_of(request).zone) or UTC


@require_POST
def change_look(request: HttpRequest) -> HttpResponse:
    """Change one part of the look and return to where the person was. Needs no account."""
    response = redirect(safe_next(request))
    response.status_code = 303
    keep_look(request, response, request.POST.dict())
    return response


def keep_look(request: HttpRequest, response: HttpResponse, asked: Mapping[str, str]) -> None:
    """Have the browser keep the look with what is asked for."""
    _keep(request, response, COOKIE, _moved(look_of(request), asked).text())


def first_filters(request: HttpRequest) -> dict[str, str]:
    """The filter that each list begins with in this browser, where there is one."""
    kept = dict(parse_qsl(request.COOKIES.get(FIRST_COOKIE, "")))
    return {name: kept[name] for name in LISTS if kept.get(name)}


def keep_first_filters(request: HttpRequest, response: HttpResponse, filters: Mapping[str, str]) -> None:
    """Have the browser keep them."""
    _keep(request, response, FIRST_COOKIE, urlencode({name: text for name, text in filters.items() if text}))


def _keep(request: HttpRequest, response: HttpResponse, name: str, value: str) -> None:
    response.set_cookie(name, value, max_age=_YEAR_S, httponly=True, samesite="Lax", secure=request.is_secure())


def safe_next(request: HttpRequest) -> str:
    """Where to go next: the page named by the form when it is ours, else the Overview."""
    target = request.POST.get("next", "")
    if url_has_allowed_host_and_scheme(target, {request.get_host()}, require_https=request.is_secure()):
        return target
    return reverse("ops:overview")
