"""The list of tasks: what a filter finds, how pages follow one another, what a faulty filter leaves standing."""

from __future__ import annotations

import re

import pytest
from django.test import Client

from scheduler.models import Snapshot, Task
from scheduler.policy.types import PoolId, TaskId, TenantId
from tests.support.statements import statements
from tests.support.work import HandWorker, be_patient, make_pool, make_tenant, submit_tasks
from tests.web.conftest import SignIn

pytestmark = pytest.mark.usefixtures("snapshot")
PAGE = "/ops/tasks/"
ROW = re.compile(r'<a href="/ops/tasks/(\d+)/">')


def shown(client: Client, url: str = PAGE, **query: str) -> tuple[list[int], str]:
    response = client.get(url, query)
    html = response.content.decode()
    assert response.status_code == 200, html
    return [int(task) for task in ROW.findall(html)], html


def link(html: str, rel: str) -> str | None:
    found = re.search(rf'href="([^"]+)" rel="{rel}"', html)
    return found[1].replace("&amp;", "&") if found else None


@pytest.fixture
def acme(db: None) -> TenantId:
    return make_tenant("acme")


@pytest.fixture
def pool(db: None) -> PoolId:
    return make_pool("p", max_attempts=1)


def dead(pool: PoolId, count: int) -> list[TaskId]:
    """So many of the tasks that wait are tried, and die."""
    worker = HandWorker({pool: count})
    leased = worker.start()
    worker.fail(leased)
    be_patient()
    return [each.task for each in leased]


def test_the_newest_come_first_with_their_state_in_words(signed_in: SignIn, acme: TenantId, pool: PoolId) -> None:
    tasks = submit_tasks(acme, 3, kind="summary")
    found, html = shown(signed_in("viewer"))
    assert found == sorted(tasks, reverse=True)
    assert "3 tasks" in html
    assert html.count("Waiting</span>") == 3
    assert "summary" in html


def test_a_filter_narrows_and_stays_in_the_address(signed_in: SignIn, acme: TenantId, pool: PoolId) -> None:
    submit_tasks(make_tenant("other"), 2)
    (mine,) = submit_tasks(acme, 1, kind="report")
    client = signed_in("viewer")
    for text in ("tenant:acme", "-tenant:other", "kind:report", '"epor"', "pool:p tenant:acme", f"task:{mine}"):
        found, html = shown(client, filter=text)
        assert found == [mine], text
        assert f'value="{text.replace(chr(34), "&quot;")}"' in html
    assert shown(client, filter="tenant:acme,other")[0] != [mine]
    assert shown(client, filter="age>1h")[0] == []
    assert shown(client, filter="state:succeeded")[1].count("No task matches") == 1


def test_states_and_reasons(signed_in: SignIn, acme: TenantId, pool: PoolId) -> None:
    submit_tasks(acme, 2)
    died = dead(pool, 2)
    waiting = submit_tasks(acme, 1)
    client = signed_in("viewer")
    assert shown(client, filter="state:dead")[0] == sorted(died, reverse=True)
    assert shown(client, filter="state:dead reason:error attempts>=1")[0] == sorted(died, reverse=True)
    assert shown(client, filter="state:dead reason:timeout")[0] == []
    assert shown(client, filter='state:dead "IT BROKE"')[0] == sorted(died, reverse=True)
    assert shown(client, filter="state:waiting")[0] == waiting
    assert shown(client, filter="state:ready")[0] == waiting
    assert shown(client, filter="-state:dead")[0] == waiting
    assert shown(client, filter="state:dead,ready")[0] == sorted([*died, *waiting], reverse=True)
    assert shown(client, filter="state:running")[0] == []
    assert shown(client, filter="state:discarded")[0] == []


def test_pages_follow_one_another_without_holes_or_repeats(signed_in: SignIn, acme: TenantId, pool: PoolId) -> None:
    tasks = submit_tasks(acme, 120)
    client = signed_in("viewer")
    first, html = shown(client, filter="tenant:acme")
    submit_tasks(acme, 1)
    older = link(html, "next")
    assert older
    second, html = shown(client, older)
    newer = link(html, "prev")
    assert newer
    third, end = shown(client, link(html, "next") or "")
    assert first + second + third == sorted(tasks, reverse=True)
    assert link(end, "next") is None
    assert shown(client, link(end, "prev") or "")[0] == second
    again, html = shown(client, newer)
    assert again == first
    top, _ = shown(client, link(html, "prev") or "")
    assert max(top) > max(first), "what came meanwhile is at the top"


@pytest.mark.parametrize("tasks", [0, 1, 50, 51])
def test_a_full_page_is_the_last_one_unless_there_is_more(
    tasks: int, signed_in: SignIn, acme: TenantId, pool: PoolId
) -> None:
    if tasks:
        submit_tasks(acme, tasks)
    seen, html = shown(signed_in("viewer"))
    assert len(seen) == min(tasks, 50)
    assert (link(html, "next") is not None) == (tasks > 50)
    assert link(html, "prev") is None


def test_a_faulty_filter_is_answered_beside_its_box(signed_in: SignIn, acme: TenantId, pool: PoolId) -> None:
    (task,) = submit_tasks(acme, 1)
    client = signed_in("viewer")
    submit_tasks(make_tenant("other"), 1)
    response = client.get(PAGE, {"filter": "pool:p stat:dead", "was": "tenant:acme"})
    html = response.content.decode()
    assert response.status_code == 422
    assert "At character 8: There is no key &#x27;stat&#x27;; there are pool, tenant" in html
    assert 'value="pool:p stat:dead"' in html
    assert ROW.findall(html) == [str(task)], "the results of before stay"
    response = client.get(PAGE, {"filter": "tenant:nobody"})
    assert response.status_code == 422
    assert "There is no tenant &#x27;nobody&#x27;." in response.content.decode()


@pytest.mark.parametrize("query", [{"older": "x"}, {"older": "9" * 40}, {"newer": "-1"}, {"filter": "\x00"}])
def test_nonsense_in_the_address_breaks_nothing(query: dict[str, str], signed_in: SignIn, pool: PoolId) -> None:
    assert signed_in("viewer").get(PAGE, query).status_code in {200, 422}


def test_an_empty_list_says_which_kind_of_empty(signed_in: SignIn, acme: TenantId, pool: PoolId) -> None:
    client = signed_in("viewer")
    assert "No task has been submitted yet." in shown(client)[1]
    submit_tasks(acme, 1)
    assert "No task matches <code>state:failed</code>" in shown(client, filter="state:failed")[1]
    assert "This page is empty" in shown(client, older="1")[1]


def test_a_page_costs_the_same_statements_however_many_rows(signed_in: SignIn, acme: TenantId, pool: PoolId) -> None:
    client = signed_in("viewer")
    numbers = []
    shown(client)
    for _ in range(2):
        submit_tasks(acme, 60)
        with statements() as sent:
            shown(client, filter="state:ready pool:p")
        numbers.append(len(sent))
    assert numbers[0] == numbers[1] <= 12


def test_what_users_write_is_text(signed_in: SignIn, acme: TenantId, pool: PoolId) -> None:
    submit_tasks(acme, 1, kind="<script>alert(1)</script>", key='"><img src=x onerror=alert(1)>')
    html = shown(signed_in("viewer"), filter='"<script>"')[1]
    assert "<script>alert" not in html
    assert "<img" not in html
    assert Task.objects.count() == 1


def test_snapshot_is_not_needed(signed_in: SignIn, acme: TenantId, pool: PoolId) -> None:
    Snapshot.objects.all().delete()
    assert shown(signed_in("viewer"))[0] == []
