"""The newest picture over REST, and what probes and Prometheus ask for outside `/api/v1`."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Final

from django.db import DatabaseError
from django.http import HttpRequest, HttpResponse
from django.views.decorators.http import require_safe

from scheduler.api.access import METRICS, READ, caller_of
from scheduler.api.answers import JSON, Out, moment, respond, to_json
from scheduler.api.fields import PROBLEMS, Problem
from scheduler.api.metrics import exposition
from scheduler.api.problems import answer, answer_unauthenticated
from scheduler.api.router import Router
from scheduler.api.threads import in_pool
from scheduler.errors import CronoqError, Unavailable
from scheduler.reads.health import health
from scheduler.reads.snapshot import latest_snapshot

router = Router(tags=["observing"])


class SnapshotOut(Out):
    """The picture that the console shows, at most a second old while an engine runs."""

    seq: int
    as_of: datetime
    body: dict[str, Any]


@router.get("/snapshot", auth=READ, operation_id="get_snapshot", response={200: SnapshotOut, PROBLEMS: Problem})
@in_pool
def get_snapshot(request: HttpRequest) -> HttpResponse:
    """The newest picture. A token of one tenant sees what all share, and of the rest what is its own."""
    row = latest_snapshot()
    if row is None:
        detail = "There is no snapshot yet: an engine writes one every second, and none has run on this database."
        raise Unavailable(detail, code="no_snapshot", retry_after_s=2.0)
    body = visible_to(row.body, caller_of(request).tenant_slug)
    return respond(200, SnapshotOut(seq=row.seq, as_of=moment(row.as_of), body=body))


SHARED: Final = ("seq", "as_of", "interval_s", "totals", "history", "pools", "resources", "workers")
"""Parts of a snapshot that belong to no tenant. What is added later is not shown to one before it is named here."""
OF_TENANTS: Final = ("failures", "budgets", "deaths")


def visible_to(body: dict[str, Any], tenant: str | None) -> dict[str, Any]:
    """A picture as a token of this tenant sees it; None: as one that acts for all."""
    if tenant is None:
        return body
    shared: dict[str, Any] = {key: body[key] for key in SHARED if key in body}
    own = {key: [row for row in body.get(key, []) if row.get("tenant") == tenant] for key in OF_TENANTS}
    burning = [row for row in body.get("spending", {}).get("tenants", []) if row.get("tenant") == tenant]
    return {**shared, **own, "spending": {"burn": sum(row["burn"] for row in burning), "tenants": burning}}


@require_safe
def healthz(_request: HttpRequest) -> HttpResponse:
    """Whether the process lives. Asks nobody."""
    return HttpResponse(to_json({"status": "ok"}), content_type=JSON)


@require_safe
def readyz(_request: HttpRequest) -> HttpResponse:
    """Whether the process can do its work: 503 while the database does not answer or lacks a migration."""
    found = health()
    word = "unavailable" if not found.ready else "degraded" if found.degraded else "ok"
    body = {
        "status": word,
        "checks": [{"name": check.name, "ok": check.ok, "text": check.text} for check in found.checks],
    }
    response = HttpResponse(to_json(body), status=200 if found.ready else 503, content_type=JSON)
    if not found.ready:
        response["Retry-After"] = "2"
    return response


@require_safe
def metrics(request: HttpRequest) -> HttpResponse:
    """The newest picture for Prometheus; needs a token with the scope `metrics`."""
    try:
        if not METRICS(request):
            return answer_unauthenticated(request)
        row = latest_snapshot()
    except (CronoqError, DatabaseError) as error:
        return answer(request, error)
    return HttpResponse(exposition(row), content_type="text/plain; version=0.0.4; charset=utf-8")
