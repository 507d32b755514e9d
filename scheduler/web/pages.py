"""The pages people look at. Each names its live body and adds what is not live: forms and what a person may do."""

from __future__ import annotations

from difflib import get_close_matches

from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from django.views.decorators.http import require_safe

from scheduler.errors import NotFound
from scheduler.live.frames import Key
from scheduler.live.newest import newest
from scheduler.reads.pool_why import longest_waiting
from scheduler.reads.pools import pool_detail
from scheduler.web.access import OPERATE_POOL, VIEW_CONSOLE, needs
from scheduler.web.shell import missing, page


@require_safe
@needs(VIEW_CONSOLE)
def overview(request: HttpRequest) -> HttpResponse:
    """Is anything wrong, where, and how long until it hurts?"""
    return page(request, "ops/page.html", title="Overview", nav="overview", live=Key("overview"))


@require_safe
@needs(VIEW_CONSOLE)
def pools(request: HttpRequest) -> HttpResponse:
    """Every pool, trouble first."""
    return page(request, "ops/page.html", title="Pools", nav="pools", live=Key("pools"))


@require_safe
@needs(VIEW_CONSOLE)
def resources(request: HttpRequest) -> HttpResponse:
    """Every shared limit, worst first."""
    return page(request, "ops/page.html", title="Resources", nav="resources", live=Key("resources"))


@require_safe
@needs(VIEW_CONSOLE)
def pool(request: HttpRequest, name: str) -> HttpResponse:
    """One pool: what it does, what bounds it, and the forms to pause and resume it."""
    return pool_page(request, name)


def pool_page(request: HttpRequest, name: str, *, status: int = 200, reason: str = "", fault: str = "") -> HttpResponse:
    """The page of a pool, after a refused action with the input kept and the fault beside it."""
    try:
        detail = pool_detail(name)
    except NotFound:
        return _no_such_pool(request, name)
    return page(
        request,
        "ops/pool.html",
        title=detail.name,
        nav="pools",
        live=Key("pool", detail.name),
        status=status,
        pool=detail,
        longest=longest_waiting(detail.name),
        may_operate=request.user.has_perm(OPERATE_POOL),
        reason=reason,
        fault=fault,
    )


def _no_such_pool(request: HttpRequest, name: str) -> HttpResponse:
    known = [pool.name for pool in newest.look().board.pools]
    near = get_close_matches(name, known, n=3, cutoff=0.5)
    return missing(request, f"There is no pool named “{name}”.", near=near, near_at=reverse("ops:pools"))
