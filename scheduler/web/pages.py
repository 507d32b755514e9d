"""The pages people look at. Each names its live body and adds what is not live: forms and what a person may do."""

from __future__ import annotations

from difflib import get_close_matches
from typing import Any, Final

from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from django.views.decorators.http import require_safe

from scheduler.errors import NotFound
from scheduler.live import wording
from scheduler.live.frames import Key
from scheduler.live.newest import newest
from scheduler.policy.runs import KillScope
from scheduler.reads.history import last_hour
from scheduler.reads.pool_why import RUNNING_SHOWN_MAX, pool_story
from scheduler.reads.runs import kills_in_force
from scheduler.web import times
from scheduler.web.access import OPERATE_POOL, OPERATE_RUN, VIEW_CONSOLE, may, needs
from scheduler.web.history_chart import OLDEST, WAITING, hour_charts, hour_table
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
    may_operate = may(request, OPERATE_POOL)
    return page(request, "ops/pools.html", title="Pools", nav="pools", live=Key("pools"), may_operate=may_operate)


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


PAUSES: Final = (
    ("", "Until somebody resumes it"),
    ("900", "For 15 minutes, then it resumes by itself"),
    ("3600", "For 1 hour"),
    ("14400", "For 4 hours"),
    ("86400", "For 24 hours"),
)
"""How long a pause may be said to last, in seconds."""


POOL_HOUR: Final = (WAITING, OLDEST)


def pool_page(request: HttpRequest, name: str, *, status: int = 200, reason: str = "", fault: str = "") -> HttpResponse:
    """The page of a pool, after a refused action with the input kept and the fault beside it."""
    try:
        told = pool_story(name)
    except NotFound:
        return no_such_pool(request, name)
    hour = last_hour("pool", name, now=told.as_of)
    return page(
        request,
        "ops/pool.html",
        title=name,
        nav="pools",
        live=Key("pool", name),
        status=status,
        pool=told,
        running=[_running(each, told.as_of) for each in told.running],
        running_max=RUNNING_SHOWN_MAX,
        looked=times.clock(told.as_of),
        looked_machine=wording.machine(told.as_of),
        hour_charts=hour_charts(hour, POOL_HOUR),
        hour_table=hour_table(hour, POOL_HOUR),
        killed=next((k for k in kills_in_force() if (k.scope, k.name) == (KillScope.POOL, name)), None),
        resumes=times.day_and_clock(told.pause.resumes_at) if told.pause and told.pause.resumes_at else "",
        pauses=PAUSES,
        may_kill=may(request, OPERATE_RUN),
        may_operate=may(request, OPERATE_POOL),
        reason=reason,
        fault=fault,
    )


def _running(each: Any, now: float) -> dict[str, Any]:
    return {
        "task": each.task,
        "tenant": each.tenant,
        "cls": each.priority.label,
        "attempt": each.attempt,
        "age": wording.duration(now - each.since),
        "since": times.day_and_clock(each.since),
        "since_machine": wording.machine(each.since),
        "stopping": each.stopping,
    }


def no_such_pool(request: HttpRequest, name: str) -> HttpResponse:
    """The page that says that there is no such pool, with names much like it."""
    known = [pool.name for pool in newest.look().board.pools]
    near = get_close_matches(name, known, n=3, cutoff=0.5)
    return missing(request, f"There is no pool named “{name}”.", near=near, near_at=reverse("ops:pools"))
