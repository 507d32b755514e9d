"""Doing something to many tasks through the pages: what is shown before, what is refused, and what follows."""

from __future__ import annotations

import re
from html import unescape

import pytest
from django.test import Client

from scheduler.live.newest import newest
from scheduler.models import AuditEvent, Operation, OperationItem
from scheduler.policy.types import PoolId, TaskId, TenantId
from scheduler.services.dead import fold_dead
from scheduler.services.snapshot import take_snapshot
from tests.support.statements import statements
from tests.support.work import HandWorker, be_patient, make_pool, make_tenant, state_of, submit_tasks
from tests.web.conftest import WithPermissions

pytestmark = pytest.mark.usefixtures("snapshot")
NEW, START = "/ops/operations/new/", "/ops/operations/start/"


@pytest.fixture
def acme(db: None) -> TenantId:
    return make_tenant("acme")


@pytest.fixture
def pool(db: None) -> PoolId:
    return make_pool("p", max_attempts=1, slots=200)


@pytest.fixture
def operator(with_permissions: WithPermissions) -> Client:
    return with_permissions({"scheduler.view_console", "scheduler.operate_task"})


def die(tenant: TenantId, pool: PoolId, count: int) -> list[TaskId]:
    tasks = submit_tasks(tenant, count, kind="summary")
    worker = HandWorker({pool: count})
    worker.fail(worker.dispatch().leased)
    fold_dead()
    be_patient()
    return tasks


def text_of(client: Client, url: str, **query: str) -> str:
    response = client.get(url, query)
    assert response.status_code == 200, response.status_code
    return response.content.decode()


def form_of(html: str) -> dict[str, str]:
    """What the page of confirmation would send."""
    form = html[html.index('action="/ops/operations/start/"') :]
    names = dict(re.findall(r'name="(\w+)" (?:type="\w+" )?value="([^"]*)"', form))
    return {name: unescape(value) for name, value in names.items()} | {"reason": "mended"}


def test_the_navigation_counts_what_is_open(operator: Client, acme: TenantId, pool: PoolId) -> None:
    die(acme, pool, 3)
    take_snapshot(None, {}, interval_s=1.0)
    newest.forget()
    page = text_of(operator, "/ops/settings/")
    assert '<b id="tally-dead" class="tally">3<span class="sr"> kept</span></b>' in page
    assert '<b id="tally-operations" class="tally"></b>' in page


def test_from_a_group_of_dead_letters_to_an_operation(operator: Client, acme: TenantId, pool: PoolId) -> None:
    tasks = die(acme, pool, 3)
    html = text_of(operator, "/ops/dead/")
    assert "3 dead, in 1 group that died alike" in html
    group = re.search(r'href="(/ops/dead/[0-9a-f]{16}/)">it broke', html)
    assert group
    html = text_of(operator, group[1])
    assert "3 died alike" in html
    replay = re.search(r'href="([^"]+kind=replay[^"]+)"', html)
    assert replay
    html = text_of(operator, unescape(replay[1]))
    assert "3 tasks match<" in html
    response = operator.post(START, form_of(html))
    operation = Operation.objects.get()
    assert (response.status_code, response["Location"]) == (303, f"/ops/operations/{operation.pk}/")
    assert set(OperationItem.objects.values_list("task_id", flat=True)) == set(tasks)
    html = text_of(operator, response["Location"])
    assert "Replay 3 tasks: starts in 10 s." in html
    assert f'action="/ops/operations/{operation.pk}/abort/"' in html
    assert "Take back" in html
    operator.post(f"/ops/operations/{operation.pk}/abort/", {"reason": "undo"})
    assert "Taken back before it did anything." in text_of(operator, response["Location"])
    assert "Replay 3 tasks" in text_of(operator, "/ops/operations/")
    events = AuditEvent.objects.order_by("id").values_list("action", "actor", "source", "reason")
    assert list(events) == [
        ("operation.replay", "somebody", "ui", "mended"),
        ("operation.abort", "somebody", "ui", "undo"),
    ]


