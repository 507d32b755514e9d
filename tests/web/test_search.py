"""The box in the header: numbers, keys and beginnings of names, and what an account of one tenant finds."""

from __future__ import annotations

from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from scheduler.models import TaskGroup, Tenant
from scheduler.policy.roles import Role
from scheduler.policy.types import TaskId, TenantId
from scheduler.store import queries
from tests.support.work import make_bucket, make_tenant, submit_tasks
from tests.web.conftest import SignIn, WithRole
from tests.web.runs_cast import schedule_of_tests

pytestmark = pytest.mark.usefixtures("snapshot")


def found(client: Client, text: str) -> str:
    response = client.get("/ops/search/", {"q": text})
    assert response.status_code == 200
    return response.content.decode().split("<main")[1]


@pytest.fixture
def client(signed_in: SignIn) -> Client:
    return signed_in("viewer")


def test_a_whole_key_that_stands_alone_is_opened_at_once(client: Client, task: TaskId) -> None:
    response = client.get("/ops/search/", {"q": " order-7 "})
    assert response["Location"] == f"/ops/tasks/{task}/"


def test_the_same_key_of_two_tenants_is_two_answers(client: Client, task: TaskId) -> None:
    other = submit_tasks(make_tenant("globex"), pool="llm", key="order-7")[0]
    said = found(client, "order-7")
    assert f'href="/ops/tasks/{task}/"' in said
    assert f'href="/ops/tasks/{other}/"' in said
    assert "globex" in said


def test_a_number_finds_everything_that_has_it(client: Client, task: TaskId) -> None:
    schedule = schedule_of_tests()
    assert f"/ops/schedules/{schedule}/" in str(client.get("/ops/search/", {"q": schedule}).headers) + (
        client.get("/ops/search/", {"q": schedule}).content.decode()
    )
    assert client.get("/ops/search/", {"q": task}).status_code in {200, 302}


def test_everything_that_is_found_can_be_opened(client: Client, task: TaskId) -> None:
    owner = Tenant.objects.get(slug="acme")
    TaskGroup.objects.create(tenant=owner, name="order-7", join="fail_fast")
    assert client.get("/ops/search/", {"q": "order-7"})["Location"] == f"/ops/tasks/{task}/", "a group has no page"


@pytest.mark.usefixtures("llm")
def test_names_are_found_by_their_beginning_and_patterns_are_text(client: Client) -> None:
    make_bucket("llm-tokens", rate=1.0, burst=1.0)
    said = found(client, "ll")
    assert 'href="/ops/pools/llm/"' in said
    assert 'href="/ops/resources/llm-tokens/"' in said
    assert "2 things" in said
    for odd in "%", "_lm", "\\", "l%", "<script>alert(1)</script>":
        assert "Nothing for" in found(client, odd)
    assert "<script>alert" not in found(client, "<script>alert(1)</script>")


@pytest.mark.parametrize("text", ["", "x" * 201, "a\x00b", "9" * 30, "١٢"])
def test_what_cannot_be_asked_finds_nothing_and_breaks_nothing(client: Client, text: str) -> None:
    assert "Give a number" in found(client, text)


def test_an_account_of_one_tenant_finds_its_own_and_opens_only_what_it_may(with_role: WithRole, task: TaskId) -> None:
    client = with_role(Role.TENANT_VIEWER)
    globex = TenantId(Tenant.objects.get(slug="globex").pk)
    own = submit_tasks(globex, pool="llm", key="order-8")[0]
    for foreign in str(task), "order-7", "acme", "llm":
        assert "Nothing for" in found(client, foreign)
    said = found(client, "order-8")
    assert "order-8" in said
    assert f"/ops/tasks/{own}/" not in said
    assert 'href="/ops/tenants/globex/"' in found(client, "glo")


def test_a_search_costs_the_same_however_much_is_found(client: Client, task: TaskId) -> None:
    def statements(text: str) -> int:
        with CaptureQueriesContext(connection) as queries_made:
            client.get("/ops/search/", {"q": text})
        return len(queries_made)

    few = statements("acme")
    for n in range(30):
        make_tenant(f"acme-{n}")
    assert statements("acme") == few <= 12


@pytest.mark.parametrize(
    ("name", "values", "indexes"),
    [
        ("numbered", {"number": 1, "tenant": None}, ["task_pkey", "schedule_pkey"]),
        (
            "keyed",
            {"text": "k", "tenant": None, "tenants_max": 10, "rows_max": 10},
            ["task_key_per_tenant", "tenant_pkey"],
        ),
        ("named", {"prefix": "a%", "tenant": None, "rows_max": 10}, ["schedule_by_name"]),
    ],
)
def test_nothing_is_searched_that_no_index_leads_to(name: str, values: dict[str, Any], indexes: list[str]) -> None:
    queries.run("SELECT set_config('enable_seqscan', 'off', true)")
    plan = "\n".join(row[0] for row in queries.fetch_anew("EXPLAIN " + queries.load("search.sql")[name], values))
    assert all(index in plan for index in indexes), plan
    assert "Seq Scan" not in plan


def test_every_page_says_where_it_is(client: Client, configure: Any) -> None:
    configure(environment="production")
    assert '<b class="env bad"><span class="sr">Environment: </span>production</b>' in found_whole(client)
    configure(environment="staging <2>")
    assert '<b class="env"><span class="sr">Environment: </span>staging &lt;2&gt;</b>' in found_whole(client)


def found_whole(client: Client) -> str:
    return client.get("/ops/search/").content.decode()
