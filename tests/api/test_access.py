"""Every route of the OpenAPI document: no token, wrong scope, another tenant's things."""

import re
from collections.abc import Iterator
from typing import Any

import httpx2
import pytest

from scheduler.services.tokens import create_token, revoke_token
from tests.api.conftest import Site
from tests.support.waiting import wait_until

SCOPES = {"submit", "read", "work", "operate", "admin", "metrics"}
TASK = {"pool": "llm", "payload": {"n": 1}}


def routes(client: httpx2.Client) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Method, path with every parameter filled in, and the operation."""
    for path, methods in client.get("/openapi.json").json()["paths"].items():
        for method, operation in methods.items():
            yield (
                method.upper(),
                re.sub(r"\{[^}]*id\}", "1", path).replace("{name}", "llm").replace("{slug}", "acme"),
                operation,
            )


def test_without_a_token_every_route_answers_401_and_how_to_get_in(site: Site) -> None:
    with site.client("") as nobody:
        for method, path, _ in routes(nobody):
            answer = nobody.request(method, f"{site.url}{path}", json={})
            assert answer.status_code == 401, (method, path)
            assert answer.headers["WWW-Authenticate"].startswith("Bearer")
            assert answer.headers["Content-Type"] == "application/problem+json"


@pytest.mark.parametrize("tenant", ["acme", None])
def test_every_scope_but_the_right_one_answers_403(site: Site, tenant: str | None) -> None:
    tokens = {
        scope: create_token(scopes=sorted(SCOPES - {scope}), tenant=tenant, actor="test").text for scope in SCOPES
    }
    with site.client() as client:
        for method, path, operation in routes(client):
            headers = {"Authorization": f"Bearer {tokens[operation['x-scope']]}"}
            answer = client.request(method, f"{site.url}{path}", json={}, headers=headers)
            assert answer.status_code == 403, (method, path)
            assert answer.json()["code"] == "missing_scope"


@pytest.mark.parametrize(
    "token",
    ["cq_unknown_0123456789abcdef", "nonsense", "cq__", "x" * 5000, "cq_ab_\u00e9" + "0" * 20],
    ids=["unknown", "no token", "empty parts", "long", "not ascii"],
)
def test_tokens_that_open_nothing_look_the_same(site: Site, token: str) -> None:
    with site.client("") as client:
        answer = client.get("/tasks", headers=[(b"Authorization", b"Bearer " + token.encode())])
        assert answer.status_code == 401
        assert answer.json()["detail"] == "This token is unknown, expired or revoked."


def test_expired_and_wrong_secrets_are_refused(site: Site) -> None:
    expired = create_token(scopes=["read"], tenant="acme", expires_at=1.0, actor="test").text
    with site.client(expired) as client:
        assert client.get("/tasks").status_code == 401
    head, _, secret = site.token.rpartition("_")
    with site.client(f"{head}_{secret[::-1]}") as client:
        assert client.get("/tasks").status_code == 401


def test_a_revoked_token_stops_working_within_its_time(site: Site) -> None:
    made = create_token(scopes=["read"], tenant="acme", actor="test")
    with site.client(made.text) as client:
        assert client.get("/tasks").status_code == 200
        revoke_token(made.public_id, actor="test")
        wait_until(lambda: client.get("/tasks").status_code == 401, timeout_s=15, what="the revocation to be seen")


def test_another_tenants_task_is_not_found_on_any_route(site: Site, api: httpx2.Client) -> None:
    task = api.post("/tasks", json={**TASK, "key": "mine alone"}).json()["id"]
    with site.client(site.rival) as rival:
        for method, path, operation in routes(rival):
            if "/tasks/1" in path:
                answer = rival.request(method, f"{site.url}{path.replace('/tasks/1', f'/tasks/{task}')}", json={})
                assert (answer.status_code, answer.json()["code"]) == (404, "unknown_task"), operation["operationId"]
        assert task not in [t["id"] for t in rival.get("/tasks", params={"limit": 200}).json()["tasks"]]
        assert rival.get("/tasks", params={"key": "mine alone"}).json()["tasks"] == []
        assert rival.get("/tasks", params={"tenant": "acme"}).json()["code"] == "unknown_tenant"
        assert rival.post("/tasks", json={**TASK, "tenant": "acme"}).status_code == 404
        assert rival.get("/tenants/acme").status_code == 404
        assert [t["slug"] for t in rival.get("/tenants").json()["tenants"]] == ["globex"]
        mine = rival.post("/tasks", json={**TASK, "key": "mine alone"})
        assert mine.json()["duplicate"] is False
    assert api.get(f"/tasks/{task}").json()["state"] == "ready"


def test_a_tenants_operator_does_not_stop_a_pool_that_others_use(api: httpx2.Client, admin: httpx2.Client) -> None:
    refused = api.post("/pools/llm/pause", json={"reason": "mine"})
    assert (refused.status_code, refused.json()["code"]) == (403, "needs_all_tenants")
    assert admin.get("/pools/llm").json()["state"] == "running"


def test_a_token_of_every_tenant_says_whose_work_it_submits(admin: httpx2.Client) -> None:
    unnamed = admin.post("/tasks", json=TASK)
    assert (unnamed.status_code, unnamed.json()["code"]) == (422, "tenant_required")
    named = admin.post("/tasks", json={**TASK, "tenant": "globex"})
    assert named.status_code == 202
    assert admin.get(f"/tasks/{named.json()['id']}").json()["tenant"] == "globex"
    assert admin.post("/tasks", json={**TASK, "tenant": "nobody"}).status_code == 404


def test_a_token_of_some_pools_submits_to_those_alone(site: Site, admin: httpx2.Client) -> None:
    admin.post("/pools", json={"name": "other", "executor": "python"})
    made = admin.post("/tokens", json={"tenant": "acme", "scopes": ["submit"], "pools": ["other"]})
    assert made.status_code == 201
    with site.client(made.json()["token"]) as client:
        assert client.post("/tasks", json={**TASK, "pool": "other"}).status_code == 202
        refused = client.post("/tasks", json=TASK)
        assert (refused.status_code, refused.json()["code"]) == (403, "pool_not_allowed")
        both = client.post("/tasks/batch", json={"tasks": [{**TASK, "pool": "other"}, TASK]})
        assert both.status_code == 403


def test_a_pools_configuration_is_for_administrators(api: httpx2.Client, admin: httpx2.Client) -> None:
    assert api.get("/pools/llm").json()["config"] is None
    assert admin.get("/pools/llm").json()["config"]["quota_resource"] == "openai"
