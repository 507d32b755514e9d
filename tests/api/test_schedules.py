"""Schedules over REST: a tenant's own, with what is ahead of them; nobody else's."""

import httpx2
import pytest

from tests.api.conftest import Site

DAILY = {"cron": "30 2 * * *", "time_zone": "Europe/Berlin", "task": {"pool": "llm", "payload": {"n": 1}, "timeout": 5}}


def test_a_schedule_from_its_declaration_to_its_end(api: httpx2.Client) -> None:
    made = api.post("/schedules", json={"name": "daily", **DAILY})
    assert made.status_code == 201
    assert made.json()["task"] == {"pool": "llm", "payload": {"n": 1}, "timeout": 5}
    assert api.post("/schedules", json={"name": "daily", **DAILY}).json()["code"] == "name_taken"
    seen = api.get("/schedules/daily", params={"runs": 100}).json()
    assert (seen["state"], seen["occurrences"], len(seen["next_runs"])) == ("active", [], 100)
    assert seen["next_runs"][0]["at"] == seen["next_at"]
    assert {run["local"][11:16] for run in seen["next_runs"]} <= {"02:30", "03:00"}
    edited = api.patch("/schedules/daily", json={"version": 1, "overlap": "queue", "task": {"payload": 2}})
    assert (edited.status_code, edited.json()["overlap"], edited.json()["version"]) == (200, "queue", 2)
    assert api.patch("/schedules/daily", json={"version": 1}).json()["code"] == "version_conflict"
    assert api.post("/schedules/daily/pause", json={"reason": "holidays"}).json()["state"] == "paused"
    assert api.post("/schedules/daily/pause").json()["code"] == "already_paused"
    assert api.post("/schedules/daily/resume").json()["state"] == "active"
    assert api.get("/schedules").json()["schedules"][0]["name"] == "daily"
    assert api.delete("/schedules/daily").status_code == 204
    assert api.get("/schedules/daily").json()["code"] == "unknown_schedule"


@pytest.mark.parametrize(
    ("change", "loc"),
    [
        ({"cron": "61 * * * *"}, ["cron"]),
        ({"time_zone": "Mars/Olympus"}, ["time_zone"]),
        ({"task": {"payload": 1, "start_in": 5}}, ["task", "start_in"]),
    ],
)
def test_what_is_no_schedule_is_refused_at_the_field(
    api: httpx2.Client, change: dict[str, object], loc: list[str]
) -> None:
    refused = api.post("/schedules", json={"name": "bad", **DAILY, **change})
    assert (refused.status_code, refused.json()["code"]) == (422, "bad_schedule")
    assert refused.json()["errors"][0]["loc"] == loc


def test_another_tenants_schedule_is_not_found(site: Site, api: httpx2.Client, admin: httpx2.Client) -> None:
    api.post("/schedules", json={"name": "mine", **DAILY})
    with site.client(site.rival) as rival:
        assert rival.get("/schedules").json()["schedules"] == []
        for answer in (
            rival.get("/schedules/mine"),
            rival.patch("/schedules/mine", json={"version": 1}),
            rival.post("/schedules/mine/pause"),
            rival.post("/schedules/mine/resume"),
            rival.delete("/schedules/mine"),
            rival.get("/schedules", params={"tenant": "acme"}),
            rival.post("/schedules", json={"name": "x", "tenant": "acme", **DAILY}),
        ):
            assert answer.status_code == 404
        assert rival.post("/schedules", json={"name": "mine", **DAILY}).status_code == 201
    assert admin.post("/schedules", json={"name": "y", **DAILY}).json()["code"] == "tenant_required"
    assert admin.get("/schedules/mine").json()["code"] == "tenant_required"
    assert admin.get("/schedules/mine", params={"tenant": "acme"}).json()["tenant"] == "acme"
    assert api.delete("/schedules/mine").status_code == 204


def test_a_fixed_start_says_how_late_it_may_be(api: httpx2.Client) -> None:
    task = {"pool": "llm", "payload": 1, "start_in": 3600, "tolerance": 2, "on_miss": "skip", "expires_in": 4000}
    taken = api.post("/tasks", json=task)
    assert (taken.status_code, taken.json()["state"]) == (202, "scheduled")
    unstarted = api.post("/tasks", json={"pool": "llm", "payload": 1, "tolerance": 2})
    assert (unstarted.status_code, unstarted.json()["code"]) == (422, "no_start")