def test_sent_twice_it_is_one_operation(operator: Client, acme: TenantId, pool: PoolId) -> None:
    die(acme, pool, 2)
    form = form_of(text_of(operator, NEW, kind="replay", filter="tenant:acme"))
    assert operator.post(START, form)["Location"] == operator.post(START, form)["Location"]
    assert Operation.objects.count() == 1


def test_what_is_unclear_is_refused_beside_its_field_and_kept(operator: Client, acme: TenantId, pool: PoolId) -> None:
    die(acme, pool, 101)
    form = form_of(text_of(operator, NEW, kind="discard", filter="pool:p"))
    response = operator.post(START, form | {"reason": " ", "rate": "9999999", "typed": "100"})
    html = unescape(response.content.decode())
    assert response.status_code == 422
    for fault in ("Say why", "Tasks per second: more than 0", "Type 101 to confirm that you mean all of them."):
        assert fault in html
    assert 'value="9999999"' in html
    assert 'value="100"' in html
    assert not Operation.objects.exists()
    assert operator.post(START, form | {"typed": "101"}).status_code == 303


def test_more_than_was_shown_is_shown_again(operator: Client, acme: TenantId, pool: PoolId) -> None:
    die(acme, pool, 2)
    form = form_of(text_of(operator, NEW, kind="replay", filter=""))
    response = operator.post(START, form | {"count": "1"})
    assert response.status_code == 409
    assert "2 tasks match now, and 1 were shown. Look at them again." in response.content.decode()


@pytest.mark.parametrize(
    "form",
    [{}, {"kind": "explode"}, {"kind": "replay", "filter": "nope:1"}, {"kind": "replay", "count": "x", "as_of": "inf"}],
)
def test_nonsense_makes_nothing(form: dict[str, str], operator: Client, acme: TenantId, pool: PoolId) -> None:
    assert operator.post(START, form).status_code in {404, 422}
    assert not Operation.objects.exists()
    assert operator.get(NEW, form).status_code in {200, 404, 422}


def test_a_change_that_cannot_be_is_a_conflict(operator: Client, acme: TenantId, pool: PoolId) -> None:
    die(acme, pool, 1)
    url = operator.post(START, form_of(text_of(operator, NEW, kind="replay", filter="")))["Location"]
    assert operator.post(url + "pause/").status_code == 303
    response = operator.post(url + "pause/")
    assert response.status_code == 409
    assert "is paused; it cannot be changed so." in response.content.decode()
    assert operator.post("/ops/operations/999999/pause/").status_code == 404


def test_one_task_is_acted_on_from_its_page(operator: Client, acme: TenantId, pool: PoolId) -> None:
    (task,) = die(acme, pool, 1)
    page = f"/ops/tasks/{task}/"
    html = text_of(operator, page)
    assert "Replay</button>" in html
    assert "Cancel</button>" not in html
    operator.post(page + "discard/", {"reason": "noise"})
    html = text_of(operator, page)
    assert "Discarded</span>" in html
    assert f'action="{page}restore/"' in html
    assert "Restore</button>" in html
    assert operator.post(page + "discard/").status_code == 409
    operator.post(page + "restore/")
    operator.post(page + "replay/")
    assert state_of(task) == "ready"
    operator.post(page + "cancel/")
    assert state_of(task) == "cancelled"
    response = operator.post(page + "cancel/")
    assert response.status_code == 409
    actions = list(AuditEvent.objects.order_by("id").values_list("action", "source").distinct())
    assert {source for _, source in actions} == {"ui"}


def test_who_may_only_look_sees_no_button(with_permissions: WithPermissions, acme: TenantId, pool: PoolId) -> None:
    (task,) = die(acme, pool, 1)
    viewer = with_permissions({"scheduler.view_console"})
    for url in (f"/ops/tasks/{task}/", "/ops/tasks/?filter=state:dead", "/ops/dead/"):
        html = text_of(viewer, url)
        assert "Replay" not in html
    assert "scheduler.operate_task" in text_of(viewer, f"/ops/tasks/{task}/")


