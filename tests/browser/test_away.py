"""What pages say while something is away: the database, the server's voice, or everything behind a refusing proxy."""

from __future__ import annotations

import re
import time
from collections import Counter
from datetime import UTC, datetime

from django.db import connections
from playwright.sync_api import Page, WebSocketRoute, expect

from tests.browser.conftest import PATIENCE_MS, Complaints, OpenPage
from tests.browser.test_look import SIZES, broken
from tests.browser.world import World
from tests.engine.outage import outage
from tests.live import sample
from tests.support.waiting import wait_until

NO_DATABASE = "The database does not answer. These are the last numbers that were read."
CONNECTED = re.compile("^(Live|Polling|Stale)")  # a busy machine may let the numbers grow old
SOCKET = re.compile("/ws/ops/")


def pill(page: Page, text: str | re.Pattern[str]) -> None:
    expect(page.locator("#conn span")).to_have_text(text, timeout=2 * PATIENCE_MS)


def waiting(page: Page, number: str) -> None:
    expect(page.locator("#figure-waiting")).to_have_text(number)


def test_a_database_that_is_away_is_named_and_the_last_numbers_stay(
    open_page: OpenPage, world: World, complaints: Complaints, django_db_setup: str
) -> None:
    complaints.expect("WebSocket|wsError|503")
    world.waiting(111)
    page = open_page()
    polling = open_page(
        "/ops/pools/", before=lambda page: page.route_web_socket(SOCKET, lambda it: it.close(code=1013))
    )
    pill(page, CONNECTED)
    pill(polling, CONNECTED)
    world.do(connections.close_all)
    with outage(django_db_setup):
        for each in page, polling:
            pill(each, "No database")
            expect(each.locator("#stale")).to_have_text(NO_DATABASE)
        waiting(page, "111")
        for size in SIZES.values():
            page.set_viewport_size(size)
            assert page.evaluate("document.documentElement.scrollWidth") <= size["width"]
            assert broken(page) == [], size
        fresh = page.context.new_page()
        complaints.watch(fresh)
        answer = fresh.goto("/ops/tasks/?filter=pool:llm")
        assert answer
        assert (answer.status, answer.headers["retry-after"]) == (503, "5")
        expect(fresh.get_by_role("heading")).to_have_text("The database does not answer")
        assert broken(fresh) == []
    fresh.get_by_role("link", name="Try again").click()
    expect(fresh.get_by_role("heading", level=1)).to_have_text("Tasks")
    expect(fresh).to_have_url(re.compile("filter=pool:llm"))
    world.waiting(222)
    waiting(page, "222")
    for each in page, polling:
        pill(each, CONNECTED)


SILENT = re.compile(r"^Updates: (Disconnected|Stale \d+ s)\.$")
"""By the time of the sentence the page has missed its line, or has asked over HTTP and was told old numbers."""


def test_a_server_that_fell_silent_is_not_believed_and_asked_over_http(open_page: OpenPage, world: World) -> None:
    """A line that died without a word: neither side is told, so nothing closes it."""
    world.snapshot(failures=[sample.failure(1, at=time.time() - 5)])
    routes: list[WebSocketRoute] = []
    polls: list[str] = []

    def prepare(page: Page) -> None:
        page.clock.install(time=datetime(2001, 9, 9, tzinfo=UTC))  # what it believes to be now is of no account
        page.route_web_socket(SOCKET, lambda route: routes.append(route))  # noqa: PLW0108 - it marks what it calls
        page.on("request", lambda request: polls.append(request.url) if "_live" in request.url else None)

    page = open_page(before=prepare)
    ago = page.locator("#failures time")
    expect(ago).to_contain_text("ago")
    before = seconds_in(ago.inner_text())
    page.clock.run_for(13_000)
    pill(page, "Disconnected")
    assert seconds_in(ago.inner_text()) >= min(before + 13, 60), "relative times go on by themselves"
    expect(page.locator("#stale")).to_contain_text("The server does not answer.")
    assert polls == []
    page.clock.run_for(16_000)
    expect(page.locator("#conn span")).not_to_have_text("Disconnected")
    for _ in range(2):  # each five seconds, and no more often
        before = len(polls)
        page.clock.run_for(5_000)
        wait_until(lambda before=before: page.evaluate("1") == 1 and len(polls) > before, what="a poll")  # type: ignore[misc]  # a default is typed by none
        assert len(polls) == before + 1
    routes[0].send(f'<i id="live-beat" data-seq="{world.newest}" data-at="1" data-age="0" data-shape="x"></i>')
    pill(page, "Live")
    before = len(polls)
    page.clock.run_for(10_000)
    assert len(polls) == before
    said = page.locator("#announce")
    page.clock.run_for(15_000)
    page.locator("#pause-live").click()
    expect(said).to_have_text("Updates: Paused.")
    page.locator("#pause-live").click()
    page.clock.run_for(14_000)
    assert said.text_content() == "Updates: Paused.", "at most one sentence in fifteen seconds"
    page.clock.run_for(2_000)
    expect(said).to_have_text(SILENT)  # the newest of those that were held back


def seconds_in(text: str) -> int:
    """Of ``12 s ago`` or ``1 min ago``."""
    number, unit = text.split(" ", 2)[:2]
    return int(number) * {"s": 1, "min": 60}[unit]


def test_those_who_come_back_after_a_restart_do_not_come_together(open_page: OpenPage, world: World) -> None:
    world.snapshot()
    page = open_page()
    first, late = (
        page.evaluate("tries => Array.from({length: 500}, () => htmx.config.wsReconnectDelay(tries))", tries)
        for tries in (0, 30)
    )
    for delays, most in (first, 1_100), (late, 15_100):
        tenths = Counter(int((delay - 100) / (most - 100) * 10) for delay in delays)
        assert set(tenths) == set(range(10)), "over the whole time, and never beyond it"
        assert max(tenths.values()) < 100
