"""How it looks: accessible in every theme and width, nothing off the edge, nothing moving for those who want rest."""

from __future__ import annotations

import os
import re
import time
from pathlib import Path
from typing import Any, Literal
from urllib.parse import urlsplit

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page, ViewportSize, WebSocketRoute, expect

from tests.browser.conftest import Complaints, OpenPage
from tests.browser.world import World
from tests.live import sample

SIGN_IN = "/ops/sign-in/"  # it shows nothing of what is going on
PAGES = [
    "/ops/",
    "/ops/pools/",
    "/ops/pools/llm/",
    "/ops/resources/",
    "/ops/resources/openai/",
    "/ops/slo/",
    SIGN_IN,
]
SIZES: dict[str, ViewportSize] = {"desktop": {"width": 1280, "height": 800}, "phone": {"width": 320, "height": 640}}
RULES = {"runOnly": {"type": "tag", "values": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"]}}
COLOUR_RULES = {"runOnly": {"type": "rule", "values": ["color-contrast", "link-in-text-block"]}}
"""Those of them that another theme can break: it changes nothing but colours."""
SCHEMES: tuple[tuple[Literal["light", "dark"], dict[str, Any]], ...] = (("light", RULES), ("dark", COLOUR_RULES))
AXE = Axe()
LONG = "a-pool-name-without-any-mercy-" * 6
ODD: dict[str, Any] = {
    "pools": [
        sample.pool(
            LONG, waiting={"critical": 10**12, "high": 0, "normal": 0, "low": 1}, slots=10**9, oldest_waiting_s=9e6
        ),
        sample.pool("مرحبا بالعالم"),
        sample.pool("🚀 rocket", state="draining"),
        sample.pool("none", bound_by={"code": "no_worker", "text": "no worker " * 30}),
    ],
    "resources": [
        sample.bucket(LONG, blocked_until=4e9),
        sample.semaphore("gpu", permits=0, capacity=0.0, in_use=-3.0),
    ],
    "failures": [sample.failure(1, message="x" * 400, tenant=LONG, kind=LONG)],
    "workers": [sample.worker(LONG, pools=[LONG, LONG])],
}
STATES: dict[str, dict[str, Any]] = {"busy": {}, "odd": ODD, "empty": sample.quiet_body()}


def role_for(path: str) -> str:
    return "anonymous" if "sign-in" in path else "operator"


def violations(page: Page, rules: dict[str, Any] = RULES, *, kind: str = "violations") -> list[str]:
    if not page.evaluate("'axe' in window"):
        page.evaluate(AXE.axe_script)
    # Only what is returned is described, node by node.
    found = page.evaluate("rules => axe.run(rules)", {**rules, "resultTypes": [kind]})[kind]
    return [f"{each['id']}: {node['html'][:160]}" for each in found for node in each["nodes"]]


def broken(page: Page) -> list[str]:
    """What breaks a rule in one theme or the other."""
    found = []
    for scheme, rules in SCHEMES:
        page.emulate_media(color_scheme=scheme)
        found += [f"{scheme}: {each}" for each in violations(page, rules)]
    return found


def settled(page: Page, path: str) -> None:
    if "sign-in" not in path:
        expect(page.locator("#conn span")).to_have_text("Live")


@pytest.mark.parametrize(("path", "state"), [(p, s) for p in PAGES for s in STATES if s == "busy" or p != SIGN_IN])
def test_a_page_is_accessible_and_fits_in_every_size_and_theme(
    path: str, state: str, open_page: OpenPage, world: World
) -> None:
    world.snapshot(**STATES[state])
    page = open_page(path, role_for(path))
    settled(page, path)
    for size in SIZES.values():
        page.set_viewport_size(size)
        assert page.evaluate("document.documentElement.scrollWidth") <= size["width"]
        assert broken(page) == [], size


def test_states_of_the_page_break_no_rule(open_page: OpenPage, world: World, complaints: Complaints) -> None:
    complaints.expect("422|404")
    world.snapshot()
    routes: list[WebSocketRoute] = []

    def intercept(route: WebSocketRoute) -> None:
        routes.append(route)
        route.connect_to_server()

    page = open_page("/ops/pools/llm/", before=lambda page: page.route_web_socket(re.compile("/ws/ops/"), intercept))
    settled(page, "")
    page.locator("details.menu summary").click()
    reads_well(page)
    page.keyboard.press("Escape")
    page.keyboard.press("?")
    reads_well(page, unsure="color-contrast")  # it does not know what lies behind a dialog; those are a panel's colours
    page.keyboard.press("Escape")
    page.locator("#reason").fill("  ")
    page.get_by_role("button", name="Pause llm").click()
    expect(page.locator("#fault")).to_be_visible()
    reads_well(page)
    page.locator("#reason").fill("a reason")
    page.get_by_role("button", name="Pause llm").click()
    expect(page.locator("#toast")).to_be_visible()
    page.locator("#pause-live").click()
    reads_well(page)
    page.locator("#pause-live").click()
    world.sign_everybody_out()
    routes[-1].close(code=4401)
    expect(page.locator("#signed-out")).to_be_visible()
    reads_well(page)


def test_pages_that_refuse_break_no_rule(open_page: OpenPage, world: World, complaints: Complaints) -> None:
    complaints.expect("40[34]|WebSocket|wsError|htmx:|ERR_FAILED")
    world.snapshot()
    page = open_page("/ops/pools/nope/")
    reads_well(page)
    page.goto("/ops/audit/")
    expect(page.get_by_role("heading")).to_have_text("You may not do this")
    reads_well(page)
    page.route_web_socket(re.compile("/ws/ops/"), lambda route: route.close(code=1013))
    page.route(re.compile("/_live/"), lambda route: route.abort())
    page.goto("/ops/")
    expect(page.locator("#conn span")).to_have_text("Disconnected")
    expect(page.locator("#stale")).to_contain_text("The server does not answer.")
    reads_well(page)


def reads_well(page: Page, *, unsure: str = "nothing") -> None:
    """In both widths and themes. `unsure`: the rule that axe cannot judge here, for a reason that the caller gives."""
    for size in reversed(SIZES.values()):
        page.set_viewport_size(size)
        assert page.evaluate("document.documentElement.scrollWidth") <= size["width"]
        assert broken(page) == [], size
    # What axe cannot judge must be nothing. On a phone it cannot judge the colours of what is scrolled out of sight or
    # lies under an open menu or dialog; those are the same as here.
    page.emulate_media(color_scheme="light")
    assert [each for each in violations(page, kind="incomplete") if not each.startswith(unsure)] == []


def test_the_page_of_a_task_reads_well(open_page: OpenPage, world: World, tmp_path: Path) -> None:
    world.snapshot()
    path = f"/ops/tasks/{world.task()}/"
    page = open_page(path, viewport=SIZES["desktop"])
    settled(page, path)
    expect(page.locator(".reasons")).to_contain_text("It is tried again at")
    expect(page.locator(".line")).to_contain_text("Attempt 1 failed")
    page.get_by_text("Payload", exact=False).first.focus()
    page.keyboard.press("Enter")
    expect(page.locator("pre").first).to_contain_text("Summarise the attached report.")
    folder = Path(os.environ.get("CRONOQ_SCREENSHOTS") or tmp_path)
    for size, viewport in SIZES.items():
        page.set_viewport_size(viewport)
        assert broken(page) == [], size
        assert page.evaluate("document.documentElement.scrollWidth") <= viewport["width"]
        for scheme, _ in SCHEMES:
            page.emulate_media(color_scheme=scheme)
            page.screenshot(path=folder / f"task-{size}-{scheme}.png", full_page=True)


def test_forced_colours_keep_every_state_readable(open_page: OpenPage, world: World) -> None:
    world.snapshot()
    page = open_page(forced_colors="active")
    for path in ("/ops/", "/ops/pools/llm/", "/ops/resources/openai/", "/ops/slo/"):
        world.snapshot()
        page.goto(path)
        settled(page, path)
        assert violations(page) == []
        assert [word for word in page.locator("main .st").all_inner_texts() if not word.strip()] == []


def test_nothing_moves_for_those_who_asked_for_rest(open_page: OpenPage, world: World) -> None:
    world.snapshot()
    page = open_page("/ops/pools/llm/", reduced_motion="reduce")
    page.locator("#reason").fill("rest")
    page.get_by_role("button", name="Pause llm").click()
    expect(page.locator("#toast")).to_be_visible()
    assert page.evaluate("document.getAnimations().length") == 0


def test_state_is_told_in_words_too(open_page: OpenPage, world: World) -> None:
    world.snapshot()
    page = open_page()
    words = page.locator("#pools .st").all_inner_texts()
    assert words == ["Paused", "Running", "Running", "Idle"]
    assert "24 critical" in (
        page.locator("#pools tr", has_text="llm").locator("svg[role=img]").get_attribute("aria-label") or ""
    )


def test_the_first_view_is_light(open_page: OpenPage, world: World) -> None:
    world.snapshot()
    sizes: dict[str, int] = {}

    def count(page: Page) -> None:
        page.on("response", lambda response: sizes.__setitem__(response.url, len(response.body())))

    page = open_page(before=count)
    settled(page, "")
    page.wait_for_load_state("networkidle")
    assert len(sizes) <= 8
    own = {url.rsplit("/", 1)[-1]: size for url, size in sizes.items()}
    assert own["app.js"] <= 12 * 1024
    assert own["app.css"] <= 30 * 1024


TARGETS = {
    "slo": {"critical": 2.0, "high": 5.0, "normal": 120.0},
    "oldest_by_class": {"critical": 0.3, "high": 3.2, "normal": 42.0, "low": 38.0},
}
PHOTOGRAPHS: dict[str, tuple[str, int, Literal["light", "dark"]]] = {
    "overview-light": ("/ops/", 1280, "light"),
    "overview-dark": ("/ops/", 1280, "dark"),
    "overview-phone": ("/ops/", 360, "light"),
    "pool-dark": ("/ops/pools/llm/", 1280, "dark"),
    "pools-light": ("/ops/pools/", 1280, "light"),
    "slo-light": ("/ops/slo/", 1280, "light"),
}


@pytest.mark.parametrize("state", ["busy", "empty"])
def test_key_states_can_be_photographed(state: str, open_page: OpenPage, world: World, tmp_path: Path) -> None:
    """`CRONOQ_SCREENSHOTS=folder` keeps the pictures."""

    def now() -> None:
        body = {**sample.body(1000), **STATES[state]}
        body["pools"] = [{**pool, **TARGETS} if pool["name"] == "llm" else pool for pool in body["pools"]]
        world.snapshot(**sample.moved(body, time.time() - sample.AS_OF_S))

    now()
    page = open_page()
    pictures = PHOTOGRAPHS if state == "busy" else {"empty-light": PHOTOGRAPHS["overview-light"]}
    for name, (path, width, scheme) in pictures.items():
        page.set_viewport_size({"width": width, "height": 800})
        page.emulate_media(color_scheme=scheme)
        now()  # a picture may take so long that the numbers grow old
        if urlsplit(page.url).path != path:
            page.goto(path)
        settled(page, path)
        file = Path(os.environ.get("CRONOQ_SCREENSHOTS") or tmp_path) / f"{name}.png"
        page.screenshot(path=file, full_page=True)
        assert file.stat().st_size > 10_000
