"""Composes a whole page: the shell around one live body. Every page of the console goes through `page`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import urlencode

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.utils.safestring import mark_safe

from scheduler import conf
from scheduler.live.audience import STILL
from scheduler.live.frames import Frame, Key
from scheduler.live.newest import newest
from scheduler.live.pages import COUNTS, OF_A_TENANT
from scheduler.live.render import tally_id
from scheduler.live.wording import clock_utc, day_and_clock, machine
from scheduler.web.access import VIEW_AUDIT, VIEW_CONSOLE, home_of, may, tenant_of
from scheduler.web.look import THEMES, first_filters, look_of
from scheduler.web.toast import take_toast

STALE_AFTER_S: Final = 7.0
DAY_SHOWN_AFTER_S: Final = 12 * 3600
NOTICES: Final = {
    "stale": "These numbers are old: no engine has written newer ones.",
    "lost": "The database does not answer. These are the last numbers that were read.",
    "off": "The server does not answer. These are the last numbers that came; trying again.",
    "lock": "You may no longer see this page.",
}
"""What stands above the numbers of a page, by what has become of its connection."""


@dataclass(frozen=True, slots=True)
class NavItem:
    """One entry of the navigation: ``g`` and its `letter` go there. Entries of one `group` stand together.

    Whoever lacks its `permission` does not see it.
    """

    group: str
    key: str
    label: str
    icon: str
    letter: str
    route: str
    permission: str = VIEW_CONSOLE


NAVIGATION: Final = (
    NavItem("now", "overview", "Overview", "overview", "o", "ops:overview"),
    NavItem("now", "pools", "Pools", "pools", "p", "ops:pools"),
    NavItem("now", "resources", "Resources", "resources", "r", "ops:resources"),
    NavItem("now", "slo", "SLO", "slo", "s", "ops:slo"),
    NavItem("work", "tasks", "Tasks", "tasks", "t", "ops:tasks"),
    NavItem("work", "runs", "Runs", "runs", "a", "ops:runs"),
    NavItem("work", "schedules", "Schedules", "schedules", "c", "ops:schedules"),
    NavItem("work", "dead", "Dead letters", "dead", "d", "ops:dead"),
    NavItem("work", "operations", "Operations", "operations", "b", "ops:operations"),
    NavItem("who", "tenants", "Tenants", "tenants", "n", "ops:tenants"),
    NavItem("who", "cost", "Cost", "cost", "m", "ops:cost"),
    NavItem("system", "workers", "Workers", "workers", "w", "ops:workers"),
    NavItem("system", "audit", "Audit", "audit", "u", "ops:audit", VIEW_AUDIT),
    NavItem("system", "settings", "Settings", "settings", "e", "ops:settings"),
)


def page(
    request: HttpRequest,
    template: str,
    *,
    title: str,
    nav: str,
    live: Key | None = None,
    status: int = 200,
    **values: Any,
) -> HttpResponse:
    """The page with its first paint of the live body, drawn by the same code as every later frame.

    A page without a live body is a picture of the moment it was loaded: lists that people select from do not move.
    """
    live = live or (COUNTS if tenant_of(request) is None else STILL)
    # What somebody has just changed of a tenant must show, though the board is the same.
    frame = newest.draw_anew(live) if live.page in OF_A_TENANT else newest.frame(live)
    sight = newest.look()
    age_s = newest.age_s()
    context = {
        "title": title,
        "environment": conf.current().environment,
        "in_earnest": conf.current().environment.lower().startswith("prod"),
        "asked_for": request.GET.get("q", ""),
        "nav": _navigation(request, nav, frame),
        "look": look_of(request),
        "themes": THEMES,
        "toast": take_toast(request),
        "here": request.get_full_path(),
        "live": mark_safe(frame.html),  # noqa: S308 - drawn with autoescaping by the live renderer
        "frame": frame,
        "watch": urlencode({"page": live.page, "scope": live.scope}),
        "poll_url": f"{reverse('ops:poll', args=[live.page])}?{urlencode({'scope': live.scope})}",
        "age_s": f"{age_s:.1f}",
        "as_of": day_and_clock(sight.board.as_of_s) if age_s > DAY_SHOWN_AFTER_S else clock_utc(sight.board.as_of_s),
        "as_of_machine": machine(sight.board.as_of_s),
        "lost": sight.lost,
        "notices": NOTICES,
        "notice": _notice(frame, age_s, lost=sight.lost),
        **values,
    }
    response = render(request, template, context, status=status)
    response["Cache-Control"] = "no-store, private"
    return response


def missing(request: HttpRequest, what: str, *, near: Sequence[str] = (), near_at: str = "") -> HttpResponse:
    """The page that says that there is no such thing. `near` are names much like it, under the address `near_at`."""
    context = {"look": look_of(request), "what": what, "near": near, "near_at": near_at}
    return render(request, "404.html", context, status=404)


def _navigation(request: HttpRequest, here: str, frame: Frame) -> list[dict[str, Any]]:
    first = first_filters(request)
    tenant = tenant_of(request)
    if tenant is not None:
        own = NavItem("who", "tenants", tenant, "user", "n", "ops:tenant")
        return [{"item": own, "url": home_of(tenant), "here": own.key == here, "apart": False}]
    shown = [item for item in NAVIGATION if may(request, item.permission)]
    before = [item.group for item in shown[:1] + shown]
    return [
        {
            "item": item,
            "url": reverse(item.route) + (f"?{urlencode({'filter': first[item.key]})}" if item.key in first else ""),
            "here": item.key == here,
            "apart": item.group != group,
            "tally": _tally(frame, item.key),
        }
        for item, group in zip(shown, before, strict=False)
    ]


def _tally(frame: Frame, entry: str) -> str:
    """The live count beside an entry of the navigation, where it has one."""
    found = frame.fragments.get(tally_id(entry))
    return mark_safe(found.html) if found else ""  # noqa: S308 - drawn with autoescaping by the live renderer


def _notice(frame: Frame, age_s: float, *, lost: bool) -> str:
    if lost:
        return NOTICES["lost"]
    if frame.seq and age_s > STALE_AFTER_S:
        return NOTICES["stale"]
    return ""
