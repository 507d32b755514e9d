"""Requests that are repeated, one after the other and at the same time."""

from concurrent.futures import ThreadPoolExecutor

import httpx2

from scheduler.models import IdempotencyRecord, Task
from tests.api.conftest import Site
from tests.support import database
from tests.support.deadlock import deadlock_in

TASK: dict[str, object] = {"pool": "llm", "kind": "idem", "payload": {"n": 1}}


def submit(site: Site, key: str, body: dict[str, object] = TASK, path: str = "/tasks") -> httpx2.Response:
    with site.client() as client:
        return client.post(path, json=body, headers={"Idempotency-Key": key})


def test_a_repeated_request_gets_the_first_answer(site: Site) -> None:
    first = submit(site, "again")
    second = submit(site, "again")
    assert first.status_code == second.status_code == 202
    assert first.json() == second.json()
    assert "Idempotency-Replayed" not in first.headers
    assert second.headers["Idempotency-Replayed"] == "true"


def test_the_same_key_for_another_request_is_refused(site: Site) -> None:
    submit(site, "other")
    refused = submit(site, "other", {**TASK, "payload": {"n": 2}})
    assert (refused.status_code, refused.json()["code"]) == (422, "key_reused")
    refused = submit(site, "other", {"tasks": [TASK]}, "/tasks/batch")
    assert (refused.status_code, refused.json()["code"]) == (422, "key_reused")


def test_at_the_same_time_the_work_is_done_once(site: Site) -> None:
    before = Task.objects.count()
    with ThreadPoolExecutor(16) as pool:
        answers = list(pool.map(lambda _: submit(site, "at once"), range(16)))
    assert {a.status_code for a in answers} == {202}
    assert len({a.json()["id"] for a in answers}) == 1
    assert sum("Idempotency-Replayed" not in a.headers for a in answers) == 1
    assert Task.objects.count() == before + 1


def test_a_refused_request_may_be_repeated_with_its_key(site: Site) -> None:
    refused = submit(site, "mended", {**TASK, "pool": "nope"})
    assert refused.status_code == 422
    assert submit(site, "mended").status_code == 202


def test_keys_are_each_tenants_own(site: Site) -> None:
    mine = submit(site, "shared")
    with site.client(site.rival) as rival:
        theirs = rival.post("/tasks", json=TASK, headers={"Idempotency-Key": "shared"})
    assert theirs.json()["id"] != mine.json()["id"]


def test_a_tokens_secret_is_not_kept_for_repetitions(site: Site) -> None:
    with site.client(site.admin) as admin:
        body = {"tenant": "acme", "scopes": ["read"]}
        first = admin.post("/tokens", json=body, headers={"Idempotency-Key": "token"})
        second = admin.post("/tokens", json=body, headers={"Idempotency-Key": "token"})
    assert first.json()["token"].startswith(f"cq_{first.json()['id']}_")
    assert second.json() == {"id": first.json()["id"], "token": None}
    assert not IdempotencyRecord.objects.filter(body__token__isnull=False).exclude(body__token=None).exists()


def test_unusable_keys_are_refused(site: Site) -> None:
    for key in ("x" * 201, ""):
        refused = submit(site, key)
        assert (refused.status_code, refused.json()["code"]) == (400, "bad_idempotency_key")


def test_one_task_key_many_clients(site: Site) -> None:
    """The same `key` and content from many at once, without Idempotency-Key: one task, the rest are told so."""
    body = {**TASK, "key": "one of us"}

    def send(_: int) -> httpx2.Response:
        with site.client() as client:
            return client.post("/tasks", json=body)

    with ThreadPoolExecutor(16) as pool:
        answers = list(pool.map(send, range(32)))
    assert len({a.json()["id"] for a in answers}) == 1
    assert sorted(a.status_code for a in answers) == [200] * 31 + [202]
    with site.client() as client:
        other = client.post("/tasks", json={**body, "payload": {"n": 9}})
    assert (other.status_code, other.json()["code"]) == (422, "key_reused")


def test_what_met_a_deadlock_is_answered_as_done_and_done_once(
    site: Site, admin: httpx2.Client, django_db_setup: str
) -> None:
    headers = {"Idempotency-Key": "a deadlock"}
    with deadlock_in(database.url_of(django_db_setup), "idempotency_record") as came:
        made = admin.post("/tokens", json={"scopes": ["read"], "tenant": "acme"}, headers=headers)
        assert came() == 2
    assert made.status_code == 201, made.text
    with site.client(made.json()["token"]) as holder:
        assert holder.get("/tenants").status_code == 200
    repeated = admin.post("/tokens", json={"scopes": ["read"], "tenant": "acme"}, headers=headers)
    assert (repeated.json()["id"], repeated.json()["token"]) == (made.json()["id"], None)
