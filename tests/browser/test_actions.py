"""Acting in a real browser: with the mouse, with the keyboard alone, and without scripts."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import Complaints, OpenPage
from tests.browser.world import PASSWORD, World, engine
from tests.live import sample

POOL = "/ops/pools/llm/"


def pause(page: Page, reason: str) -> None:
    page.locator("#reason").fill(reason)
    page.get_by_role("button", name="Pause llm").click()


def test_pause_undo_and_what_another_person_sees(open_page: OpenPage, world: World) -> None:
    world.snapshot()
    other = open_page("/ops/pools/", role="viewer")
    page = open_page(POOL)
    pause(page, "provider maintenance")
    expect(page.locator("#toast")).to_contain_text("Paused llm")
    assert world.pause_reason("llm") == "provider maintenance"
    expect(page.get_by_role("button", name="Resume llm")).to_be_visible()
    expect(page.get_by_role("button", name="Pause llm")).to_be_hidden()
    world.snapshot(pools=[sample.pool("llm", state="paused", pause={"by": "operator", "reason": "x", "at": 1.0})])
    expect(other.locator("#pools")).to_contain_text("Paused")
    page.locator("#toast").get_by_role("button", name="Undo").click()
    expect(page.locator("#toast")).to_contain_text("Resumed llm")
    assert world.pause_reason("llm") is None
    assert world.audited() == ["pool.pause", "pool.resume"]


def test_the_form_follows_the_live_state(open_page: OpenPage, world: World) -> None:
    world.snapshot()
    page = open_page(POOL)
    page.locator("#reason").fill("not sent yet")
    world.snapshot(pools=[sample.pool("llm", state="paused", pause={"by": "mira", "reason": "why", "at": 1.0})])
    expect(page.get_by_role("button", name="Resume llm")).to_be_visible()
    expect(page.get_by_role("button", name="Pause llm")).to_be_hidden()
    world.snapshot()
    expect(page.get_by_role("button", name="Pause llm")).to_be_visible()
    expect(page.locator("#reason")).to_have_value("not sent yet")


def test_somebody_else_was_faster(open_page: OpenPage, world: World, complaints: Complaints) -> None:
    complaints.expect(r"409|Conflict")
    world.snapshot()
    first, second = open_page(POOL), open_page(POOL)
    pause(first, "mine")
    pause(second, "too late")
    expect(second.locator("#fault")).to_have_text("operator paused it already: “mine”. Nothing was changed.")
    assert world.audited() == ["pool.pause"]


def test_a_double_click_is_one_action(open_page: OpenPage, world: World) -> None:
    world.snapshot()
    page = open_page(POOL)
    sent: list[str] = []
    page.on("request", lambda request: sent.append(request.url) if request.method == "POST" else None)
    page.locator("#reason").fill("twice")
    page.get_by_role("button", name="Pause llm").dblclick()
    expect(page.locator("#toast")).to_be_visible()
    assert len(sent) == 1


def test_an_empty_reason_never_leaves_the_browser(open_page: OpenPage, world: World) -> None:
    world.snapshot()
    page = open_page(POOL)
    page.get_by_role("button", name="Pause llm").click()
    expect(page.locator("#reason")).to_be_focused()
    assert world.pause_reason("llm") is None


def test_everything_works_without_scripts(open_page: OpenPage, world: World) -> None:
    world.snapshot()
    page = open_page("/ops/", java_script_enabled=False)
    expect(page.get_by_text("Live updates need JavaScript")).to_be_visible()
    expect(page.locator("#pause-live")).to_be_hidden()
    page.locator("#pools a", has_text="llm").click()
    pause(page, "no scripts")
    expect(page.locator("#toast")).to_contain_text("Paused llm")
    assert world.pause_reason("llm") == "no scripts"
    page.get_by_role("button", name="Resume llm").click()
    assert world.pause_reason("llm") is None
    page.locator("details.menu summary").click()
    page.get_by_role("button", name="Dark").click()
    expect(page.locator("html")).to_have_attribute("data-theme", "dark")
    page.locator("details.menu summary").click()
    page.get_by_role("button", name="Sign out").click()
    expect(page).to_have_url(re.compile("/ops/sign-in/"))


def test_signing_in_with_the_keyboard_and_coming_back(
    open_page: OpenPage, world: World, complaints: Complaints
) -> None:
    complaints.expect("422")
    world.snapshot()
    world.cookie("viewer")
    page = open_page("/ops/resources/", role="anonymous")
    expect(page.locator("#id_username")).to_be_focused()
    page.keyboard.type("viewer")
    page.keyboard.press("Tab")
    page.keyboard.type("wrong")
    page.keyboard.press("Enter")
    expect(page.get_by_role("alert")).to_contain_text("do not match")
    expect(page.locator("#id_password")).to_be_focused()
    page.keyboard.type(PASSWORD)
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile("/ops/resources/$"))


def test_the_whole_journey_by_keyboard(open_page: OpenPage, world: World) -> None:
    world.snapshot()
    page = open_page()
    page.keyboard.press("Tab")
    expect(page.get_by_role("link", name="Skip to content")).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.locator("main")).to_be_focused()
    page.keyboard.press("g")
    page.keyboard.press("p")
    expect(page).to_have_url(re.compile("/ops/pools/$"))
    reach(page, page.locator("#pools a", has_text="llm"))
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile("/ops/pools/llm/$"))
    reach(page, page.locator("#reason"))
    page.keyboard.type("g p . ?")
    page.keyboard.press("Enter")
    expect(page.locator("#toast")).to_contain_text("Paused llm")
    assert world.pause_reason("llm") == "g p . ?"


def reach(page: Page, locator: object) -> None:
    """Press Tab until the element has the focus; every stop on the way must show a ring."""
    for _ in range(40):
        page.keyboard.press("Tab")
        ring = page.evaluate("getComputedStyle(document.activeElement).outlineStyle")
        assert ring != "none"
        if locator.evaluate("(element) => element === document.activeElement"):  # type: ignore[attr-defined]  # a Locator
            return
    pytest.fail("Tab does not reach it")


def test_shortcuts_can_be_seen_and_switched_off(open_page: OpenPage, world: World) -> None:
    world.snapshot()
    page = open_page()
    with engine(world):
        expect(page.locator("#conn span")).to_have_text("Live")
        page.keyboard.press("?")
        expect(page.get_by_role("dialog", name="Keyboard shortcuts")).to_be_visible()
        page.keyboard.press(".")
        page.keyboard.press("Escape")
        expect(page.get_by_role("dialog")).to_be_hidden()
        expect(page.locator("#conn span")).to_have_text("Live")
        page.evaluate(
            "() => document.body.dispatchEvent("
            "new KeyboardEvent('keydown', {key: '.', bubbles: true, isComposing: true}))"
        )  # half a syllable of somebody who writes Korean
        expect(page.locator("#conn span")).to_have_text("Live")
        page.keyboard.press(".")
        expect(page.locator("#conn span")).to_have_text("Paused")
        page.keyboard.press("Control+.")
        expect(page.locator("#conn span")).to_have_text("Paused")
        page.locator("details.menu summary").click()
        page.get_by_role("group", name="Keyboard shortcuts").get_by_role("button", name="Off").click()
        page.wait_for_load_state()
        expect(page.locator("#conn span")).to_have_text("Live")
        page.keyboard.press(".")
        page.keyboard.press("?")
        expect(page.get_by_role("dialog")).to_be_hidden()
        expect(page.locator("#conn span")).to_have_text("Live")


def test_a_menu_closes_with_escape_and_gives_the_focus_back(open_page: OpenPage, world: World) -> None:
    world.snapshot()
    page = open_page()
    page.locator("details.menu summary").click()
    page.get_by_role("button", name="Light").focus()
    page.keyboard.press("Escape")
    expect(page.get_by_role("button", name="Light")).to_be_hidden()
    expect(page.locator("details.menu summary")).to_be_focused()


def test_text_from_outside_stays_text_in_a_frame(open_page: OpenPage, world: World) -> None:
    evil = "<img src=x onerror=alert(1)><b hx-get='/ops/' hx-trigger='load'>x</b>"
    world.snapshot(failures=[])
    page = open_page()
    expect(page.locator("#conn span")).to_have_text("Live")
    world.snapshot(failures=[sample.failure(1, message=evil)], pools=[sample.pool(evil[:60])])
    expect(page.locator("#failures td.text")).to_have_text(evil)
    assert page.locator("main img, main [hx-get]").count() == 0
