"""Who may open what: every route of the console against every role, read from the URL table itself."""

from __future__ import annotations

import inspect
import uuid
from collections.abc import Callable
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from scheduler.models import BoundAccount, Pool
from scheduler.policy.roles import PERMISSIONS, Role
from scheduler.policy.types import TaskId
from scheduler.web.access import home_of
from scheduler.web.urls import urlpatterns
from tests.support.work import make_tenant
from tests.web.conftest import SignIn, WithPermissions, WithRole
from tests.web.runs_cast import run_of_tests, schedule_of_tests


def methods_of(view: Callable[..., Any]) -> list[str]:
    """What the decorator `require_safe` or `require_POST` of a view lets through; it is the outermost one."""
    return list(inspect.getclosurevars(view).nonlocals.get("request_method_list", ()))


ROUTES = {str(pattern.name): pattern for pattern in urlpatterns}
OPEN_TO_ALL = {"sign-in", "sign-out", "look"}
POSTS = {"look", "sign-out"} | {name for name, route in ROUTES.items() if "POST" in methods_of(route.callback)}
"""Everything that changes something."""
DECLARED = {f"scheduler.{codename}" for model in (Pool, BoundAccount) for codename, _ in model._meta.permissions}


def permission_of(route: str) -> str:
    """What the route asks for, as its view says; a view without any fails here."""
    return str(vars(ROUTES[route].callback)["permission"])


def url_of(route: str, task: int, **others: object) -> str:
    """The route with something real for each part of its address; `others` take the place of the usual ones."""
    real: dict[str, object] = {"name": "llm", "page": "overview", "task_id": task, "slug": "acme", "event_id": 1}
    real |= {"operation_id": 1, "fingerprint": "0" * 16, "top_up_id": 1}
    real |= {"run_id": run_of_tests(), "schedule_id": schedule_of_tests(), "worker_id": uuid.uuid4()}
    real |= {"public_id": "0a1b2c", "webhook_id": 1, "filter_id": 1} | others
    return reverse(f"ops:{route}", kwargs={part: real[part] for part in ROUTES[route].pattern.converters})


@pytest.mark.usefixtures("snapshot")
@pytest.mark.parametrize("route", sorted(ROUTES.keys() - OPEN_TO_ALL))
def test_every_route_checks_its_permission(
    route: str, with_permissions: WithPermissions, llm: Pool, task: TaskId
) -> None:
    permission = permission_of(route)
    assert permission in DECLARED
    url = url_of(route, task)

    def answer(client: Client) -> tuple[int, str, str]:
        response = client.post(url) if route in POSTS else client.get(url)
        said = "" if response.streaming else response.content.decode()
        return response.status_code, response.get("Location", ""), said

    status, location, _ = answer(Client())
    assert status == 302
    assert location.startswith("/ops/sign-in/?next=/ops/")
    for held in set(), DECLARED - {permission}:
        status, _, said = answer(with_permissions(held))
        assert status == 403, held
        assert permission in said
    status, location, _ = answer(with_permissions({permission}))
    assert status not in {401, 403, 405}
    assert "sign-in" not in location


@pytest.mark.parametrize("route", sorted(ROUTES.keys() - {"sign-in", "sign-out"}))
def test_every_view_says_whether_it_reads_or_changes(route: str) -> None:
    assert methods_of(ROUTES[route].callback) in (["GET", "HEAD"], ["POST"])


@pytest.mark.parametrize("route", sorted(POSTS))
def test_a_post_without_its_token_changes_nothing(
    route: str, with_permissions: WithPermissions, llm: Pool, task: TaskId
) -> None:
    strict = Client(enforce_csrf_checks=True)
    strict.cookies = with_permissions(set() if route in OPEN_TO_ALL | {"sign-out"} else {permission_of(route)}).cookies
    response = strict.post(url_of(route, task), {"reason": "x"})
    assert response.status_code == 403
    assert "too old" in response.content.decode()
    llm.refresh_from_db()
    assert llm.paused_at is None


def test_a_signed_out_action_comes_back_to_a_page_and_not_to_an_action(signed_in: SignIn, llm: Pool) -> None:
    response = signed_in("anonymous").post("/ops/pools/llm/pause/", {"reason": "x"})
    assert response["Location"] == "/ops/sign-in/?next=/ops/"


def test_roles_are_made_of_declared_permissions() -> None:
    assert {f"scheduler.{name}" for held in PERMISSIONS.values() for name in held} == DECLARED


ANSWERS_OWN = {"search"}
"""What names nothing in its address, and answers everybody with their own: see its own tests."""
FOR_TENANTS = {name for name in ROUTES.keys() - OPEN_TO_ALL if vars(ROUTES[name].callback)["for_tenants"]}


def answer_of(client: Client, route: str, task: int) -> int:
    url = url_of(route, task)
    return (client.post(url) if route in POSTS else client.get(url)).status_code


@pytest.mark.usefixtures("snapshot")
@pytest.mark.parametrize("role", list(Role))
def test_every_route_is_open_to_the_roles_that_hold_its_permission(
    role: Role, with_role: WithRole, llm: Pool, task: TaskId
) -> None:
    client = with_role(role)
    for route in sorted(ROUTES.keys() - OPEN_TO_ALL):
        status = answer_of(client, route, task)
        if permission_of(route).removeprefix("scheduler.") in PERMISSIONS[role]:
            assert status not in {302, 401, 403, 405}, route
        elif role is not Role.TENANT_VIEWER:
            assert status == 403, route


@pytest.mark.usefixtures("snapshot")
@pytest.mark.parametrize("besides", [set(), DECLARED], ids=["nothing else", "everything else"])
def test_a_bound_account_opens_nothing_of_others_whatever_else_it_may_do(
    besides: set[str], with_role: WithRole, llm: Pool, task: TaskId
) -> None:
    """The tenant that it is bound to owns nothing that the addresses name."""
    client = with_role(Role.TENANT_VIEWER, also=besides)
    home = home_of("globex")
    for route in sorted(ROUTES.keys() - OPEN_TO_ALL - ANSWERS_OWN):
        refused = 302 if route == "overview" and home else 404 if route in FOR_TENANTS else 403
        assert answer_of(client, route, task) == refused, route


@pytest.mark.usefixtures("snapshot")
def test_a_bound_account_watches_what_shows_nothing_of_others(with_role: WithRole) -> None:
    client = with_role(Role.TENANT_VIEWER)
    assert client.get("/ops/_live/still/").status_code == 200
    assert client.get("/ops/_live/own/?scope=globex").status_code == 200
    assert client.get("/ops/_live/own/?scope=acme").status_code == 404
    assert client.get("/ops/_live/tenant/?scope=globex").status_code == 404
    assert client.get("/ops/_live/counts/").status_code == 404
    assert client.get("/ops/_live/overview/").status_code == 404
    assert client.get("/ops/_live/pool/?scope=llm").status_code == 404


@pytest.mark.usefixtures("snapshot")
def test_an_account_that_is_bound_and_was_given_no_role_opens_nothing(with_permissions: WithPermissions) -> None:
    client = with_permissions({"scheduler.view_console"})
    BoundAccount.objects.create(user_id=int(client.session["_auth_user_id"]), tenant_id=make_tenant("globex"))
    assert client.get("/ops/pools/").status_code == 403
    assert client.get("/ops/_live/still/").status_code == 403
