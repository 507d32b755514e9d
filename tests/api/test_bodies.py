"""Bodies that must be refused by name and place, store nothing, and leave the connection usable."""

import json

import httpx2
import pytest

from scheduler.models import Task
from tests.api.conftest import Site

KIB = 1024


def post(client: httpx2.Client, body: bytes, path: str = "/tasks") -> httpx2.Response:
    return client.post(path, content=body, headers={"Content-Type": "application/json"})


def nested(levels: int) -> bytes:
    return b"[" * levels + b"]" * levels


@pytest.mark.parametrize(
    ("body", "status", "code", "loc"),
    [
        (b'{"pool":"llm","payload":{"a":["x\\u0000"]}}', 422, "bad_payload", ["payload", "a", 0]),
        (b'{"pool":"llm","payload":{"a":NaN}}', 422, "bad_payload", ["payload", "a"]),
        (b'{"pool":"llm","payload":{"a":-Infinity}}', 422, "bad_payload", ["payload", "a"]),
        (b'{"pool":"llm","payload":{"a":1e999}}', 422, "bad_payload", ["payload", "a"]),
        (b'{"pool":"llm","payload":["\\ud800"]}', 422, "bad_payload", ["payload", 0]),
        (b'{"pool":"llm","payload":{"\\udfff":1}}', 422, "bad_payload", ["payload", "?"]),
        (b'{"pool":"llm","payload":{"a":36893488147419103232}}', 422, "bad_payload", ["payload", "a"]),
        (b'{"pool":"llm","payload":{"a":' + b"9" * 5000 + b"}}", 422, "bad_payload", []),
        (b'{"pool":"llm","payload":' + nested(65) + b"}", 422, "bad_payload", ["payload", *[0] * 64]),
        (b'{"pool":"llm","payload":' + nested(100_000) + b"}", 422, "bad_payload", []),
        (b'{"pool":"llm","payload":1,"kind":"a\\u0000"}', 422, "invalid", ["kind"]),
        (b'{"pool":"llm","payload":1,"kind":"\\ud800"}', 422, "invalid", ["kind"]),
        (b'{"pool":"llm","payload":1,"key":""}', 422, "invalid", ["key"]),
        (b'{"pool":"llm","payload":1,"color":"red"}', 422, "invalid", ["color"]),
        (b'{"pool":"llm","payload":1,"priority":"urgent"}', 422, "invalid", ["priority"]),
        (b'{"pool":"llm","payload":1,"timeout":"5"}', 422, "invalid", ["timeout"]),
        (b'{"pool":"llm","payload":1,"timeout":true}', 422, "invalid", ["timeout"]),
        (b'{"pool":"llm","payload":1,"timeout":NaN}', 422, "invalid", ["timeout"]),
        (b'{"pool":"llm","payload":1,"deadline_at":"2026-01-01T00:00:00"}', 422, "invalid", ["deadline_at"]),
        (b'{"pool":"llm","payload":1,"deadline_at":5}', 422, "invalid", ["deadline_at"]),
        (b'{"pool":"llm","payload":1,"resources":{"openai":0}}', 422, "invalid", ["resources", "openai"]),
        (
            b'{"pool":"llm","payload":1,"resources":{"openai":101}}',
            422,
            "resource_exceeds_capacity",
            ["resources", "openai"],
        ),
        (b'{"pool":"llm","payload":1,"resources":{"nope":1}}', 422, "unknown_resource", ["resources", "nope"]),
        (b'{"pool":"nope","payload":1}', 422, "unknown_pool", ["pool"]),
        (b'{"pool":"llm"}', 422, "invalid", ["payload"]),
        (b'{"pool":"llm","payload":1,"retry":{"max_attempts":0}}', 422, "invalid", ["retry", "max_attempts"]),
        (b'{"pool":"llm","payload":1,"deadline_in":1,"deadline_at":"2026-01-01T00:00:00Z"}', 422, "invalid", []),
        (b"[]", 422, "invalid", []),
        (b"", 422, "invalid", []),
        (b'{"pool":"llm",', 400, "bad_json", None),
        (b'{"pool":"llm"} x', 400, "bad_json", None),
        (b'{"pool":"\xff"}', 400, "bad_encoding", None),
    ],
)
def test_a_fault_is_named_with_its_place(
    api: httpx2.Client, body: bytes, status: int, code: str, loc: list[str | int] | None
) -> None:
    before = Task.objects.count()
    answer = post(api, body)
    problem = answer.json()
    assert (answer.status_code, problem["code"]) == (status, code), problem
    assert answer.headers["Content-Type"] == "application/problem+json"
    assert problem["detail"]
    if loc is not None:
        assert problem["errors"][0]["loc"] == loc
    assert Task.objects.count() == before
    # The same connection goes on working.
    assert api.get("/tasks", params={"limit": 1}).status_code == 200


