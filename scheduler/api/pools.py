"""Pools over REST."""

from __future__ import annotations

from collections.abc import Mapping

from django.http import HttpRequest, HttpResponse

from scheduler.api.access import ADMIN, OPERATE_ALL, READ, caller_of
from scheduler.api.answers import once_per_key, respond
from scheduler.api.control_schemas import PauseIn, PoolEditIn, PoolIn, PoolOut, PoolsOut, present_pool
from scheduler.api.fields import PROBLEMS, Problem
from scheduler.api.router import Router
from scheduler.api.scale_schemas import PoolWhyOut, ScaleOut, present_pool_why, present_scale
from scheduler.api.task_schemas import ReasonIn
from scheduler.api.threads import in_pool
from scheduler.engine.doorbell import ring
from scheduler.engine.executors.http_config import HttpConfig, HttpConfigError
from scheduler.errors import FieldError, Refused
from scheduler.providers.llm_config import LlmConfig, LlmConfigError
from scheduler.reads.pool_why import pool_why
from scheduler.reads.pools import list_pools, pool_detail
from scheduler.reads.scale import pool_scale
from scheduler.services.pools import add_pool, edit_pool, pause_pool, resume_pool

router = Router(tags=["pools"])


@router.get("/pools", auth=READ, operation_id="list_pools", response={200: PoolsOut, PROBLEMS: Problem})
@in_pool
def get_pools(request: HttpRequest) -> HttpResponse:
    """All pools and what they hold now."""
    return respond(200, PoolsOut(pools=[present_pool(p, with_config=_sees_config(request)) for p in list_pools()]))


@router.get("/pools/{name}", auth=READ, operation_id="get_pool", response={200: PoolOut, PROBLEMS: Problem})
@in_pool
def get_pool(request: HttpRequest, name: str) -> HttpResponse:
    """One pool."""
    return respond(200, _pool(request, name))


@router.get("/pools/{name}/scale", auth=READ, operation_id="scale_pool", response={200: ScaleOut, PROBLEMS: Problem})
@in_pool
def get_scale(request: HttpRequest, name: str) -> HttpResponse:
    """How many slots the pool should have, with the arithmetic.

    For KEDA's `metrics-api` scaler: `valueLocation: desired`, and `targetValue` the slots that one worker offers.
    """
    return respond(200, present_scale(pool_scale(name)))


@router.get("/pools/{name}/why", auth=READ, operation_id="why_pool", response={200: PoolWhyOut, PROBLEMS: Problem})
@in_pool
def get_why(request: HttpRequest, name: str) -> HttpResponse:
    """Why the pool does not start more than it does, in words."""
    return respond(200, present_pool_why(pool_why(name)))


@router.post("/pools", auth=ADMIN, operation_id="add_pool", response={201: PoolOut, PROBLEMS: Problem})
@in_pool
def post_pool(request: HttpRequest, body: PoolIn) -> HttpResponse:
    """Declare a pool."""
    settings = body.settings()
    _check_config(body.executor, settings.config)

    def act() -> tuple[int, PoolOut]:
        actor = caller_of(request).actor
        add_pool(body.name, body.executor, settings, actor=actor, reason=body.reason, source="api")
        return 201, _pool(request, body.name)

    return once_per_key(request, act)


@router.patch("/pools/{name}", auth=ADMIN, operation_id="edit_pool", response={200: PoolOut, PROBLEMS: Problem})
@in_pool
def patch_pool(request: HttpRequest, name: str, body: PoolEditIn) -> HttpResponse:
    """Change a pool; applies at the next plan. 409 with both versions when it was changed meanwhile."""
    changes = body.changes()
    if "config" in changes:
        _check_config(pool_detail(name).executor, changes["config"])
    actor = caller_of(request).actor
    edit_pool(name, body.version, changes, actor=actor, reason=body.reason, source="api")
    ring()
    return respond(200, _pool(request, name))


@router.post(
    "/pools/{name}/pause", auth=OPERATE_ALL, operation_id="pause_pool", response={200: PoolOut, PROBLEMS: Problem}
)
@in_pool
def post_pause(request: HttpRequest, name: str, body: PauseIn | None = None) -> HttpResponse:
    """Start nothing new in the pool, for a while or until it is resumed. Pausing a paused pool changes nothing."""

    def act() -> tuple[int, PoolOut]:
        reason, for_s = ("", None) if body is None else (body.reason, body.for_s)
        pause_pool(name, for_s=for_s, actor=caller_of(request).actor, reason=reason, source="api")
        return 200, _pool(request, name)

    return once_per_key(request, act)


@router.post(
    "/pools/{name}/resume", auth=OPERATE_ALL, operation_id="resume_pool", response={200: PoolOut, PROBLEMS: Problem}
)
@in_pool
def post_resume(request: HttpRequest, name: str, body: ReasonIn | None = None) -> HttpResponse:
    """Start again with what waits."""

    def act() -> tuple[int, PoolOut]:
        reason = body.reason if body is not None else ""
        resume_pool(name, actor=caller_of(request).actor, reason=reason, source="api")
        return 200, _pool(request, name)

    return once_per_key(request, act)


def _pool(request: HttpRequest, name: str) -> PoolOut:
    return present_pool(pool_detail(name), with_config=_sees_config(request))


def _sees_config(request: HttpRequest) -> bool:
    caller = caller_of(request)
    return "admin" in caller.scopes and caller.tenant_id is None


def _check_config(executor: str, config: Mapping[str, object]) -> None:
    """Raise Refused when the executor would refuse this configuration."""
    try:
        if executor == "llm":
            LlmConfig.parse(config)
        elif executor == "http":
            HttpConfig.parse(config)
    except (LlmConfigError, HttpConfigError) as error:
        raise Refused(str(error), code="bad_pool", errors=(FieldError(("config",), str(error)),)) from error
