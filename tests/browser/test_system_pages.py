"""Audit and settings in a real browser: readable in both themes and on a phone, and what one does there by hand."""

from __future__ import annotations

from typing import Any

from playwright.sync_api import Page, expect

from scheduler.models import ApiToken, Webhook
from scheduler.services.changes import Author, record
from scheduler.services.tokens import create_token
from scheduler.services.webhooks import add_webhook
from scheduler.services.webhooks import test_webhook as ask_for_a_test
from tests.browser.conftest import OpenPage
from tests.browser.test_look import SIZES, broken
from tests.browser.world import World

PATHS = (
    "/ops/audit/",
    "/ops/settings/",
    "/ops/settings/tokens/",
    "/ops/settings/webhooks/",
    "/ops/schedules/new/",
    "/ops/several-pools/",
    "/ops/search/?q=llm",
)


def some_changes() -> None:
    said: dict[str, Any] = {"before": {"slots": 8, "slo": {"high": 2.0}}, "after": {"slots": 16, "slo": {"high": 1.5}}}
    record(Author("ada", "ui", "black friday"), "pool.edit", "pool:llm", **said)
    record(Author("x" * 200, "api", "y" * 500), "pool.edit", f"pool:{'z' * 64}", after={"config": {"k": "v" * 400}})
    create_token(scopes=["read", "submit"], name="nightly", actor="ada")


def a_webhook_under_test() -> int:
    author = Author("ada", "ui")
    hook = add_webhook(None, "https://hooks.example.org/" + "x" * 80, ("alert",), author).webhook.id
    ask_for_a_test(hook, None, author)
    return hook


def looks_right(page: Page) -> None:
    for size in SIZES.values():
        page.set_viewport_size(size)
        assert page.evaluate("document.documentElement.scrollWidth") <= size["width"], page.url
        assert broken(page) == [], (page.url, size)


def test_every_page_is_accessible_and_fits(open_page: OpenPage, world: World) -> None:
    world.snapshot()
    world.do(some_changes)
    hook = world.do(a_webhook_under_test)
    page = open_page(PATHS[0], "admin")
    for path in (*PATHS, f"/ops/settings/webhooks/{hook}/"):
        page.goto(path)
        looks_right(page)
    page.goto(PATHS[0])
    page.locator("main tbody a").first.click()
    expect(page.locator("h1")).to_contain_text("Entry")
    looks_right(page)
    world.do(lambda: ApiToken.objects.all().delete())
    world.do(lambda: Webhook.objects.all().delete())


def test_a_token_is_made_and_revoked_without_a_script_or_a_mouse(open_page: OpenPage, world: World) -> None:
    world.do(lambda: ApiToken.objects.all().delete())
    world.snapshot()
    page = open_page("/ops/settings/tokens/", "admin", java_script_enabled=False)
    page.get_by_label("read").check()
    page.get_by_label("Name").fill("<b>nightly</b>")
    page.get_by_label("Name").press("Enter")
    expect(page.locator("pre")).to_contain_text("cq_")
    page.goto("/ops/settings/tokens/")
    expect(page.locator("main tbody th")).to_contain_text("<b>nightly</b>")
    page.locator("main tbody summary").press("Enter")
    page.get_by_label("Reason").first.fill("done with")
    page.get_by_label("Reason").first.press("Enter")
    expect(page.locator("#toast")).to_contain_text("It opens nothing from now on")
    expect(page.locator("main tbody")).to_contain_text("Revoked")
    world.do(lambda: ApiToken.objects.all().delete())
