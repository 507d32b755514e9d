"""Routes over REST: which models can do what is asked for."""

from __future__ import annotations

from typing import Annotated

from django.http import HttpRequest, HttpResponse
from pydantic import ConfigDict, Field

from scheduler.api.access import ADMIN, READ, caller_of
from scheduler.api.answers import In, Out, once_per_key, respond
from scheduler.api.fields import PROBLEMS, Name, Number, Problem, Reason, Text, Version
from scheduler.api.router import Router
from scheduler.api.threads import in_pool
from scheduler.policy.routes import OPTIONS_MAX, Option
from scheduler.reads.routes import RouteDetail, list_routes, route_detail
from scheduler.services.routes import add_route, edit_route

router = Router(tags=["routes"])


class OptionIn(In):
    """A model, and what a call of it takes of shared limits."""

    model: Text
    resources: dict[Name, Annotated[Number, Field(gt=0, le=1e12)]] = {}

    def option(self) -> Option:
        """As the services take it."""
        return Option(self.model, self.resources)


class RouteIn(In):
    """The models that have a capability, cheapest first."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "capability": "draft",
                    "models": [
                        {"model": "small", "resources": {"openai": 1}},
                        {"model": "large", "resources": {"anthropic": 1}},
                    ],
                    "degraded_model": "small",
                }
            ]
        }
    )

    capability: Text
    models: Annotated[list[OptionIn], Field(max_length=OPTIONS_MAX)]
    degraded_model: Text | None = Field(None, description="Used while the task's pool is overloaded")
    reason: Reason = ""


class RouteEditIn(In):
    """What to change of a route; what is left out stays."""

    version: Version
    models: Annotated[list[OptionIn], Field(max_length=OPTIONS_MAX)] | None = None
    degraded_model: Text | None = None
    reason: Reason = ""


class OptionOut(Out):
    """A model of a route, and how many ready tasks are to go to it."""

    model: str
    resources: dict[str, float]
    waiting: int


class RouteOut(Out):
    """A route: a task goes to the first model whose provider is up and whose wait fits its deadline."""

    capability: str
    version: int
    models: list[OptionOut]
    degraded_model: str | None


class RoutesOut(Out):
    """All routes by capability."""

    routes: list[RouteOut]


@router.get("/routes", auth=READ, operation_id="list_routes", response={200: RoutesOut, PROBLEMS: Problem})
@in_pool
def get_routes(request: HttpRequest) -> HttpResponse:
    """All routes."""
    return respond(200, RoutesOut(routes=[_present(each) for each in list_routes()]))


@router.get("/routes/{capability}", auth=READ, operation_id="get_route", response={200: RouteOut, PROBLEMS: Problem})
@in_pool
def get_route(request: HttpRequest, capability: str) -> HttpResponse:
    """One route."""
    return respond(200, _present(route_detail(capability)))


@router.post("/routes", auth=ADMIN, operation_id="add_route", response={201: RouteOut, PROBLEMS: Problem})
@in_pool
def post_route(request: HttpRequest, body: RouteIn) -> HttpResponse:
    """Declare which models have a capability."""

    def act() -> tuple[int, RouteOut]:
        options = [each.option() for each in body.models]
        actor = caller_of(request).actor
        add_route(body.capability, options, body.degraded_model, actor=actor, reason=body.reason, source="api")
        return 201, _present(route_detail(body.capability))

    return once_per_key(request, act)


@router.patch(
    "/routes/{capability}", auth=ADMIN, operation_id="edit_route", response={200: RouteOut, PROBLEMS: Problem}
)
@in_pool
def patch_route(request: HttpRequest, capability: str, body: RouteEditIn) -> HttpResponse:
    """Change a route for what is routed from now on. 409 with both versions when it was changed meanwhile."""
    options = None if body.models is None else [each.option() for each in body.models]
    given = "degraded_model" in body.model_fields_set
    degraded = body.degraded_model if given else route_detail(capability).degraded_model
    actor = caller_of(request).actor
    edit_route(capability, body.version, options, degraded, actor=actor, reason=body.reason, source="api")
    return respond(200, _present(route_detail(capability)))


def _present(found: RouteDetail) -> RouteOut:
    models = [
        OptionOut(model=option.model, resources=dict(option.resources), waiting=waiting)
        for option, waiting in zip(found.options, found.waiting, strict=True)
    ]
    return RouteOut(
        capability=found.capability, version=found.version, models=models, degraded_model=found.degraded_model
    )
