"""Kills of more than a run over REST: a tenant, a pool, everything; and what lifts them."""

from __future__ import annotations

from datetime import datetime
from typing import Literal

from django.http import HttpRequest, HttpResponse
from pydantic import Field

from scheduler.api.access import ADMIN, caller_of
from scheduler.api.answers import In, Out, moment, once_per_key, respond
from scheduler.api.fields import PROBLEMS, Problem, Reason, Text
from scheduler.api.router import Router
from scheduler.api.threads import in_pool
from scheduler.policy.runs import KillScope
from scheduler.reads.runs import kills_in_force
from scheduler.services.kill import kill, lift

router = Router(tags=["kills"])


class KillIn(In):
    """What to kill, or to let go on."""

    scope: Literal["everything", "tenant", "pool"]
    name: Text | None = Field(None, description="The tenant's slug or the pool's name; nothing for everything")
    reason: Reason = ""


class KillOut(Out):
    """A kill in force."""

    scope: str
    name: str | None
    epoch: int
    killed_at: datetime | None = None
    actor: str | None = None
    reason: str = ""
    told: int | None = Field(default=None, description="Running attempts that were told to stop")


class KillsOut(Out):
    """The kills in force beside those of single runs."""

    kills: list[KillOut]


@router.get("/kills", auth=ADMIN, operation_id="list_kills", response={200: KillsOut, PROBLEMS: Problem})
@in_pool
def get_kills(request: HttpRequest) -> HttpResponse:
    """What is killed now, beside single runs."""
    kills = [
        KillOut(
            scope=row.scope.value,
            name=row.name or None,
            epoch=row.epoch,
            killed_at=moment(row.killed_at),
            actor=row.actor,
            reason=row.reason,
        )
        for row in kills_in_force()
    ]
    return respond(200, KillsOut(kills=kills))


@router.post("/kills", auth=ADMIN, operation_id="kill", response={200: KillOut, PROBLEMS: Problem})
@in_pool
def post_kills(request: HttpRequest, body: KillIn) -> HttpResponse:
    """Start nothing more of a tenant, of a pool, or at all, and tell what runs to stop. What waits stays."""

    def act() -> tuple[int, KillOut]:
        done = kill(KillScope(body.scope), body.name, actor=caller_of(request).actor, reason=body.reason, source="api")
        return 200, KillOut(scope=body.scope, name=body.name, epoch=done.epoch, told=done.told, reason=body.reason)

    return once_per_key(request, act)


@router.post("/kills/resume", auth=ADMIN, operation_id="lift_kill", response={200: KillOut, PROBLEMS: Problem})
@in_pool
def post_lift(request: HttpRequest, body: KillIn) -> HttpResponse:
    """Let what was killed start again."""

    def act() -> tuple[int, KillOut]:
        epoch = lift(KillScope(body.scope), body.name, actor=caller_of(request).actor, reason=body.reason, source="api")
        return 200, KillOut(scope=body.scope, name=body.name, epoch=epoch, reason=body.reason)

    return once_per_key(request, act)
