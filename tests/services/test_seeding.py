"""What `prepare` puts in place, and that doing it again keeps every secret that works."""

import pytest
from django.contrib.auth import authenticate as sign_in

from scheduler.models import Webhook
from scheduler.reads.pools import pool_detail
from scheduler.reads.tenants import tenant_detail
from scheduler.services.budgets import edit_budget
from scheduler.services.pools import edit_pool
from scheduler.services.seeding import seed_defaults
from scheduler.services.tokens import authenticate

pytestmark = pytest.mark.django_db
URL = "http://127.0.0.1:8001/v1"


def test_the_ways_in_open_what_they_promise() -> None:
    seed = seed_defaults(provider_url=URL)
    caller = authenticate(seed.token)
    assert caller is not None
    assert caller.tenant_slug == "acme"
    assert caller.scopes == {"submit", "read", "work", "operate"}
    admin = authenticate(seed.admin_token)
    assert admin is not None
    assert admin.tenant_id is None
    assert "admin" in admin.scopes
    user = sign_in(username=seed.username, password=seed.password)
    assert user is not None
    assert user.is_superuser
    assert pool_detail("llm").settings.config["base_url"] == URL


def test_again_with_the_same_secrets_changes_nothing() -> None:
    seed = seed_defaults(provider_url=URL)
    again = seed_defaults(provider_url=URL, token=seed.token, admin_token=seed.admin_token, password=seed.password)
    assert again == seed
    assert pool_detail("llm").version == 1


def test_lost_secrets_are_replaced() -> None:
    seed = seed_defaults(provider_url=URL)
    again = seed_defaults(provider_url=URL, token="cq_0_notatoken", admin_token=None, password=None)
    assert authenticate(again.token) is not None
    assert again.admin_token != seed.admin_token
    assert sign_in(username=again.username, password=again.password) is not None


def test_a_pool_that_follows_the_provider_moves_with_it_and_an_edited_one_stays() -> None:
    moved = "http://127.0.0.1:9001/v1"
    seed_defaults(provider_url=URL)
    seed_defaults(provider_url=moved, provider_url_before=URL)
    assert pool_detail("llm").settings.config["base_url"] == moved
    pool = pool_detail("llm")
    mine = {**pool.settings.config, "base_url": "http://models.example/v1"}
    edit_pool("llm", pool.version, {"config": mine}, actor="ada")
    seed_defaults(provider_url=URL, provider_url_before=moved)
    assert pool_detail("llm").settings.config["base_url"] == "http://models.example/v1"


def test_the_demo_has_targets_budgets_and_a_webhook_that_posts_nothing_and_what_was_edited_stays() -> None:
    seed_defaults(provider_url=URL, demo=True)
    assert pool_detail("llm").settings.slo == {"critical": 2.0, "high": 5.0, "normal": 30.0, "low": 600.0}
    acme = tenant_detail("acme", None)
    assert acme.monthly_nano == 1_000 * 10**9
    assert Webhook.objects.get().standing == "paused"
    edit_budget("acme", acme.version, {"limit": None}, actor="ada")
    seed_defaults(provider_url=URL, demo=True)
    assert tenant_detail("acme", None).monthly_nano is None
    assert Webhook.objects.count() == 1


def test_without_the_demo_there_is_none_of_that() -> None:
    seed_defaults(provider_url=URL)
    assert pool_detail("llm").settings.slo is None
    assert tenant_detail("globex", None).monthly_nano is None
    assert not Webhook.objects.exists()
