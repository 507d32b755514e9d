"""Tenants and tokens over REST."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse

from scheduler.api.access import ADMIN, READ, caller_of
from scheduler.api.answers import Out, once_per_key, respond
from scheduler.api.control_schemas import TokenIn, TokenOut
from scheduler.api.fields import PROBLEMS, Problem
from scheduler.api.router import Router
from scheduler.api.tenant_schemas import TenantEditIn, TenantIn, TenantOut, TenantsOut, present_tenant
from scheduler.api.threads import in_pool
from scheduler.engine.doorbell import ring
from scheduler.reads.tenants import list_tenants, tenant_detail
from scheduler.services.budgets import change_tenant, declare_tenant
from scheduler.services.tokens import create_token, revoke_token

router = Router(tags=["tenants"])


@router.get("/tenants", auth=READ, operation_id="list_tenants", response={200: TenantsOut, PROBLEMS: Problem})
@in_pool
def get_tenants(request: HttpRequest) -> HttpResponse:
    """The tenants that the token may see."""
    found = list_tenants(caller_of(request).tenant_id)
    return respond(200, TenantsOut(tenants=[present_tenant(t) for t in found]))


@router.get("/tenants/{slug}", auth=READ, operation_id="get_tenant", response={200: TenantOut, PROBLEMS: Problem})
@in_pool
def get_tenant(request: HttpRequest, slug: str) -> HttpResponse:
    """One tenant, with what it uses of its limits."""
    return respond(200, present_tenant(tenant_detail(slug, caller_of(request).tenant_id)))


@router.post("/tenants", auth=ADMIN, operation_id="add_tenant", response={201: TenantOut, PROBLEMS: Problem})
@in_pool
def post_tenant(request: HttpRequest, body: TenantIn) -> HttpResponse:
    """Declare a tenant."""

    def act() -> tuple[int, TenantOut]:
        declare_tenant(
            body.slug,
            budget=body.budget(),
            name=body.name,
            weight=body.weight,
            time_zone=body.time_zone,
            quota=body.limits(),
            actor=caller_of(request).actor,
            reason=body.reason,
        )
        return 201, present_tenant(tenant_detail(body.slug, None))

    return once_per_key(request, act, rings=False)


@router.patch("/tenants/{slug}", auth=ADMIN, operation_id="edit_tenant", response={200: TenantOut, PROBLEMS: Problem})
@in_pool
def patch_tenant(request: HttpRequest, slug: str, body: TenantEditIn) -> HttpResponse:
    """Change a tenant's weight, status, name or limits. 409 with both versions when it was changed meanwhile."""
    actor = caller_of(request).actor
    change_tenant(slug, body.version, body.changes(), budget=body.budget(), actor=actor, reason=body.reason)
    ring()
    return respond(200, present_tenant(tenant_detail(slug, None)))


@router.post("/tokens", auth=ADMIN, operation_id="create_token", response={201: TokenOut, PROBLEMS: Problem})
@in_pool
def post_token(request: HttpRequest, body: TokenIn) -> HttpResponse:
    """Make a token. Its secret is in this answer and nowhere else."""

    def act() -> tuple[int, TokenOut]:
        made = create_token(
            scopes=body.scopes,
            tenant=body.tenant,
            pools=body.pools,
            expires_at=None if body.expires_at is None else body.expires_at.timestamp(),
            name=body.name,
            actor=caller_of(request).actor,
            reason=body.reason,
            source="api",
        )
        return 201, TokenOut(id=made.public_id, token=made.text)

    return once_per_key(request, act, kept=_without_secret, rings=False)


@router.delete("/tokens/{token_id}", auth=ADMIN, operation_id="revoke_token", response={204: None, PROBLEMS: Problem})
@in_pool
def delete_token(request: HttpRequest, token_id: str) -> HttpResponse:
    """Make a token useless, everywhere within five seconds."""
    revoke_token(token_id, actor=caller_of(request).actor, source="api")
    return HttpResponse(status=204)


def _without_secret(body: Out) -> Out:
    return body.model_copy(update={"token": None})
