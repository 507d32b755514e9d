"""The forecast over REST: before there is one, once there is, and in what is said to who submits and who asks why."""

from __future__ import annotations

import httpx2

from scheduler.models import ForecastState, Pool
from scheduler.policy.types import PoolId
from scheduler.services.forecast import renew_forecast
from tests.api.conftest import Site
from tests.support.waiting import wait_until
from tests.support.work import HandWorker

TASK = {"pool": "llm", "payload": {"n": 1}, "priority": "low"}


def test_the_forecast_is_told_to_who_submits_and_who_asks(site: Site, api: httpx2.Client) -> None:
    ForecastState.objects.all().delete()
    none_yet = api.get("/forecast")
    assert (none_yet.status_code, none_yet.json()["code"]) == (503, "no_forecast")
    assert api.post("/tasks", json=TASK).json()["forecast"] is None
    pool = PoolId(Pool.objects.get(name="llm").pk)
    worker = HandWorker({pool: 32})
    memory = renew_forecast(None)
    api.post("/tasks/batch", json={"tasks": [TASK] * 40})
    while leased := worker.start():
        worker.succeed(leased)
    memory = renew_forecast(memory)
    ids = [task["id"] for task in api.post("/tasks/batch", json={"tasks": [TASK] * 40}).json()["tasks"]]
    memory.next_at = 0.0
    renew_forecast(memory)
    body = api.get("/forecast").json()
    (llm,) = [p for p in body["pools"] if p["pool"] == "llm"]
    assert llm["status"] == "ok"
    low = llm["classes"]["low"]
    assert low["forecast"]["p90_s"] >= low["forecast"]["p50_s"] >= 0.0
    assert low["oldest_waiting_s"] >= 0.0
    assert body["calibration"]["overall"]["n"] >= 0
    # The server looks for a newer forecast at most once a second.
    said = wait_until(
        lambda: api.post("/tasks", json=TASK).json()["forecast"], what="an acknowledgement with a forecast"
    )
    assert said["p90_s"] >= said["p50_s"]
    assert api.get(f"/tasks/{ids[0]}/why").json()["forecast"]["p90_s"] >= 0.0
    with site.client(site.rival) as rival:
        assert "tenant" not in rival.get("/forecast").text
