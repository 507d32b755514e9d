"""Who may open what: every route of the console against every role, read from the URL table itself."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from scheduler.models import Pool
from scheduler.policy.types import TaskId
from scheduler.web.urls import urlpatterns
from tests.web.conftest import SignIn, WithPermissions


def methods_of(view: Callable[..., Any]) -> list[str]:
    """What the decorator `require_safe` or `require_POST` of a view lets through; it is the outermost one."""
    return list(inspect.getclosurevars(view).nonlocals.get("request_method_list", ()))


ROUTES = {str(pattern.name): pattern for pattern in urlpatterns}
OPEN_TO_ALL = {"sign-in", "sign-out", "look"}
POSTS = {"look", "sign-out"} | {name for name, route in ROUTES.items() if "POST" in methods_of(route.callback)}
"""Everything that changes something."""


def permission_of(route: str) -> str:
    """What the route asks for, as its view says; a view without any fails here."""
    return str(vars(ROUTES[route].callback)["permission"])


def url_of(route: str, task: int) -> str:
    """The route with something real for each part of its address."""
    real = {"name": "llm", "page": "overview", "task_id": task}
    return reverse(f"ops:{route}", kwargs={part: real[part] for part in ROUTES[route].pattern.converters})


@pytest.mark.usefixtures("snapshot")
@pytest.mark.parametrize("who", ["anonymous", "nobody", "all but it", "only it"])
@pytest.mark.parametrize("route", sorted(ROUTES.keys() - OPEN_TO_ALL))
def test_every_route_checks_its_permission(
    route: str, who: str, with_permissions: WithPermissions, llm: Pool, task: TaskId
) -> None:
    permission = permission_of(route)
    everything = {f"scheduler.{codename}" for codename, _ in Pool._meta.permissions}
    assert permission in everything
    held = {"nobody": set(), "all but it": everything - {permission}, "only it": {permission}}
    client = Client() if who == "anonymous" else with_permissions(held[who])
    response = client.post(url_of(route, task)) if route in POSTS else client.get(url_of(route, task))
    if who == "only it":
        assert response.status_code not in {401, 403, 405}
        assert "sign-in" not in response.get("Location", "")
    elif who == "anonymous":
        assert response.status_code == 302
        assert response["Location"].startswith("/ops/sign-in/?next=/ops/")
    else:
        assert response.status_code == 403
        assert permission in response.content.decode()


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


def test_the_permissions_are_declared(db: None) -> None:
    declared = {f"scheduler.{codename}" for codename, _ in Pool._meta.permissions}
    assert {"scheduler.view_console", "scheduler.operate_pool"} <= declared
