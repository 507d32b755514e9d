"""Runs, schedules and workers in a real browser: how their pages look, and acting on them without scripts."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from playwright.sync_api import expect

from scheduler.models import Pool, Run, Schedule, Worker
from scheduler.policy.types import PoolId
from tests.browser.conftest import OpenPage
from tests.browser.test_look import SIZES, broken
from tests.browser.world import World
from tests.support.work import make_tenant
from tests.web.runs_cast import busy_run, make_schedule


@dataclass(frozen=True)
class Cast:
    """Ids of what the pages are about."""

    run: int
    schedule: int
    worker: str


@pytest.fixture
def cast(world: World) -> Cast:
    """A busy run, a schedule and a worker."""

    def make() -> Cast:
        tenant = make_tenant()
        run = busy_run(tenant, PoolId(Pool.objects.get(name="llm").pk), "Research: " + "heat pumps, " * 12)
        return Cast(run, make_schedule(tenant, "nightly"), str(Worker.objects.get().pk))

    world.snapshot()
    return world.do(make)


def test_pages_are_accessible_and_fit(open_page: OpenPage, cast: Cast) -> None:
    run, schedule = f"/ops/runs/{cast.run}/", f"/ops/schedules/{cast.schedule}/"
    paths = [run, f"{run}kill/", f"{run}caps/", "/ops/kills/", "/ops/schedules/", schedule, f"{schedule}edit/"]
    page = open_page("/ops/runs/", "admin")
    for path in ["/ops/runs/", *paths, "/ops/workers/", f"/ops/workers/{cast.worker}/"]:
        page.goto(path)
        for viewport in SIZES.values():
            page.set_viewport_size(viewport)
            assert page.evaluate("document.documentElement.scrollWidth") <= viewport["width"], path
            assert broken(page) == [], (path, viewport)


def test_a_run_is_paused_given_more_and_killed_without_scripts(open_page: OpenPage, world: World, cast: Cast) -> None:
    page = open_page(f"/ops/runs/{cast.run}/", "admin", java_script_enabled=False)
    page.get_by_label("Reason for pausing").fill("it asks the same thing again")
    page.get_by_role("button", name="Pause this run").click()
    expect(page.locator("#toast")).to_contain_text("Paused.")
    page.get_by_role("link", name="Change its caps").click()
    page.get_by_label("Steps at once").fill("5")
    page.get_by_label("Reason").fill("more at once")
    page.get_by_role("button", name="Save caps").click()
    expect(page.locator("#toast")).to_contain_text("The caps were changed.")
    page.get_by_role("link", name="Kill it…").click()
    expect(page.locator("main")).to_contain_text("2 running steps are told to stop at once.")
    page.get_by_label("Reason").fill("no use")
    page.get_by_label(f"Type {cast.run} to confirm").fill(str(cast.run))
    page.get_by_role("button", name=f"Kill run {cast.run}").click()
    expect(page.locator("#toast")).to_contain_text("2 running steps were told to stop")
    expect(page.locator(".says")).to_contain_text("It was killed: “no use”.")
    assert world.do(lambda: Run.objects.values_list("state", "max_width").get()) == ("killed", 5)


def test_a_schedule_shows_its_next_runs_before_it_is_saved(open_page: OpenPage, world: World, cast: Cast) -> None:
    page = open_page(f"/ops/schedules/{cast.schedule}/edit/", "admin", java_script_enabled=False)
    page.get_by_label("Expression").fill("0 9 * * 1-5")
    page.get_by_label("Reason").fill("office hours")
    page.get_by_role("button", name="Show the next runs").click()
    expect(page.locator("main")).to_contain_text("On weekdays at 09:00.")
    expect(page.locator(".line time")).to_have_count(5)
    page.get_by_role("button", name="Save").click()
    expect(page.locator("#toast")).to_contain_text("The schedule was changed.")
    assert world.do(lambda: Schedule.objects.get().cron) == "0 9 * * 1-5"
