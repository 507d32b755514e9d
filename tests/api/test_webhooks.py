"""Webhooks over REST: whose they are, the secret that is shown once, and what is refused."""

from __future__ import annotations

import httpx2
import pytest

from tests.api.conftest import Site

HOOK = {"url": "https://hooks.example/cronoq", "events": ["task.failed", "alert"]}


@pytest.fixture
def webhook(api: httpx2.Client) -> int:
    made = api.post("/webhooks", json=HOOK)
    assert made.status_code == 201, made.text
    return int(made.json()["id"])


def test_the_secret_is_shown_once(api: httpx2.Client) -> None:
    key = {"Idempotency-Key": "make my hook"}
    made = api.post("/webhooks", json=HOOK, headers=key).json()
    assert made["secret"].startswith("whsec_")
    assert (made["state"], made["tenant"], made["failures"], made["next_try_at"]) == ("active", "acme", 0, None)
    again = api.post("/webhooks", json=HOOK, headers=key).json()
    assert (again["id"], again["secret"]) == (made["id"], None)
    assert "secret" not in api.get(f"/webhooks/{made['id']}").json()
    rotated = api.post(f"/webhooks/{made['id']}/rotate", json={}).json()
    assert rotated["secret"] not in (None, made["secret"])


def test_a_webhook_is_edited_paused_listed_and_removed(api: httpx2.Client, webhook: int) -> None:
    edited = api.patch(f"/webhooks/{webhook}", json={"version": 1, "state": "paused", "events": ["alert"]})
    assert (edited.json()["state"], edited.json()["events"], edited.json()["version"]) == ("paused", ["alert"], 2)
    stale = api.patch(f"/webhooks/{webhook}", json={"version": 1, "state": "active"})
    assert (stale.status_code, stale.json()["code"]) == (409, "version_conflict")
    page = api.get("/webhooks", params={"cursor": webhook - 1, "limit": 1}).json()
    assert [each["id"] for each in page["webhooks"]] == [webhook]
    assert api.get(f"/webhooks/{webhook}/deliveries").json() == {"deliveries": [], "next_cursor": None}
    assert api.delete(f"/webhooks/{webhook}").status_code == 204
    assert api.get(f"/webhooks/{webhook}").status_code == 404


@pytest.mark.parametrize(
    ("body", "loc"),
    [
        ({"url": "http://169.254.169.254/"}, ["body", "url"]),
        ({"url": "http://localhost:5432/"}, ["body", "url"]),
        ({"url": "file:///etc/passwd"}, ["body", "url"]),
        ({"events": []}, ["body", "events"]),
        ({"events": ["task.done"]}, ["body", "events"]),
    ],
)
def test_one_that_cannot_work_is_refused_by_field(api: httpx2.Client, body: dict[str, object], loc: list[str]) -> None:
    refused = api.post("/webhooks", json={**HOOK, **body})
    assert refused.status_code == 422
    assert refused.json()["errors"][0]["loc"][-1] == loc[-1]


def test_one_of_every_tenant_is_for_tokens_of_every_tenant(site: Site, api: httpx2.Client) -> None:
    with site.client(site.admin) as admin:
        made = admin.post("/webhooks", json={**HOOK, "events": ["alert.limit_paused"], "every_tenant": True})
        assert (made.status_code, made.json()["tenant"]) == (201, None)
        both = admin.post("/webhooks", json={**HOOK, "every_tenant": True, "tenant": "acme"})
        assert (both.status_code, both.json()["errors"][0]["loc"]) == (422, ["every_tenant"])
        refused = api.post("/webhooks", json={**HOOK, "every_tenant": True})
        assert (refused.status_code, refused.json()["code"]) == (403, "needs_all_tenants")
        assert api.get(f"/webhooks/{made.json()['id']}").status_code == 404
        assert admin.delete(f"/webhooks/{made.json()['id']}").status_code == 204


def test_replay_goes_as_far_back_as_events_are_kept(api: httpx2.Client, webhook: int) -> None:
    newest = api.get(f"/webhooks/{webhook}").json()["cursor"]
    assert api.post(f"/webhooks/{webhook}/replay", json={"after": newest}).status_code == 200
    refused = api.post(f"/webhooks/{webhook}/replay", json={"after": newest + 10**6})
    assert (refused.status_code, refused.json()["code"]) == (422, "not_kept")


def test_another_tenant_s_webhook_is_not_found_on_any_route(site: Site, webhook: int) -> None:
    with site.client(site.rival) as rival:
        answers = [
            rival.get(f"/webhooks/{webhook}"),
            rival.get(f"/webhooks/{webhook}/deliveries"),
            rival.patch(f"/webhooks/{webhook}", json={"version": 1, "state": "paused"}),
            rival.post(f"/webhooks/{webhook}/rotate", json={}),
            rival.post(f"/webhooks/{webhook}/replay", json={"after": 0}),
            rival.delete(f"/webhooks/{webhook}"),
        ]
        assert [(a.status_code, a.json()["code"]) for a in answers] == [(404, "unknown_webhook")] * 6
        assert webhook not in [each["id"] for each in rival.get("/webhooks").json()["webhooks"]]
        assert rival.post("/webhooks", json={**HOOK, "tenant": "acme"}).status_code == 404
