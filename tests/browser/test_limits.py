"""Editing a limit in a real browser: refused, too late, saved, taken back; readable in every state of the form."""

from __future__ import annotations

from typing import Literal

from playwright.sync_api import Page, expect

from tests.browser.conftest import Complaints, OpenPage
from tests.browser.test_look import SIZES, violations
from tests.browser.world import World

PAGE = "/ops/resources/openai/"


def reads_well(page: Page, scheme: Literal["light", "dark"]) -> None:
    """Accessible in a theme, and nothing off the edge of a phone."""
    page.emulate_media(color_scheme=scheme)
    page.set_viewport_size(SIZES["phone"])
    assert page.evaluate("document.documentElement.scrollWidth") <= SIZES["phone"]["width"]
    assert violations(page) == []


def save(page: Page, rate: str, reason: str = "") -> None:
    page.get_by_label("Rate, tokens per second").fill(rate)
    page.get_by_label("Reason").fill(reason)
    page.get_by_role("button", name="Save").click()


def test_an_edit_is_refused_then_too_late_then_saved_then_taken_back(
    open_page: OpenPage, world: World, complaints: Complaints
) -> None:
    complaints.expect("422|409")
    world.snapshot()
    page, other = (open_page(f"{PAGE}edit/", "limits") for _ in range(2))
    save(page, "200")
    expect(page.locator("#reason-fault")).to_contain_text("Say why")
    expect(page.get_by_label("Rate, tokens per second")).to_have_value("200")
    reads_well(page, "light")
    save(other, "60")
    expect(other.locator("#toast")).to_contain_text("Changed openai")
    save(page, "200", "new contract")
    expect(page.locator("#conflict-h")).to_have_text("Somebody was faster")
    reads_well(page, "dark")
    page.get_by_role("button", name="Save").click()
    expect(page.locator("#toast")).to_contain_text("Changed openai")
    expect(page.locator("main")).to_contain_text("version 3")
    page.locator("#toast").get_by_role("button", name="Undo").click()
    expect(page.locator("main")).to_contain_text("version 4")
    assert world.audited() == ["resource.edit"] * 3


def test_without_scripts_the_effect_is_shown_before_anything_is_saved(open_page: OpenPage, world: World) -> None:
    world.snapshot()
    page = open_page(f"{PAGE}edit/", "limits", java_script_enabled=False)
    page.get_by_label("Rate, tokens per second").fill("10")
    page.get_by_role("button", name="Preview the effect").click()
    expect(page.locator("#effect")).to_contain_text("nothing is changed yet")
    expect(page.get_by_label("Rate, tokens per second")).to_have_value("10")
    assert world.audited() == []
