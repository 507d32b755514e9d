"""An account that is bound to a tenant sees nothing of another: neither its name nor its work, on no page or frame."""

from __future__ import annotations

import re

import pytest
from django.test import Client

from scheduler.live.pages import LIVE_PAGES, SCOPED
from scheduler.models import Snapshot, Tenant
from scheduler.policy.roles import Role
from scheduler.policy.types import TenantId
from scheduler.services.changes import Author, record
from tests.live import sample
from tests.support.books import USD, make_budget, make_entry
from tests.support.work import HandWorker, make_pool, make_tenant, submit_tasks
from tests.web.conftest import WithRole
from tests.web.runs_cast import busy_run, make_schedule, take_time
from tests.web.test_access import DECLARED, FOR_TENANTS, OPEN_TO_ALL, POSTS, ROUTES, url_of

OWN, OTHER = "globex", "umbrella"
TOKEN = re.compile(r'name="csrfmiddlewaretoken" value="\w+"')
READABLE = sorted(ROUTES.keys() - OPEN_TO_ALL - POSTS - {"poll"})


@pytest.fixture
def viewer(with_role: WithRole) -> Client:
    """Bound to `globex`, though its account may do everything besides."""
    return with_role(Role.TENANT_VIEWER, also=DECLARED)


@pytest.fixture
def secrets(viewer: Client) -> list[str]:
    """What tells of the other tenant: its slug and name, and its tasks; both tenants work in the same pool."""
    pool = make_pool("llm", max_attempts=1, slots=40)
    other = make_tenant(OTHER, name="Red Queen")
    own = TenantId(Tenant.objects.get(slug=OWN).pk)
    busy_run(other, pool, "hive")
    make_schedule(other, "nightly-hive")
    hidden = submit_tasks(other, 3, pool="llm", kind="virus")
    for tenant in (other, own):
        make_budget(tenant, limit=10 * USD, spent=9 * USD)
        make_entry(tenant, pool, USD, task_id=hidden[0] if tenant == other else 1)
    worker = HandWorker({pool: 9})
    worker.fail(worker.start())
    take_time()
    record(Author(OTHER, "ui", OTHER), "tenant.edit", f"tenant:{OTHER}", before={"name": OTHER}, after={"name": "x"})
    body = sample.body(failures=[sample.failure(1, tenant=OTHER, task=hidden[0])])
    body["spending"]["tenants"].append(sample.spender(OTHER, burn=USD, spent=USD))
    Snapshot.objects.create(body=body)
    return [OTHER, "Red Queen", "hive", "virus", *(f"/ops/tasks/{task}/" for task in hidden)]


def test_its_own_pages_name_nobody_else(viewer: Client, secrets: list[str]) -> None:
    for route in READABLE:
        response = viewer.get(url_of(route, 1, slug=OWN), follow=True)
        assert response.status_code == (200 if route in FOR_TENANTS | {"overview"} else 403), route
        html = response.content.decode()
        assert [secret for secret in secrets if secret in html] == [], route


def test_another_tenant_is_as_one_that_does_not_exist(viewer: Client, secrets: list[str]) -> None:
    """Every page about a tenant, to the letter."""
    about = [route for route in READABLE if "slug" in ROUTES[route].pattern.converters]
    assert about
    for route in about:
        answers = [viewer.get(url_of(route, 1, slug=slug)) for slug in (OTHER, "nosuch12")]
        there, nowhere = (
            (answer.status_code, TOKEN.sub("", answer.content.decode().replace(slug, "…")))
            for answer, slug in zip(answers, (OTHER, "nosuch12"), strict=True)
        )
        assert there[0] in {403, 404}, route
        assert there == nowhere, route


def test_frames_that_it_may_watch_name_nobody_else(viewer: Client, secrets: list[str]) -> None:
    for page in sorted(LIVE_PAGES):
        for scope in ("llm", OWN, OTHER) if page in SCOPED else ("",):
            response = viewer.get(f"/ops/_live/{page}/", {"scope": scope} if scope else {})
            is_own = page == "still" or (page, scope) == ("own", OWN)
            assert response.status_code == (200 if is_own else 404), page
            html = response.content.decode().replace(f"scope={scope}", "")
            assert [secret for secret in secrets if secret in html] == [], page
