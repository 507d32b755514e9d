"""Dead letters: groups of those that died alike, and the rows of one group."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from django.views.decorators.http import require_safe

from scheduler.errors import NotFound, Refused
from scheduler.live import wording
from scheduler.policy.filters import DEAD, Filter, Is, Key, format_filter
from scheduler.reads.dead import DeadGroup, find_group, list_dead_groups
from scheduler.reads.task_lists import find_page, top_of
from scheduler.web.access import OPERATE_TASK, VIEW_CONSOLE, may, needs
from scheduler.web.filtering import address, box_of, bulk_of, place_of
from scheduler.web.fresh_rows import DEAD_ONLY, fresh_url
from scheduler.web.shell import missing, page
from scheduler.web.task_rows import lines_of
from scheduler.web.task_story import When, when

BAR_WIDTH: Final = 4
BAR_HEIGHT: Final = 24


@dataclass(frozen=True, slots=True)
class Bar:
    """One hour of a trend, as an SVG rectangle."""

    x: int
    y: int
    height: int


@dataclass(frozen=True, slots=True)
class GroupLine:
    """A group as a row: `trend` says in words what the bars show."""

    fingerprint: str
    shape: str
    reason: str
    kind: str
    pool: str
    tenant: str
    count: str
    first: When
    last: When
    first_ago: str
    last_ago: str
    bars: tuple[Bar, ...]
    trend: str
    sample: int | None
    message: str


@require_safe
@needs(VIEW_CONSOLE)
def dead(request: HttpRequest) -> HttpResponse:
    """Groups, those that grew last first. A faulty filter is answered with 422 and what was shown before."""
    path = reverse("ops:dead")
    box = box_of(request)
    asked, fault = box.asked, box.fault
    try:
        found = list_dead_groups(asked, older=None if fault else request.GET.get("older"))
    except Refused as refusal:
        fault, asked = refusal.detail, Filter()
        found = list_dead_groups(asked, older=None)
    return page(
        request,
        "ops/dead.html",
        title="Dead letters",
        nav="dead",
        status=422 if fault else 200,
        box={"text": box.text, "fault": fault, "was": format_filter(asked), "path": path},
        lines=[_line(group, found.as_of) for group in found.groups],
        total=wording.count(sum(group.row.n for group in found.groups)),
        complete=found.older is None and "older" not in request.GET,
        asked=format_filter(asked),
        looked=when(found.as_of),
        newest_death=None if found.newest_death is None else when(found.newest_death),
        again=address(path, asked),
        older=address(path, asked, older=found.older),
        has_older=found.older is not None,
        newer=address(path, asked) if "older" in request.GET else "",
        fresh_url=fresh_url(asked, top_of(Filter((DEAD_ONLY, *asked.terms)), None), groups=True),
    )


@require_safe
@needs(VIEW_CONSOLE)
def group(request: HttpRequest, fingerprint: str) -> HttpResponse:
    """One group: what they have in common, and each of them."""
    try:
        found = find_group(fingerprint)
    except NotFound as refusal:
        return missing(request, refusal.detail)
    asked = Filter((Is(Key.STATE, (DEAD,)), Is(Key.FINGERPRINT, (found.fingerprint,))))
    rows = find_page(asked, None, older=place_of(request, "older"), newer=place_of(request, "newer"))
    path = reverse("ops:dead-group", kwargs={"fingerprint": found.fingerprint})
    return page(
        request,
        "ops/dead_group.html",
        title=found.row.shape or "No message",
        nav="dead",
        line=_line(found, rows.as_of),
        n=found.row.n,
        lines=lines_of(rows.rows, now=rows.as_of),
        filter=format_filter(asked),
        looked=when(rows.as_of),
        again=path,
        older=f"{path}?older={rows.older}" if rows.older is not None else "",
        newer=f"{path}?newer={rows.newer}" if rows.newer is not None else "",
        bulk=bulk_of(asked),
        may_operate=may(request, OPERATE_TASK),
    )


def _line(group: DeadGroup, now: float) -> GroupLine:
    row = group.row
    highest = max(*group.hours, 1)
    heights = [-(-hour * BAR_HEIGHT // highest) for hour in group.hours]
    bars = tuple(
        Bar(place * (BAR_WIDTH + 1), BAR_HEIGHT - height, height) for place, height in enumerate(heights) if height
    )
    day, this, before = (wording.count(n) for n in (sum(group.hours), group.hours[-1], group.hours[-2]))
    return GroupLine(
        fingerprint=group.fingerprint,
        shape=row.shape or "No message",
        reason=row.failure_class.replace("_", " "),
        kind=row.kind,
        pool=row.pool,
        tenant=row.tenant,
        count=wording.count(row.n),
        first=when(row.first_at),
        last=when(row.last_at),
        first_ago=wording.glance(max(0.0, now - row.first_at)),
        last_ago=wording.glance(max(0.0, now - row.last_at)),
        bars=bars,
        trend=f"{day} in 24 h, {this} this hour, {before} the hour before",
        sample=group.sample,
        message=group.message[:500],
    )
