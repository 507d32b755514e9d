"""Top-ups of budgets over REST: more to spend for a while."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

from django.http import HttpRequest, HttpResponse
from ninja import Query
from pydantic import Field

from scheduler.api.access import ADMIN, READ, caller_of
from scheduler.api.answers import In, Out, at, moment, once_per_key, respond
from scheduler.api.fields import PROBLEMS, Ahead, Moment, Problem, Text, Usd
from scheduler.api.router import Router
from scheduler.api.threads import in_pool
from scheduler.engine.doorbell import ring
from scheduler.policy.books import TopUpRow
from scheduler.policy.money import format_usd, parse_usd
from scheduler.reads.spending import list_top_ups
from scheduler.reads.tasks import ID_MAX
from scheduler.services.changes import Author
from scheduler.services.top_ups import add_top_up, end_top_up

router = Router(tags=["money"])


class TopUpIn(In):
    """What to add to a budget, and until when: name a time or how long."""

    amount_usd: Usd
    until: Moment | None = Field(None, description="It ends with the budget's period at the latest")
    for_s: Ahead | None = Field(None, description="The same as seconds from now")
    reason: Annotated[Text, Field(min_length=1, max_length=500, description="Why; kept in the audit")]


class TopUpOut(Out):
    """A top-up. `ended_at`: when somebody ended it before its time."""

    id: int
    amount_usd: str
    starts_at: datetime
    ends_at: datetime
    ended_at: datetime | None
    in_force: bool
    actor: str
    reason: str


class TopUpsOut(Out):
    """A page of top-ups, newest first."""

    top_ups: list[TopUpOut]
    next_before: int | None = Field(description="Pass it as `before` for the next page; null at the end")


class TopUpQuery(In):
    """Which top-ups."""

    before: Annotated[int, Field(ge=1, le=ID_MAX)] | None = None
    limit: Annotated[int, Field(ge=1, le=100)] = 50


@router.get(
    "/tenants/{slug}/top-ups", auth=READ, operation_id="list_top_ups", response={200: TopUpsOut, PROBLEMS: Problem}
)
@in_pool
def get_top_ups(request: HttpRequest, slug: str, query: Query[TopUpQuery]) -> HttpResponse:
    """What was added to a tenant's budgets, newest first."""
    rows = list_top_ups(slug, caller_of(request).tenant_id, before=query.before, rows_max=query.limit)
    more = rows[-1].id if len(rows) == query.limit else None
    return respond(200, TopUpsOut(top_ups=[_present(row) for row in rows], next_before=more))


@router.post(
    "/tenants/{slug}/top-ups", auth=ADMIN, operation_id="add_top_up", response={201: TopUpOut, PROBLEMS: Problem}
)
@in_pool
def post_top_up(request: HttpRequest, slug: str, body: TopUpIn) -> HttpResponse:
    """Let a tenant spend more for a while. What waited for money starts at once."""

    def act() -> tuple[int, TopUpOut]:
        until = None if body.until is None else body.until.timestamp()
        author = Author(caller_of(request).actor, "api", body.reason)
        return 201, _present(add_top_up(slug, parse_usd(body.amount_usd), author, until=until, for_s=body.for_s))

    return once_per_key(request, act)


@router.delete(
    "/tenants/{slug}/top-ups/{top_up_id}",
    auth=ADMIN,
    operation_id="end_top_up",
    response={200: TopUpOut, PROBLEMS: Problem},
)
@in_pool
def delete_top_up(request: HttpRequest, slug: str, top_up_id: int) -> HttpResponse:
    """End a top-up now. What was spent meanwhile stays spent. One that is over stays as it is."""
    found = end_top_up(slug, top_up_id if 0 < top_up_id <= ID_MAX else 0, Author(caller_of(request).actor, "api"))
    ring()
    return respond(200, _present(found))


def _present(row: TopUpRow) -> TopUpOut:
    return TopUpOut(
        id=row.id,
        amount_usd=format_usd(row.amount),
        starts_at=moment(row.starts_at),
        ends_at=moment(row.ends_at),
        ended_at=at(row.ended_at),
        in_force=row.in_force,
        actor=row.actor,
        reason=row.reason,
    )
