"""A real Chromium, people with roles, and the rule that no page may complain in the console."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

import pytest
from django.conf import settings
from playwright.sync_api import (
    Browser,
    BrowserContext,
    ConsoleMessage,
    Page,
    Request,
    Response,
    expect,
    sync_playwright,
)
from pytest_django import DjangoDbBlocker

from tests.browser.world import World, web_process
from tests.support import database

PATIENCE_MS = 30_000  # many beats of a quiet socket, for a machine that does much else
DISABLED = [
    # The switch takes the place of Playwright's own, whose names these are.
    "AimEnabled",
    "AvoidCorsURLLoaderRestartOnRedirect",
    "AvoidUnnecessaryBeforeUnloadCheckSync",
    "DestroyProfileOnBrowserClose",
    "HttpsFirstBalancedModeAutoEnable",
    "HttpsUpgrades",
    "LensOverlay",
    "MediaRouter",
    "NetworkTimeServiceQuerying",
    "OptimizationHints",
    "PaintHolding",
    "PreconnectToSearch",
    "ThirdPartyStoragePartitioning",
    # What an address bar would drop down is drawn ahead by a process of its own for every window, which nobody sees:
    # half of the processor time that an empty page takes.
    "WebUIOmniboxAimPopup",
    "WebUIOmniboxFullPopup",
    "WebUIOmniboxPopup",
]
ARGUMENTS = [
    f"--disable-features={','.join(DISABLED)}",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if "tests/browser/" in item.path.as_posix():
            item.add_marker(pytest.mark.browser)
            # Two halves of about the same length: each starts one web process and one browser.
            item.add_marker(pytest.mark.xdist_group(f"browser {item.path.stem == 'test_look'}"))


@pytest.fixture(scope="package")
def site(django_db_setup: str, django_db_blocker: DjangoDbBlocker) -> Iterator[str]:
    """One web process for all tests that follow each other; nothing that they wrote is left for others."""
    with django_db_blocker.unblock():
        try:
            with web_process(database.url_of(django_db_setup)) as url:
                yield url
        finally:
            database.empty_tables(django_db_setup)


@pytest.fixture(scope="package")
def browser(site: str) -> Iterator[Browser]:
    """Closed before tests of another folder: its event loop runs in this thread as long as it is open."""
    expect.set_options(timeout=PATIENCE_MS)
    with sync_playwright() as playwright:
        path = shutil.which("chromium")  # else Playwright's own
        yield playwright.chromium.launch(executable_path=path, args=ARGUMENTS)


@pytest.fixture
def world(site: str, django_db_blocker: DjangoDbBlocker) -> Iterator[World]:
    with django_db_blocker.unblock():
        world = World(site)
        world.begin()
        try:
            yield world
        finally:
            world.end()


@dataclass
class Complaints:
    """What the pages of a test complained about, and what this test expects them to complain about."""

    origin: str
    found: list[str] = field(default_factory=list)
    expected: list[str] = field(default_factory=list)

    def expect(self, pattern: str) -> None:
        """Allow complaints that match, where the test breaks something on purpose."""
        self.expected.append(pattern)

    def watch(self, page: Page) -> None:
        page.on("console", self._console)
        page.on("pageerror", lambda error: self.found.append(f"error: {error}"))
        page.on("request", self._request)
        page.on("response", self._response)

    def unexpected(self) -> list[str]:
        return [each for each in self.found if not any(re.search(pattern, each) for pattern in self.expected)]

    def _console(self, message: ConsoleMessage) -> None:
        if message.type in {"error", "warning"}:
            self.found.append(f"console: {message.text}")

    def _request(self, request: Request) -> None:
        if urlsplit(request.url).netloc != urlsplit(self.origin).netloc:
            self.found.append(f"foreign: {request.url}")

    def _response(self, response: Response) -> None:
        if response.status >= 400:
            self.found.append(f"{response.status}: {response.url}")


@pytest.fixture
def complaints(site: str) -> Iterator[Complaints]:
    complaints = Complaints(site)
    yield complaints
    assert complaints.unexpected() == []


OpenPage = Callable[..., Page]


@pytest.fixture
def open_page(browser: Browser, world: World, complaints: Complaints) -> Iterator[OpenPage]:
    """Open a path as a person with a role, once the newest snapshot is served; `how` goes to the browser context."""
    contexts: list[BrowserContext] = []
    cookies: dict[str, str] = {}

    def open_it(
        path: str = "/ops/", role: str = "operator", before: Callable[[Page], Any] | None = None, **how: Any
    ) -> Page:
        context = browser.new_context(base_url=world.url, **how)
        contexts.append(context)
        if role != "anonymous":
            cookies.setdefault(role, "") or cookies.update({role: world.cookie(role)})
            context.add_cookies([{"name": settings.SESSION_COOKIE_NAME, "value": cookies[role], "url": world.url}])
        page = context.new_page()
        page.set_default_timeout(PATIENCE_MS)
        complaints.watch(page)
        if before:
            before(page)
        world.wait_until_served()
        page.goto(path)
        return page

    yield open_it
    for context in contexts:
        context.close()
