"""Shared limits over REST."""

from __future__ import annotations

from typing import Protocol

from django.http import HttpRequest, HttpResponse

from scheduler.api.access import ADMIN, OPERATE_ALL, READ, caller_of
from scheduler.api.answers import once_per_key, respond
from scheduler.api.fields import PROBLEMS, Problem
from scheduler.api.resource_schemas import (
    OverrideIn,
    ResourceEditIn,
    ResourceIn,
    ResourceOut,
    ResourcesOut,
    present_resource,
)
from scheduler.api.router import Router
from scheduler.api.task_schemas import ReasonIn
from scheduler.api.threads import in_pool
from scheduler.engine.doorbell import ring
from scheduler.policy.declarations import OverrideSettings
from scheduler.reads.resources import list_resources, resource_detail
from scheduler.services.mending import pause_resource, reset_breaker, reset_factor, resume_resource
from scheduler.services.resources import add_resource, edit_resource, lift_override, override_resource

router = Router(tags=["resources"])


@router.get("/resources", auth=READ, operation_id="list_resources", response={200: ResourcesOut, PROBLEMS: Problem})
@in_pool
def get_resources(request: HttpRequest) -> HttpResponse:
    """All shared limits and what is left of them."""
    return respond(200, ResourcesOut(resources=[present_resource(r) for r in list_resources()]))


@router.get("/resources/{name}", auth=READ, operation_id="get_resource", response={200: ResourceOut, PROBLEMS: Problem})
@in_pool
def get_resource(request: HttpRequest, name: str) -> HttpResponse:
    """One shared limit."""
    return respond(200, present_resource(resource_detail(name)))


@router.post("/resources", auth=ADMIN, operation_id="add_resource", response={201: ResourceOut, PROBLEMS: Problem})
@in_pool
def post_resource(request: HttpRequest, body: ResourceIn) -> HttpResponse:
    """Declare a shared limit. A token bucket starts full."""

    def act() -> tuple[int, ResourceOut]:
        actor = caller_of(request).actor
        add_resource(body.name, body.kind, body.settings(), actor=actor, reason=body.reason, source="api")
        return 201, present_resource(resource_detail(body.name))

    return once_per_key(request, act)


@router.patch(
    "/resources/{name}", auth=ADMIN, operation_id="edit_resource", response={200: ResourceOut, PROBLEMS: Problem}
)
@in_pool
def patch_resource(request: HttpRequest, name: str, body: ResourceEditIn) -> HttpResponse:
    """Change a limit from the next plan on; 0 pauses it. 409 with both versions when it was changed meanwhile."""
    actor = caller_of(request).actor
    edit_resource(name, body.version, body.changes(), actor=actor, reason=body.reason, source="api")
    ring()
    return respond(200, present_resource(resource_detail(name)))


@router.post(
    "/resources/{name}/override",
    auth=OPERATE_ALL,
    operation_id="override_resource",
    response={200: ResourceOut, PROBLEMS: Problem},
)
@in_pool
def post_override(request: HttpRequest, name: str, body: OverrideIn) -> HttpResponse:
    """Let other figures go before the declared ones for a while; it ends by itself, and the next one replaces it."""
    until = None if body.until is None else body.until.timestamp()
    override = OverrideSettings(rate=body.rate, burst=body.burst, permits=body.permits, until=until)

    def act() -> tuple[int, ResourceOut]:
        actor = caller_of(request).actor
        override_resource(name, override, for_s=body.for_s, actor=actor, reason=body.reason, source="api")
        return 200, present_resource(resource_detail(name))

    return once_per_key(request, act)


@router.delete(
    "/resources/{name}/override",
    auth=OPERATE_ALL,
    operation_id="lift_override",
    response={200: ResourceOut, PROBLEMS: Problem},
)
@in_pool
def delete_override(request: HttpRequest, name: str) -> HttpResponse:
    """Let the declared figures count again. Lifting what is not there changes nothing."""
    lift_override(name, actor=caller_of(request).actor, source="api")
    ring()
    return respond(200, present_resource(resource_detail(name)))


@router.post(
    "/resources/{name}/pause",
    auth=OPERATE_ALL,
    operation_id="pause_resource",
    response={200: ResourceOut, PROBLEMS: Problem},
)
@in_pool
def post_pause(request: HttpRequest, name: str, body: ReasonIn | None = None) -> HttpResponse:
    """Let nothing be taken of a limit until it is resumed; what runs goes on. Pausing it twice changes nothing."""
    return _acted(request, name, pause_resource, body)


@router.post(
    "/resources/{name}/resume",
    auth=OPERATE_ALL,
    operation_id="resume_resource",
    response={200: ResourceOut, PROBLEMS: Problem},
)
@in_pool
def post_resume(request: HttpRequest, name: str, body: ReasonIn | None = None) -> HttpResponse:
    """Let be taken of a limit again, whoever paused it: a person, or the provider that wanted money."""
    return _acted(request, name, resume_resource, body)


@router.post(
    "/resources/{name}/breaker/reset",
    auth=OPERATE_ALL,
    operation_id="reset_breaker",
    response={200: ResourceOut, PROBLEMS: Problem},
)
@in_pool
def post_reset_breaker(request: HttpRequest, name: str, body: ReasonIn | None = None) -> HttpResponse:
    """Close the breaker and forget its failures. Closing a closed one changes nothing."""
    return _acted(request, name, reset_breaker, body)


@router.post(
    "/resources/{name}/factor/reset",
    auth=OPERATE_ALL,
    operation_id="reset_factor",
    response={200: ResourceOut, PROBLEMS: Problem},
)
@in_pool
def post_reset_factor(request: HttpRequest, name: str, body: ReasonIn | None = None) -> HttpResponse:
    """Let the limit have all that is declared again, whatever its provider refused before."""
    return _acted(request, name, reset_factor, body)


class _Act(Protocol):
    def __call__(self, name: str, *, actor: str, reason: str, source: str) -> None: ...


def _acted(request: HttpRequest, name: str, mend: _Act, body: ReasonIn | None) -> HttpResponse:
    def act() -> tuple[int, ResourceOut]:
        reason = body.reason if body is not None else ""
        mend(name, actor=caller_of(request).actor, reason=reason, source="api")
        return 200, present_resource(resource_detail(name))

    return once_per_key(request, act)
