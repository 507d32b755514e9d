"""Tenants and cost in a real browser: accessible in every size and theme, and a top-up that is taken back."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from scheduler.models import Pool
from scheduler.policy.types import PoolId
from scheduler.services.changes import Author
from scheduler.services.top_ups import add_top_up
from tests.browser.conftest import OpenPage
from tests.browser.test_look import SCHEMES, SIZES, broken
from tests.browser.world import World
from tests.support.books import USD, make_budget, make_burn, make_entry
from tests.support.work import make_tenant

PAGES = ("/ops/tenants/", "/ops/tenants/acme/", "/ops/tenants/acme/edit/", "/ops/cost/")


def fill() -> None:
    pool = PoolId(Pool.objects.get(name="llm").pk)
    acme = make_tenant(name="Acme Robotics " * 5, time_zone="Asia/Seoul")
    make_burn(make_budget(acme, limit=2_000 * USD, spent=1_682 * USD, reserved=60 * USD), per_hour=41 * USD)
    make_budget(make_tenant("initech-" * 7), limit=50 * USD, spent=50 * USD)
    add_top_up("acme", 250 * USD, Author("ada", reason="the spring launch"), for_s=7_200.0)
    for cost, model, outcome in (
        (30, "claude-3-5-haiku-latest", "success"),
        (4, None, "success"),
        (2, "m-" * 60, "waste"),
    ):
        make_entry(acme, pool, cost * USD, model=model, outcome=outcome)


def settled(page: Page) -> None:
    expect(page.locator("#conn span")).to_have_text("Live")


@pytest.mark.parametrize("path", PAGES)
def test_a_page_about_money_is_accessible_and_fits(
    path: str, open_page: OpenPage, world: World, tmp_path: Path
) -> None:
    world.snapshot()
    world.do(fill)
    page = open_page(path, "admin")
    settled(page)
    folder = Path(os.environ.get("CRONOQ_SCREENSHOTS") or tmp_path)
    name = path.strip("/").replace("/", "-").removeprefix("ops-")
    for size, viewport in SIZES.items():
        page.set_viewport_size(viewport)
        assert broken(page) == [], size
        for scheme, _ in SCHEMES:
            page.emulate_media(color_scheme=scheme)
            page.screenshot(path=folder / f"{name}-{size}-{scheme}.png", full_page=True)
        assert page.evaluate("document.documentElement.scrollWidth") <= viewport["width"]


def test_a_budget_is_topped_up_by_keyboard_and_the_top_up_taken_back(open_page: OpenPage, world: World) -> None:
    world.snapshot()
    world.do(fill)
    page = open_page("/ops/tenants/acme/", "admin")
    page.locator("#amount").fill("40")
    page.locator("#why").fill("a second launch")
    page.keyboard.press("Enter")
    expect(page.locator("#toast")).to_contain_text("Topped up acme by $40.00")
    expect(page.locator(".figures")).to_contain_text("$290.00 of it topped up")
    page.get_by_role("button", name="Undo").click()
    expect(page.locator("#toast")).to_contain_text("The top-up of acme is over.")
    expect(page.locator(".figures")).to_contain_text("$250.00 of it topped up")