def test_groups_are_filtered_by_what_tells_them_apart(operator: Client, acme: TenantId, pool: PoolId) -> None:
    die(acme, pool, 1)
    die(make_tenant("other"), pool, 2)
    assert text_of(operator, "/ops/dead/").count("rowheader") == 2
    assert text_of(operator, "/ops/dead/", filter="tenant:other pool:p reason:error").count("rowheader") == 1
    assert "No dead letter matches" in text_of(operator, "/ops/dead/", filter="reason:timeout")
    response = operator.get("/ops/dead/", {"filter": "tenant:acme age>5m"})
    assert response.status_code == 422
    assert "At character 13: Groups are told apart by tenant, pool, kind, reason" in response.content.decode()
    assert operator.get("/ops/dead/", {"older": "nan-zz"}).status_code == 200


def test_an_empty_page_says_so(operator: Client, acme: TenantId, pool: PoolId) -> None:
    assert "No task has died here yet." in text_of(operator, "/ops/dead/")
    assert "None yet." in text_of(operator, "/ops/operations/")
    assert operator.get("/ops/dead/0000000000000000/").status_code == 404


def test_pages_cost_the_same_statements_however_many_rows(operator: Client, acme: TenantId, pool: PoolId) -> None:
    die(acme, pool, 1)
    url = operator.post(START, form_of(text_of(operator, NEW, kind="replay", filter="")))["Location"]
    numbers: list[list[int]] = []
    text_of(operator, "/ops/dead/")
    for count in (1, 20):
        die(acme, pool, count)
        die(make_tenant(f"tenant-{count}"), pool, count)
        numbers.append([])
        for page in ("/ops/dead/", "/ops/operations/", url, NEW + "?kind=replay&filter="):
            with statements() as sent:
                text_of(operator, page)
            numbers[-1].append(len(sent))
    assert numbers[0] == numbers[1]
    assert max(numbers[0]) <= 12


def asks(html: str) -> str:
    """The address that a page asks again for what moved; empty where nothing asks any more."""
    assert html.count('id="again"') == 1
    found = re.search(r'id="again"[^>]* hx-get="([^"]+)"', html)
    return unescape(found[1]) if found else ""


def test_progress_is_drawn_again_only_when_it_moved_and_until_it_is_over(
    operator: Client, acme: TenantId, pool: PoolId
) -> None:
    die(acme, pool, 2)
    url = operator.post(START, form_of(text_of(operator, NEW, kind="replay", filter="")))["Location"]
    assert "Starts in" in text_of(operator, asks(text_of(operator, url)).partition("?")[0])
    operator.post(url + "pause/")
    again = asks(text_of(operator, url))
    response = operator.get(again)
    assert (response.status_code, response.content) == (204, b"")
    Operation.objects.update(applied=1)
    moved = text_of(operator, again)
    assert "1 task left" in moved
    assert all(f'id="{part}" ' in moved for part in ("headline", "far", "sums", "skips"))
    assert not re.search("<(form|button|input|a) ", moved)
    assert operator.get(asks(moved)).status_code == 204
    operator.post(url + "abort/")
    over = text_of(operator, asks(moved))
    assert "Aborted" in over
    assert asks(over) == asks(text_of(operator, url)) == ""
    assert operator.get("/ops/operations/999999/progress/").status_code == 404


def test_buttons_say_in_which_states_they_are_there(operator: Client, acme: TenantId, pool: PoolId) -> None:
    die(acme, pool, 1)
    url = operator.post(START, form_of(text_of(operator, NEW, kind="replay", filter="")))["Location"]
    html = text_of(operator, url)
    assert 'data-state="starting"' in html
    assert re.findall(r'data-when="([^"]+)" formaction="[^"]+/(\w+)/">([^<]+)<', html) == [
        ("running starting", "pause", "Pause"),
        ("aborted paused", "resume", "Resume"),
        ("starting", "abort", "Take back"),
        ("paused running", "abort", "Abort"),
    ]
    Operation.objects.update(state="done", applied=1)
    assert "data-when" not in text_of(operator, url)
