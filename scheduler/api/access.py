"""Decides who may call a route: the token's scopes, and whether it acts for every tenant. Deny by default.

A route without a scope answers nobody. What exists in another tenant is not found, never forbidden.
"""

from __future__ import annotations

from functools import partial
from typing import Final, cast

from django.http import HttpRequest
from ninja.security import HttpBearer

from scheduler.api.threads import in_thread
from scheduler.errors import FieldError, Forbidden, NotFound, Refused
from scheduler.policy.types import TenantId
from scheduler.services.tenants import load_tenant
from scheduler.services.tokens import Principal, authenticate, recall


class BearerToken(HttpBearer):
    """Lets in tokens with `scope`; with `everywhere`, only those that act for every tenant."""

    def __init__(self, scope: str, *, everywhere: bool = False) -> None:
        super().__init__()
        self.scope = scope
        self.everywhere = everywhere

    def authenticate(self, request: HttpRequest, token: str) -> Principal | None:  # noqa: ARG002 - ninja's signature
        """Who calls. None for a token that opens nothing; raises Forbidden for one that does not open this."""
        return self.admitted(authenticate(token.strip()))

    def admitted(self, caller: Principal | None) -> Principal | None:
        """The caller, if this is open to it; raises Forbidden as `authenticate` does."""
        if caller is None:
            return None
        if self.scope not in caller.scopes:
            raise Forbidden(f"This needs a token with the scope {self.scope!r}.", code="missing_scope")
        if self.everywhere and caller.tenant_id is not None:
            detail = "This concerns every tenant; it needs a token that is not bound to one."
            raise Forbidden(detail, code="needs_all_tenants")
        return caller


class AsyncBearerToken(BearerToken):
    """The same for async views: a token that the process remembers opens without asking the database."""

    is_async = True

    async def authenticate(self, request: HttpRequest, token: str) -> Principal | None:  # type: ignore[override]  # ninja awaits it
        """Who calls."""
        known = recall(token.strip())
        if known is not None:
            return self.admitted(known.caller)
        return await in_thread(partial(super().authenticate, request, token))


class Nobody(HttpBearer):
    """What guards a route that forgot to say its scope."""

    def authenticate(self, request: HttpRequest, token: str) -> None:  # noqa: ARG002 - ninja's signature
        """Let nobody in."""
        raise Forbidden("No scope opens this.", code="missing_scope")


SUBMIT: Final = AsyncBearerToken("submit")
READ: Final = AsyncBearerToken("read")
WORK: Final = AsyncBearerToken("work")
OPERATE: Final = AsyncBearerToken("operate")
OPERATE_ALL: Final = AsyncBearerToken("operate", everywhere=True)
ADMIN: Final = AsyncBearerToken("admin", everywhere=True)
METRICS: Final = BearerToken("metrics", everywhere=True)


def caller_of(request: HttpRequest) -> Principal:
    """Who calls, on a route that let them in."""
    return cast("Principal", request.auth)  # type: ignore[attr-defined]  # set by ninja


def tenant_for_submit(caller: Principal, named: str | None) -> TenantId:
    """The tenant that new work belongs to. A token of all tenants has to name one."""
    if caller.tenant_id is not None:
        if named is not None and named != caller.tenant_slug:
            raise NotFound(f"There is no tenant {named!r}.", code="unknown_tenant")
        return caller.tenant_id
    if named is None:
        detail = "This token acts for every tenant; say for which one with 'tenant'."
        raise Refused(detail, code="tenant_required", errors=(FieldError(("tenant",), detail),))
    return load_tenant(named).id


def check_pools(caller: Principal, pools: set[str]) -> None:
    """Raise Forbidden when the token is bound to other pools."""
    if caller.pools is not None and not pools <= caller.pools:
        detail = f"This token may only submit to: {', '.join(sorted(caller.pools))}."
        raise Forbidden(detail, code="pool_not_allowed")
