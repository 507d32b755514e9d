"""The page of one engine or worker: where it stands, what it runs, and the form that drains it."""

from __future__ import annotations

from uuid import UUID

from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from django.views.decorators.http import require_POST, require_safe

from scheduler.errors import NotFound, Refused
from scheduler.reads.worker_pages import figures, story
from scheduler.services.workers import drain as drain_worker
from scheduler.web import audit_story, worker_words
from scheduler.web.access import OPERATE_WORKER, VIEW_CONSOLE, may, needs
from scheduler.web.acting import author_of, done, reason_of
from scheduler.web.shell import missing, page
from scheduler.web.task_story import when
from scheduler.web.toast import Toast


@require_safe
@needs(VIEW_CONSOLE)
def worker(request: HttpRequest, worker_id: UUID) -> HttpResponse:
    """One worker."""
    return _page(request, worker_id)


def _page(
    request: HttpRequest, worker_id: UUID, *, status: int = 200, reason: str = "", fault: str = ""
) -> HttpResponse:
    """The page of a worker, after a refused action with the input kept and the fault beside it."""
    try:
        told = story(str(worker_id))
    except NotFound as refusal:
        return missing(request, refusal.detail)
    now = figures().now
    line = worker_words.line_of(told.row, told.pools, now=now)
    offers = sorted((told.pools.get(pool, "removed"), count) for pool, count in told.row.slots.items())
    return page(
        request,
        "ops/worker.html",
        title=told.row.name,
        nav="workers",
        status=status,
        line=line,
        worker=told.row,
        says=worker_words.state_sentence(told.row),
        offers=offers,
        started=when(told.row.started_at),
        held=[worker_words.held_line(row, now=now) for row in told.held],
        more=told.more,
        looked=when(now),
        page_url=reverse("ops:worker", kwargs={"worker_id": worker_id}),
        may_operate=may(request, OPERATE_WORKER),
        permission=OPERATE_WORKER,
        reason=reason,
        fault=fault,
        **audit_story.panel(request, f"worker:{told.row.id}", told.audit),
    )


@require_POST
@needs(OPERATE_WORKER)
def drain(request: HttpRequest, worker_id: UUID) -> HttpResponse:
    """Have a remote worker finish what it has and take nothing new. The reason is required."""
    reason = reason_of(request)
    if not reason:
        return _page(request, worker_id, status=422, fault="Say why: it stays in the audit.")
    try:
        row = story(str(worker_id)).row
        if row.kind == "engine" or row.draining:
            said = "It drains already." if row.draining else "An engine is stopped by ending its process."
            return _page(request, worker_id, status=409, reason=reason, fault=f"{said} Nothing was changed.")
        drain_worker(row.id, None, author_of(request))
    except NotFound as refusal:
        return missing(request, refusal.detail)
    except Refused as refusal:
        return _page(request, worker_id, status=422, reason=reason, fault=refusal.detail)
    url = reverse("ops:worker", kwargs={"worker_id": worker_id})
    return done(request, url, Toast("It drains: what it has is finished, nothing new comes."))
