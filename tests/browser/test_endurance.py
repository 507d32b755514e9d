"""A page that stays open: what hundreds of frames leave behind in the browser, and whether anything jumps."""

from __future__ import annotations

import re
import time
from typing import Any

from playwright.sync_api import CDPSession, Page, WebSocketRoute, expect

from scheduler.live.board import read_board
from scheduler.live.frames import Frame, Key, beat
from scheduler.live.pages import draw_page
from tests.browser.conftest import OpenPage
from tests.browser.world import World
from tests.live import sample

WARM, MANY = 60, 600
FIRST_SEQ = 10**9  # newer than any snapshot of this run


def drawn(seq: int, *, steady: bool) -> Frame:
    """The Overview of a busy minute; unless it is `steady`, pools and failures come and go."""
    body: dict[str, Any] = sample.moved(sample.body(seq), time.time() - sample.AS_OF_S)
    if seq % 7 == 0 and not steady:
        body["pools"] = body["pools"][:-1]
    if seq % 5 == 0 and not steady:
        body["failures"] = [sample.failure(seq % 50, at=time.time())]
    return draw_page(Key("overview"), read_board(seq, time.time(), body))


class Feed:
    """Sends a page its frames by hand, as fast as it takes them."""

    def __init__(self, page: Page, route: WebSocketRoute) -> None:
        self._page, self._route, self._shown = page, route, drawn(FIRST_SEQ, steady=True)
        route.send(beat(self._shown, 0.0) + self._shown.html)

    def send(self, number: int, *, steady: bool = False) -> None:
        for _ in range(number):
            after = drawn(self._shown.seq + 1, steady=steady)
            self._route.send(beat(after, 0.0) + after.since(self._shown))
            self._shown = after
        expect(self._page.locator(f'#live-beat[data-seq="{self._shown.seq}"]')).to_have_count(1)


def held(cdp: CDPSession) -> dict[str, float]:
    """What is alive once everything that can be forgotten is: nodes, listeners, and bytes of the heap."""
    for _ in range(3):
        cdp.send("HeapProfiler.collectGarbage")
    counters = cdp.send("Memory.getDOMCounters")
    return {**counters, "bytes": cdp.send("Runtime.getHeapUsage")["usedSize"]}


def test_six_hundred_frames_leave_nothing_behind_and_nothing_jumps(open_page: OpenPage, world: World) -> None:
    world.snapshot()
    routes: list[WebSocketRoute] = []
    take = lambda route: routes.append(route)  # noqa: E731, PLW0108 - Playwright marks what it calls
    page = open_page(before=lambda page: page.route_web_socket(re.compile("/ws/ops/"), take))
    expect(page.locator("#conn span")).to_have_text("Live")
    feed, cdp = Feed(page, routes[0]), page.context.new_cdp_session(page)
    feed.send(1, steady=True)
    page.evaluate(
        "() => { window.jumps = 0; new PerformanceObserver((all) => {"
        " for (const each of all.getEntries()) if (!each.hadRecentInput) window.jumps += each.value; })"
        ".observe({type: 'layout-shift'}); }"
    )
    feed.send(WARM, steady=True)
    assert page.evaluate("window.jumps") <= 0.02, "numbers move, boxes do not"
    feed.send(WARM)
    before = held(cdp)
    feed.send(MANY)
    after = held(cdp)
    assert after["jsEventListeners"] == before["jsEventListeners"]
    assert after["nodes"] <= before["nodes"] * 1.05
    assert after["bytes"] <= before["bytes"] * 1.1