def test_what_json_can_hold_comes_back_as_it_was(api: httpx2.Client) -> None:
    payload = {"big": 2**64 - 1, "small": -(2**63), "pi": 3.141592653589793, "text": 'Grüße 🎉 \t\n\\"', "deep": None}
    answer = api.post("/tasks", json={"pool": "llm", "payload": payload, "tags": {"team": "a"}})
    assert answer.status_code == 202
    deepest = b'{"pool":"llm","payload":' + nested(64) + b"}"
    assert post(api, deepest).status_code == 202


def test_sizes_are_bounded_before_anything_is_parsed(api: httpx2.Client) -> None:
    fits = json.dumps({"pool": "llm", "payload": "x" * (256 * KIB - 2)}).encode()
    assert post(api, fits).status_code == 202
    over = json.dumps({"pool": "llm", "payload": "x" * (256 * KIB - 1)}).encode()
    refused = post(api, over)
    assert (refused.status_code, refused.json()["code"]) == (413, "payload_too_large")
    refused = post(api, b"x" * (KIB * KIB))
    assert (refused.status_code, refused.json()["code"]) == (413, "body_too_large")
    for path in ("/tasks", "/tasks/batch"):
        refused = post(api, b"x" * (7 * KIB * KIB), path)
        assert (refused.status_code, refused.json()["code"]) == (413, "body_too_large"), path
    assert api.get("/tasks", params={"limit": 1}).status_code == 200


def test_a_batch_is_taken_in_whole_or_not_at_all(api: httpx2.Client) -> None:
    task = {"pool": "llm", "payload": {"n": 1}}
    before = Task.objects.count()
    answer = api.post("/tasks/batch", json={"tasks": [task] * 999 + [{**task, "pool": "nope"}]})
    assert (answer.status_code, answer.json()["code"]) == (422, "unknown_pool")
    assert answer.json()["errors"][0]["loc"] == ["tasks", 999, "pool"]
    answer = post(api, json.dumps({"tasks": [task, {**task, "payload": float("nan")}]}).encode(), "/tasks/batch")
    assert answer.json()["errors"][0]["loc"] == ["tasks", 1, "payload"]
    answer = api.post("/tasks/batch", json={"tasks": [task] * 1001})
    assert answer.status_code == 422
    assert api.post("/tasks/batch", json={"tasks": []}).status_code == 422
    assert Task.objects.count() == before
    answer = api.post("/tasks/batch", json={"tasks": [task] * 1000})
    assert answer.status_code == 202
    ids = [t["id"] for t in answer.json()["tasks"]]
    assert len(set(ids)) == 1000
    assert Task.objects.count() == before + 1000


@pytest.mark.parametrize(
    "path", ["/tasks/abc", "/tasks/0", "/tasks/-1", f"/tasks/{2**63}", "/tasks/1/2", "/nothing", "/pools/a%00b"]
)
def test_addresses_of_nothing_are_not_found(api: httpx2.Client, path: str) -> None:
    answer = api.get(path)
    assert answer.status_code == 404
    assert answer.headers["Content-Type"] == "application/problem+json"


@pytest.mark.parametrize(
    "query",
    [
        "limit=0",
        "limit=201",
        "state=gone",
        "cursor=x",
        "cursor=0",
        "cursor=" + "9" * 30,
        "key=%00",
        "colour=red",
        "pool=nope",
    ],
)
def test_filters_that_mean_nothing_are_refused(api: httpx2.Client, query: str) -> None:
    assert api.get(f"/tasks?{query}").status_code in (400, 422)


def test_ids_beyond_four_bytes_and_a_long_wait_are_in_bounds(site: Site, api: httpx2.Client) -> None:
    assert api.get(f"/tasks/{2**62}").status_code == 404
    assert api.get("/tasks/1/wait", params={"timeout_s": 61}).status_code == 422
    assert site.url
