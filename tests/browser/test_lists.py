"""Tasks, dead letters and operations in a real browser: readable everywhere, and a replay confirmed by keyboard."""

from __future__ import annotations

import re

from playwright.sync_api import Page, expect

from scheduler.models import DeadGroup, DeadLetter, Operation, OperationItem, Pool
from scheduler.policy.filters import Filter
from scheduler.policy.operations import OperationKind, narrow
from scheduler.policy.types import FailureClass, PoolId
from scheduler.services.changes import Author
from scheduler.services.dead import fold_dead
from scheduler.services.operations import Wanted, start_operation
from tests.browser.conftest import Complaints, OpenPage
from tests.browser.test_system_pages import looks_right
from tests.browser.world import World
from tests.support.work import HandWorker, make_tenant, submit_tasks


def some_deaths() -> None:
    Pool.objects.filter(name="llm").update(max_attempts=1)
    tenant, pool = make_tenant(), PoolId(Pool.objects.get(name="llm").pk)
    submit_tasks(tenant, 3, pool="llm", kind="summary")
    submit_tasks(tenant, 1, pool="llm", kind="k" * 64, key="order-" + "7" * 180)
    worker = HandWorker({pool: 4})
    worker.fail(worker.start(), FailureClass.TIMEOUT)
    fold_dead()


def an_operation() -> int:
    wanted = Wanted(OperationKind.REPLAY, narrow(OperationKind.REPLAY, Filter()), rate=5.0)
    return start_operation(wanted, None, Author("ada", "ui", "the provider is back"))


def forget() -> None:
    for model in (DeadLetter, DeadGroup, Operation, OperationItem):
        model.objects.all().delete()


def test_every_page_is_accessible_and_fits(open_page: OpenPage, world: World, complaints: Complaints) -> None:
    complaints.expect("422")
    world.snapshot()
    world.do(some_deaths)
    operation = world.do(an_operation)
    page = open_page(f"/ops/operations/{operation}/", "admin")
    what_is_typed_stays_while_numbers_move(page, world)
    for path in (
        "/ops/tasks/",
        "/ops/tasks/?filter=stat:dead",
        "/ops/dead/",
        "/ops/operations/",
        f"/ops/operations/{operation}/",
        "/ops/operations/new/?kind=discard&filter=",
    ):
        page.goto(path)
        looks_right(page)
    page.goto("/ops/dead/")
    page.locator("main tbody th a").first.click()
    expect(page.locator("h1")).to_contain_text("it broke")
    looks_right(page)
    world.do(forget)


def what_is_typed_stays_while_numbers_move(page: Page, world: World) -> None:
    """Without a reload: how far it is, which buttons are there, and that nothing is asked for once it is over."""
    reason, pause = page.get_by_label("Reason"), page.get_by_role("button", name="Pause", exact=True)
    reason.fill("half a sen")
    expect(page.get_by_role("button", name="Take back")).to_be_visible()
    world.do(lambda: Operation.objects.update(state="running", applied=1))
    expect(page.locator("#headline")).to_have_text("Running")
    expect(page.locator("#far progress")).to_have_attribute("value", "1")
    expect(page.locator("#again")).to_have_attribute("hx-get", re.compile("seen="))
    expect(page.get_by_role("button", name="Take back")).to_be_hidden()
    pause.focus()
    world.do(lambda: Operation.objects.update(state="aborted", applied=2))
    expect(page.locator("#headline")).to_have_text("Aborted")
    expect(pause).to_be_focused()
    expect(reason).to_have_value("half a sen")
    assert page.locator("#again").get_attribute("hx-get") is None


def test_a_group_is_replayed_by_keyboard_without_scripts_and_taken_back(open_page: OpenPage, world: World) -> None:
    world.snapshot()
    world.do(some_deaths)
    page = open_page("/ops/dead/", "admin", java_script_enabled=False)
    page.locator("main tbody th a", has_text="it broke").first.press("Enter")
    page.get_by_role("link", name="Replay…").press("Enter")
    page.get_by_label("Reason").press("Enter")
    page.get_by_label("Reason").fill("the provider is back")
    page.get_by_label("Reason").press("Enter")
    expect(page.locator("#toast")).to_contain_text("starts in 10 s")
    page.locator("#toast").get_by_role("button", name="Undo").press("Enter")
    expect(page.locator(".say")).to_contain_text("Taken back before it did anything.")
    expect(page.locator("main")).to_contain_text("not yet")
    world.do(forget)


def test_rows_are_walked_ticked_in_ranges_and_kept_over_pages_by_keys_alone(open_page: OpenPage, world: World) -> None:
    world.snapshot()
    world.do(lambda: submit_tasks(make_tenant(), 55, pool="llm", kind="summary"))
    page = open_page("/ops/", "admin")
    page.keyboard.press("/")
    expect(page.locator(".find input")).to_be_focused()
    page.keyboard.type("acme")
    page.keyboard.press("Enter")
    expect(page.locator("#found-h")).to_contain_text("acme")
    page.keyboard.press("g")
    page.keyboard.press("t")
    rows = page.locator("main tbody th a")
    expect(rows).to_have_count(50)
    for key in "jjxjj":
        page.keyboard.press(key)
    page.keyboard.press("Shift+X")
    expect(page.locator("#ticked")).to_have_text("3 ticked")
    expect(rows.nth(3)).to_be_focused()
    page.locator("a[rel=next]").click()
    expect(rows).to_have_count(5)
    expect(page.locator("#ticked")).to_have_text("3 ticked, 3 of them on other pages")
    page.keyboard.press("a")
    expect(page.locator("#ticked")).to_have_text("8 ticked, 3 of them on other pages")
    page.get_by_role("button", name="Cancel").click()
    expect(page.locator("main")).to_contain_text("8 tasks match")
    page.go_back()
    expect(page.locator("#ticked")).to_have_text("5 ticked")  # what is seen; those of other pages were done with
