"""The API assembled: routers, error handlers, addresses. Wiring only."""

from __future__ import annotations

from typing import Any, Final

from django.http import Http404, HttpRequest, HttpResponse
from django.urls import URLPattern, URLResolver, path
from django.views.decorators.csrf import csrf_exempt
from ninja import NinjaAPI
from ninja.errors import HttpError, ValidationError
from ninja.openapi.schema import OpenAPISchema

from scheduler.api import (
    audit,
    forecast,
    groups,
    kills,
    money,
    observing,
    operations,
    pools,
    previews,
    problems,
    resources,
    routes,
    runs,
    schedules,
    tasks,
    tenants,
    top_ups,
    webhooks,
    workers,
)
from scheduler.api.access import BearerToken, Nobody
from scheduler.api.answers import Renderer
from scheduler.api.bodies import StrictParser
from scheduler.api.fields import PROBLEMS

DESCRIPTION: Final = """Submit work, look at it, and run the pools and limits it shares.

Send `Authorization: Bearer cq_…` with every request. Errors are problem documents (RFC 9457): decide by `code`.
An `Idempotency-Key` on a POST makes it safe to repeat. Times are RFC 3339 in UTC, durations are seconds."""


class Api(NinjaAPI):
    """Ninja with our documents: problems by their content type, and the scope that each operation needs."""

    def get_openapi_schema(
        self, *, path_prefix: str | None = None, path_params: dict[str, Any] | None = None
    ) -> OpenAPISchema:
        """The OpenAPI document."""
        schema = super().get_openapi_schema(path_prefix=path_prefix, path_params=path_params)
        scopes = self._scopes()
        for methods in schema["paths"].values():
            for operation in methods.values():
                _describe(operation, scopes[operation["operationId"]])
        return schema

    def _scopes(self) -> dict[str, str]:
        """Scope by operation id."""
        return {
            operation.operation_id or "": guard.scope
            for router in self._get_bound_routers()
            for view in router.path_operations.values()
            for operation in view.operations
            for guard in operation.auth_callbacks
            if isinstance(guard, BearerToken)
        }


def _describe(operation: dict[str, Any], scope: str) -> None:
    operation["x-scope"] = scope
    operation["description"] = f"{operation.get('description', '')}\n\nScope: `{scope}`."
    for status, answer in operation["responses"].items():
        if int(status) in PROBLEMS and "content" in answer:
            answer["content"] = {problems.CONTENT_TYPE: next(iter(answer["content"].values()))}


api = Api(
    title="cronoq",
    version="1",
    description=DESCRIPTION,
    urls_namespace="api",
    auth=Nobody(),
    parser=StrictParser(),
    renderer=Renderer(),
)
_ROUTERS: Final = (
    tasks,
    groups,
    runs,
    kills,
    pools,
    resources,
    routes,
    tenants,
    top_ups,
    schedules,
    previews,
    observing,
    forecast,
    workers,
    money,
    webhooks,
    audit,
    operations,
)
for _router in (module.router for module in _ROUTERS):
    api.add_router("", _router)

for _kind in (Exception, Http404, HttpError, ValidationError):
    api.add_exception_handler(_kind, problems.answer)


@csrf_exempt
async def nowhere(_request: HttpRequest, **_path: str) -> HttpResponse:
    """What is asked for under `/api/` and is not there."""
    return problems.answer_not_found()


urlpatterns: list[URLPattern | URLResolver] = [
    path("api/v1/", api.urls),
    path("api/<path:rest>", nowhere),
    path("healthz", observing.healthz, name="healthz"),
    path("readyz", observing.readyz, name="readyz"),
    path("metrics", observing.metrics, name="metrics"),
]
