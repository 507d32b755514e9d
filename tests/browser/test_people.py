"""The console for everybody: larger letters, paper, no colours, the way back; and the administration."""

from __future__ import annotations

import re

from playwright.sync_api import Page, expect

from tests.browser.conftest import OpenPage
from tests.browser.test_look import COLOUR_RULES, RULES, SIZES, violations
from tests.browser.test_system_pages import some_changes
from tests.browser.world import World
from tests.support.work import make_tenant

UPSTREAM = {
    "target-size": "the links of the filters beside a list of Django's stand closer than 24 pixels",
}
"""What Django's own pages break, with the reason why it is theirs to mend."""


def test_letters_of_twice_the_size_fit_and_states_are_told_without_a_colour(open_page: OpenPage, world: World) -> None:
    world.snapshot()
    page = open_page(viewport=SIZES["desktop"])
    expect(page.locator("#conn span")).to_have_text("Live")
    page.evaluate("() => { document.documentElement.style.fontSize = '200%'; }")
    assert page.evaluate("getComputedStyle(document.body).fontSize") == "26px"
    for width in (1280, 640, 320):
        page.set_viewport_size({"width": width, "height": 800})
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        clipped = (
            "all => all.filter((each) => each.scrollHeight > each.clientHeight + 2).map((each) => each.textContent)"
        )
        assert page.locator(".pill, .ghost, .rail a, .figures .value").evaluate_all(clipped) == []
    for chip in page.locator("main .st").all():
        assert re.search(r"\w", chip.inner_text())  # in greys a state is still its symbol and its word
        assert chip.locator("svg use").get_attribute("href")


def test_the_audit_on_paper_is_the_audit_alone_in_black_on_white(open_page: OpenPage, world: World) -> None:
    world.snapshot()
    world.do(some_changes)
    page = open_page("/ops/audit/", "admin", viewport=SIZES["desktop"], color_scheme="dark")
    page.emulate_media(media="print", color_scheme="dark")
    expect(page.locator("table.audit")).to_contain_text("black friday")
    for gone in (".rail", ".find", ".filters", "#pause-live", ".foot"):
        expect(page.locator(gone).first).to_be_hidden()
    assert page.evaluate("getComputedStyle(document.documentElement).colorScheme") == "light"
    page.set_viewport_size({"width": 700, "height": 1000})  # A4 between its margins
    assert page.evaluate("document.documentElement.scrollWidth") <= 700
    assert page.pdf().startswith(b"%PDF")


def test_going_back_after_an_action_repeats_nothing(open_page: OpenPage, world: World) -> None:
    world.snapshot()
    page = open_page("/ops/pools/llm/")
    page.locator("#reason").fill("maintenance")
    page.get_by_role("button", name="Pause llm").click()
    expect(page.locator("#toast")).to_contain_text("Paused llm")
    page.go_back()
    page.reload()
    expect(page.get_by_role("button", name="Resume llm")).to_be_visible()
    page.keyboard.press("?")
    expect(page.get_by_role("dialog").get_by_role("button", name="Close")).to_be_focused()
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog")).to_be_hidden()
    assert world.audited() == ["pool.pause"]


def test_the_administration_is_accessible_in_the_colours_of_the_console(open_page: OpenPage, world: World) -> None:
    world.snapshot()
    tenant = world.do(lambda: make_tenant("acme"))
    page = open_page("/admin/", "staff", viewport=SIZES["desktop"], reduced_motion="reduce")
    for path in (
        "/admin/",
        "/admin/scheduler/tenant/",
        f"/admin/scheduler/tenant/{tenant}/change/",
        "/admin/scheduler/tenantbudget/",
        f"/admin/scheduler/tenantbudget/{tenant}/change/",
    ):
        response = page.goto(path)
        assert response
        assert "default-src 'none'" in response.headers["content-security-policy"]
        page.set_viewport_size(SIZES["phone"])
        assert page.evaluate("document.documentElement.scrollWidth") <= SIZES["phone"]["width"], path
        page.set_viewport_size(SIZES["desktop"])
        assert _broken(page) == [], path
    page.get_by_label("Limit a month, $").fill("120.50")
    page.get_by_label("Reason").fill("a new contract")
    page.get_by_role("button", name="Save", exact=True).click()
    expect(page.locator(".messagelist")).to_contain_text("changed successfully")
    assert world.audited() == ["budget.edit"]


def _broken(page: Page) -> list[str]:
    found = []
    for scheme, rules in (("light", RULES), ("dark", COLOUR_RULES)):
        page.emulate_media(color_scheme="dark" if scheme == "dark" else "light")
        found += [f"{scheme}: {each}" for each in violations(page, {**rules, "preload": False})]
    return [each for each in found if each.split(": ")[1] not in UPSTREAM]
