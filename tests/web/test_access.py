"""Who may open what: every route of the console against every role, read from the URL table itself."""

from __future__ import annotations

import pytest
from django.test import Client
from django.urls import reverse

from scheduler.models import Pool
from scheduler.policy.types import TaskId
from scheduler.web.urls import urlpatterns
from tests.web.conftest import SignIn

ARGUMENTS = {"pool": ["llm"], "pool-pause": ["llm"], "pool-resume": ["llm"], "poll": ["overview"]}
OPEN_TO_ALL = {"sign-in", "sign-out", "look"}
PERMISSION = {"pool-pause": "operator", "pool-resume": "operator"}
ROLES = ["anonymous", "nobody", "viewer", "operator"]
POSTS = {"pool-pause", "pool-resume", "look", "sign-out"}


def routes() -> list[str]:
    return [str(pattern.name) for pattern in urlpatterns]


def allowed(route: str, role: str) -> bool:
    return route in OPEN_TO_ALL or ROLES.index(role) >= ROLES.index(PERMISSION.get(route, "viewer"))


@pytest.mark.usefixtures("snapshot")
@pytest.mark.parametrize("role", ROLES)
@pytest.mark.parametrize("route", routes())
def test_every_route_checks_its_permission(route: str, role: str, signed_in: SignIn, llm: Pool, task: TaskId) -> None:
    client = signed_in(role)
    url = reverse(f"ops:{route}", args=[task] if route == "task" else ARGUMENTS.get(route, []))
    response = client.post(url, {"reason": "a test"}) if route in POSTS else client.get(url)
    if allowed(route, role):
        assert response.status_code in {200, 302, 303}
        assert route in OPEN_TO_ALL or "sign-in" not in response.get("Location", "")
    elif role == "anonymous":
        assert response.status_code == 302
        assert response["Location"].startswith("/ops/sign-in/?next=/ops/")
    else:
        assert response.status_code == 403
        assert f"scheduler.{'operate_pool' if route in PERMISSION else 'view_console'}" in response.content.decode()
    llm.refresh_from_db()
    assert (llm.paused_at is not None) == (route == "pool-pause" and role == "operator")


@pytest.mark.parametrize("route", sorted(POSTS - {"sign-out"}))
def test_changes_are_posts_only(route: str, signed_in: SignIn, llm: Pool) -> None:
    url = reverse(f"ops:{route}", args=ARGUMENTS.get(route, []))
    assert signed_in("operator").get(url).status_code == 405


@pytest.mark.parametrize("route", sorted(POSTS))
def test_a_post_without_its_token_changes_nothing(route: str, signed_in: SignIn, llm: Pool) -> None:
    strict = Client(enforce_csrf_checks=True)
    strict.cookies = signed_in("operator").cookies
    response = strict.post(reverse(f"ops:{route}", args=ARGUMENTS.get(route, [])), {"reason": "x"})
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
