"""Live updates in a real browser: what arrives, what stays untouched, what the person keeps, and lost connections."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Page, WebSocketRoute, expect

from tests.browser.conftest import Complaints, OpenPage
from tests.browser.world import World, engine
from tests.live import sample
from tests.support.waiting import wait_until

LIVE, POLLING = re.compile("^Live$"), re.compile("^Polling")
SECOND = 1000


def pill(page: Page, text: str | re.Pattern[str], timeout_s: float = 15) -> None:
    expect(page.locator("#conn span")).to_have_text(text, timeout=timeout_s * SECOND)


def waiting(page: Page, number: str) -> None:
    expect(page.locator("#figure-waiting")).to_have_text(number)


def test_what_the_page_shows_is_what_the_database_holds(open_page: OpenPage, world: World) -> None:
    world.waiting(111)
    page = open_page()
    waiting(page, "111")
    pill(page, "Live")
    world.waiting(4321)
    waiting(page, "4,321")
    assert world.newest_waiting() == 4321


def test_two_pages_agree(open_page: OpenPage, world: World) -> None:
    world.waiting(1)
    pages = [open_page(), open_page(role="viewer")]
    world.waiting(77)
    for page in pages:
        waiting(page, "77")


def test_an_unchanged_board_touches_nothing(open_page: OpenPage, world: World) -> None:
    quiet: dict[str, list[str]] = {"failures": [], "workers": [], "pools": []}
    world.snapshot(**quiet)
    heard = "addEventListener('htmx:wsBeforeMessage', () => { document.documentElement.dataset.heard = 'yes'; });"
    page = open_page("/ops/resources/", before=lambda page: page.add_init_script(heard))
    # The line is open before the server has looked what a new viewer lacks: against a newer snapshot, every cell.
    expect(page.locator("html[data-heard]")).to_have_count(1)
    page.evaluate(
        "() => { window.touched = 0; new MutationObserver((all) => { window.touched += all.length; })"
        ".observe(document.getElementById('live'),"
        " {subtree: true, childList: true, characterData: true, attributes: true}); }"
    )
    before = page.locator("#as-of").text_content() or ""
    for _ in range(3):
        world.snapshot(**quiet)
    expect(page.locator("#as-of")).not_to_have_text(before)  # told by the next beat
    assert page.evaluate("window.touched") == 0


def test_a_late_frame_is_ignored(open_page: OpenPage, world: World) -> None:
    world.waiting(500)
    routes: list[WebSocketRoute] = []

    def intercept(route: WebSocketRoute) -> None:
        routes.append(route)
        route.connect_to_server()

    page = open_page(before=lambda page: page.route_web_socket(re.compile("/ws/ops/"), intercept))
    pill(page, "Live")
    world.waiting(501)
    waiting(page, "501")
    routes[0].send(
        '<i id="live-beat" data-seq="1" data-at="1" data-age="0" data-shape="x"></i><dd id="figure-waiting">9</dd>'
    )
    world.waiting(502)
    waiting(page, "502")


def test_open_details_and_focus_stay(open_page: OpenPage, world: World) -> None:
    world.waiting(1)
    page = open_page()
    page.locator("#chart summary").click()
    link = page.locator("#pools a", has_text="llm")
    link.focus()
    world.waiting(2)
    waiting(page, "2")
    expect(link).to_be_focused()
    assert page.evaluate("document.querySelector('#chart details').open")
    page.locator("details.menu summary").click()
    page.evaluate("scrollTo(0, 200)")
    world.waiting(3)
    waiting(page, "3")
    expect(page.get_by_role("button", name="Dark")).to_be_visible()
    assert page.evaluate("scrollY") == 200


def test_focus_survives_a_new_row_and_finds_a_sane_place_when_its_row_goes(open_page: OpenPage, world: World) -> None:
    pools = sample.body()["pools"]
    world.snapshot(pools=pools)
    page = open_page()
    pill(page, "Live")
    page.locator("#pools a", has_text="agents").focus()
    world.snapshot(pools=[*pools, sample.pool("newcomer")])
    expect(page.locator("#pools a", has_text="newcomer")).to_be_visible()
    expect(page.locator("#pools a", has_text="agents")).to_be_focused()
    world.snapshot(pools=[pool for pool in pools if pool["name"] != "agents"])
    expect(page.locator("#pools a", has_text="agents")).to_have_count(0)
    expect(page.locator("#pools-h")).to_be_focused()


def test_half_typed_input_and_its_caret_stay(open_page: OpenPage, world: World) -> None:
    world.snapshot()
    page = open_page("/ops/pools/llm/")
    pill(page, "Live")
    page.locator("#reason").press_sequentially("half a rea")
    page.evaluate("document.getElementById('reason').setSelectionRange(4, 4)")
    pools = sample.body()["pools"]
    pools[0]["running"] = 201
    world.snapshot(pools=pools)
    expect(page.locator("#figure-running")).to_have_text("201")
    expect(page.locator("#reason")).to_have_value("half a rea")
    expect(page.locator("#reason")).to_be_focused()
    assert page.evaluate("document.getElementById('reason').selectionStart") == 4


def test_selected_text_is_not_pulled_away(open_page: OpenPage, world: World) -> None:
    world.snapshot(failures=[sample.failure(1, message="copy me")])
    page = open_page()
    pill(page, "Live")
    expect(page.locator("#failures td.text")).to_have_text("copy me")
    page.evaluate(
        "() => { const range = document.createRange();"
        " range.selectNodeContents(document.querySelector('#failures td.text')); getSelection().addRange(range); }"
    )
    world.snapshot(failures=[sample.failure(2, message="newer")], totals={**sample.body()["totals"], "waiting": 42})
    waiting(page, "42")
    assert page.evaluate("getSelection().toString()") == "copy me"
    page.evaluate("getSelection().removeAllRanges()")
    expect(page.locator("#failures td.text")).to_have_text("newer")


def test_pausing_stops_changes_and_resuming_jumps_to_now(open_page: OpenPage, world: World) -> None:
    world.waiting(1)
    page = open_page()
    pill(page, "Live")
    waiting(page, "1")
    page.locator("#pause-live").click()
    pill(page, "Paused")
    other = open_page(role="viewer")
    world.waiting(2)
    waiting(other, "2")
    waiting(page, "1")
    page.locator("#pause-live").click()
    waiting(page, "2")
    pill(page, "Live")


def test_a_hidden_tab_is_quiet(open_page: OpenPage, world: World) -> None:
    world.waiting(1)
    page = open_page()
    pill(page, "Live")
    waiting(page, "1")
    hide = "(hidden) => { Object.defineProperty(document, 'hidden', {configurable: true, get: () => hidden});"
    page.evaluate(hide + " document.dispatchEvent(new Event('visibilitychange')); }", arg=True)
    other = open_page(role="viewer")
    world.waiting(2)
    waiting(other, "2")
    waiting(page, "1")
    page.evaluate(hide + " document.dispatchEvent(new Event('visibilitychange')); }", arg=False)
    waiting(page, "2")


def test_a_slower_pace_rests_between_looks(open_page: OpenPage, world: World) -> None:
    world.waiting(1)
    look = {"name": "cronoq_look", "value": "system.keys.comfortable.5.UTC", "url": world.url}
    page = open_page(before=lambda page: page.context.add_cookies([look]))
    pill(page, "Live 5 s")
    sent: list[str] = []
    page.on("websocket", lambda socket: socket.on("framesent", lambda payload: sent.append(str(payload))))
    page.reload()
    wait_until(lambda: page.evaluate("1") == 1 and any("pause" in each for each in sent), what="a rest")
    world.waiting(2)
    waiting(page, "2")
    assert any("resume" in each for each in sent)


def test_a_silent_engine_makes_the_numbers_stale(open_page: OpenPage, world: World) -> None:
    world.waiting(1)
    page = open_page()
    pill(page, re.compile(r"^Stale \d+ s$"))
    expect(page.locator("#stale")).to_contain_text("no engine has written newer ones")
    world.waiting(2)
    pill(page, "Live")
    expect(page.locator("#stale")).to_be_hidden()


@pytest.mark.parametrize("code", [1001, 1012])
def test_a_restarted_server_is_found_again(code: int, open_page: OpenPage, world: World) -> None:
    world.waiting(1)
    routes: list[WebSocketRoute] = []

    def intercept(route: WebSocketRoute) -> None:
        routes.append(route)
        route.connect_to_server()

    page = open_page(before=lambda page: page.route_web_socket(re.compile("/ws/ops/"), intercept))
    pill(page, "Live")
    routes[0].close(code=code)
    expect(page.locator("#conn span")).not_to_have_text("Live")
    pill(page, "Live")
    world.waiting(2)
    waiting(page, "2")
    assert len(routes) == 2


@pytest.mark.parametrize(("code", "word"), [(4401, "Signed out"), (4403, "No access")])
def test_a_closed_door_is_not_knocked_on_again(code: int, word: str, open_page: OpenPage, world: World) -> None:
    world.waiting(1)
    routes: list[WebSocketRoute] = []

    def intercept(route: WebSocketRoute) -> None:
        routes.append(route)
        route.close(code=code)

    page = open_page("/ops/?x=1", before=lambda page: page.route_web_socket(re.compile("/ws/ops/"), intercept))
    pill(page, word)
    if code == 4401:
        again = page.locator("#signed-out a")
        assert again.get_attribute("href") == "/ops/sign-in/?next=%2Fops%2F%3Fx%3D1"
    page.wait_for_function("() => performance.now() > 4000")
    assert len(routes) == 1


def test_without_sockets_it_polls_and_comes_back(open_page: OpenPage, world: World, complaints: Complaints) -> None:
    complaints.expect("WebSocket|wsError")
    world.waiting(1)
    routes: list[WebSocketRoute] = []
    refuse = [True]

    def intercept(route: WebSocketRoute) -> None:
        routes.append(route)
        if refuse[0]:
            route.close(code=1013)
        else:
            route.connect_to_server()

    page = open_page(before=lambda page: page.route_web_socket(re.compile("/ws/ops/"), intercept))
    with engine(world):
        pill(page, POLLING, timeout_s=40)
        shown = page.locator("#figure-waiting").text_content() or ""
        expect(page.locator("#figure-waiting")).not_to_have_text(shown)
        refuse[0] = False
        pill(page, LIVE, timeout_s=40)
        polls: list[str] = []
        page.on("request", lambda request: polls.append(request.url) if "_live" in request.url else None)
        seen = page.locator("#as-of").text_content() or ""
        page.wait_for_function("(start) => performance.now() > start + 6000", arg=page.evaluate("performance.now()"))
        expect(page.locator("#as-of")).not_to_have_text(seen)
        assert polls == []


def test_a_session_that_ended_is_noticed_by_polling_too(
    open_page: OpenPage, world: World, complaints: Complaints
) -> None:
    complaints.expect("WebSocket|wsError")
    world.waiting(1)
    page = open_page(
        before=lambda page: page.route_web_socket(re.compile("/ws/ops/"), lambda route: route.close(code=1013))
    )
    pill(page, POLLING, timeout_s=40)
    world.sign_everybody_out()
    pill(page, "Signed out")


def test_screen_readers_hear_of_states_and_not_of_numbers(open_page: OpenPage, world: World) -> None:
    calm = [sample.pool("llm")]
    world.snapshot(pools=calm, resources=[], totals={**sample.body()["totals"], "waiting": 3})
    page = open_page()
    pill(page, "Live")
    world.snapshot(pools=calm, resources=[], totals={**sample.body()["totals"], "waiting": 7})
    waiting(page, "7")
    assert page.locator("#announce").text_content() == ""
    world.snapshot(pools=[sample.pool("llm", state="paused")], resources=[])
    expect(page.locator("#announce")).to_have_text("1 thing needs attention: llm.")
    assert wait_until(lambda: page.locator("[aria-live]").count() == 0)
