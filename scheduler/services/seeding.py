"""Puts in place what a newcomer needs: two tenants, a pool, its limits, an administrator and two tokens.

Doing it again changes nothing that works: names that exist are left as they are, secrets of an earlier run stay valid
when they still open something.
"""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from typing import Final

from django.contrib.auth import get_user_model
from django.db import transaction

from scheduler.policy.books import PriceSettings
from scheduler.policy.declarations import SCOPES, LimitSettings, PoolSettings
from scheduler.policy.money import NANO
from scheduler.policy.types import ResourceKind
from scheduler.policy.webhooks import ALERTS, Standing
from scheduler.services.budgets import edit_budget
from scheduler.services.changes import Author
from scheduler.services.pools import add_pool, edit_pool
from scheduler.services.price_list import add_price
from scheduler.services.resources import add_resource
from scheduler.services.tenants import add_tenant
from scheduler.services.tokens import authenticate, create_token
from scheduler.services.webhooks import add_webhook, edit_webhook
from scheduler.store import accounts
from scheduler.store import control as store
from scheduler.store import resources as resource_store

USERNAME: Final = "admin"
ACTOR: Final = "setup"
DEMO_TENANT: Final = "acme"
TENANTS: Final = (DEMO_TENANT, "globex")
TOKEN_SCOPES: Final = ("submit", "read", "work", "operate")
SIM_PRICE: Final = {"ceiling_input_usd_per_mtok": "0.50", "ceiling_output_usd_per_mtok": "1.50"}
"""What the models of the simulator are taken to cost where nobody has set a price, so that budgets can be tried."""
SIM_MODEL: Final = PriceSettings(model="sim-small", input=500_000_000, output=1_500_000_000)
"""The price that is set for the one that the demo calls."""
DEMO_TARGETS: Final = {"critical": 2.0, "high": 5.0, "normal": 30.0, "low": 600.0}
"""Seconds that the demo's tasks may wait."""
DEMO_BUDGETS: Final = {"acme": 1_000 * NANO, "globex": 100 * NANO}
"""Nano-dollars a month. The second is too small for a whole month of the demo, and large enough for its first hours."""
DEMO_WEBHOOK: Final = "https://hooks.example.com/cronoq"
LIMITS: Final = {
    "openai": (ResourceKind.TOKEN_BUCKET, LimitSettings(rate=50.0, burst=100.0)),
    "openai-concurrency": (ResourceKind.SEMAPHORE, LimitSettings(permits=20)),
}


@dataclass(frozen=True, slots=True)
class Seed:
    """The ways in: `token` acts for the demo tenant, `admin_token` for the whole."""

    token: str
    admin_token: str
    username: str
    password: str


def seed_defaults(
    *,
    provider_url: str | None,
    provider_url_before: str | None = None,
    token: str | None = None,
    admin_token: str | None = None,
    password: str | None = None,
    demo: bool = False,
) -> Seed:
    """Have the defaults exist; returns the ways in, those of an earlier run when they still work.

    `provider_url` is the OpenAI-compatible base URL of the pool `llm`; when the pool still points to
    `provider_url_before`, it follows. Without it no pool is made. With `demo` what is made here also has what a visitor
    would like to see: targets, budgets, and a webhook that is paused, so that nothing is posted.
    """
    with transaction.atomic():
        _tenants(demo=demo)
        _limits()
        if provider_url is not None:
            _pool(provider_url, provider_url_before, DEMO_TARGETS if demo else None)
            _price()
        return Seed(
            token=_token(token, "demo", TOKEN_SCOPES, tenant=DEMO_TENANT),
            admin_token=_token(admin_token, "administration", SCOPES, tenant=None),
            username=USERNAME,
            password=_administrator(password),
        )


def _tenants(*, demo: bool) -> None:
    known = {row.slug for row in store.load_tenants(TENANTS)}
    for slug in TENANTS:
        if slug in known:
            continue
        row = add_tenant(slug, name=slug.title(), actor=ACTOR, source="system")
        if demo:
            edit_budget(slug, row.version, {"limit": DEMO_BUDGETS[slug]}, actor=ACTOR, source="system")
    if demo and not known:
        author = Author(ACTOR, "system")
        made = add_webhook(None, DEMO_WEBHOOK, (ALERTS,), author).webhook
        edit_webhook(made.id, None, made.version, {"standing": Standing.PAUSED}, author)


def _limits() -> None:
    known = {row.name for row in resource_store.load(list(LIMITS))}
    for name, (kind, settings) in LIMITS.items():
        if name not in known:
            add_resource(name, kind, settings, actor=ACTOR, source="system")


def _pool(provider_url: str, provider_url_before: str | None, targets: dict[str, float] | None) -> None:
    known = store.load_pools(["llm"])
    if not known:
        config = {"base_url": provider_url, "model": "sim-small", "quota_resource": "openai", **SIM_PRICE}
        settings = PoolSettings(
            config=config, slots_min=4, slots_max=64, slots=32, max_attempts=5, lease_ttl_s=30.0, slo=targets
        )
        add_pool("llm", "llm", settings, actor=ACTOR, source="system")
        return
    declared = known[0].settings.config
    if provider_url != provider_url_before and declared.get("base_url") == provider_url_before:
        changes = {"config": {**declared, "base_url": provider_url}}
        edit_pool("llm", known[0].version, changes, actor=ACTOR, reason="the provider moved", source="system")


def _price() -> None:
    if not accounts.load_prices(model=SIM_MODEL.model):
        add_price(SIM_MODEL, actor=ACTOR, source="system")


def _token(text: str | None, name: str, scopes: tuple[str, ...], *, tenant: str | None) -> str:
    if text is not None and authenticate(text) is not None:
        return text
    return create_token(scopes=scopes, tenant=tenant, name=name, actor=ACTOR, source="system").text


def _administrator(password: str | None) -> str:
    """Have the administrator exist. A password changed by hand stays; one that nobody knows is replaced."""
    users = get_user_model()
    user = users.objects.filter(username=USERNAME).first()
    wanted = password or secrets.token_urlsafe(15)
    if user is None:
        users.objects.create_superuser(username=USERNAME, password=wanted)
    elif password is None:
        user.set_password(wanted)
        user.save(update_fields=["password"])
    return wanted
