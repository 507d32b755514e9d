"""The pages of engines and workers: what pools have of them, who they are, and draining one."""

from __future__ import annotations

import uuid

import pytest
from django.test import Client

from scheduler.live.board import PoolView, read_board
from scheduler.live.workforce import workers_by_pool
from scheduler.models import AuditEvent, Pool, Snapshot, Worker
from scheduler.policy.types import PoolId, TaskId
from tests.live import sample
from tests.support.work import HandWorker, make_tenant
from tests.web.conftest import WithPermissions
from tests.web.runs_cast import at_most, take_time

MAY = {"scheduler.view_console", "scheduler.operate_worker"}


@pytest.fixture
def operator(with_permissions: WithPermissions) -> Client:
    return with_permissions(MAY)


def make_worker(name: str, **fields: object) -> str:
    values = {"kind": "remote", "slots": {}, **fields}
    return str(Worker.objects.create(id=uuid.uuid4(), name=name, **values).pk)


def test_the_list_shows_who_is_there_page_by_page(
    operator: Client, llm: Pool, task: TaskId, snapshot: Snapshot
) -> None:
    HandWorker({PoolId(llm.pk): 4}).start()
    take_time()
    for number in range(52):
        make_worker(f"w-{number:02d}", slots={str(llm.pk): 2}, labels=["gpu=a100", "version=1.4"])
    make_worker("w-away", tenant_id=make_tenant("globex"))
    make_worker("w-old", slots={str(llm.pk): 1})
    Worker.objects.filter(name="w-old").update(seen_at="2026-01-01T00:00:00Z")
    with at_most(12):
        html = operator.get("/ops/workers/").content.decode()
    assert "1 of 4" in html
    assert "gpu=a100, version=1.4" in html
    assert "By version: 1.4 × 52." in html
    assert ">w-48<" in html
    assert ">w-49<" not in html
    further = operator.get(f"/ops/workers/?name=w-48&id={Worker.objects.get(name='w-48').pk}").content.decode()
    assert ">w-49<" in further
    assert ">w-48<" not in further
    assert "Silent" in further
    assert "Away" in further
    assert "remote, for globex" in further
    engines = operator.get("/ops/workers/?kind=engine").content.decode()
    assert "w-01" not in engines
    assert "hand" in engines


def test_filters_and_empty_states(operator: Client, llm: Pool, snapshot: Snapshot) -> None:
    assert "so nothing starts" in operator.get("/ops/workers/").content.decode()
    make_worker("gpu-1", declared={str(llm.pk): 2})
    assert "gpu-1" in operator.get("/ops/workers/?pool=llm").content.decode()
    assert "No worker matches" in operator.get("/ops/workers/?kind=engine").content.decode()
    wrong = operator.get("/ops/workers/?pool=nope")
    assert wrong.status_code == 422
    assert "There is no pool named &#x27;nope&#x27;." in wrong.content.decode()
    assert operator.get("/ops/workers/?kind=robot").status_code == 422
    assert operator.get("/ops/workers/?name=zzz&id=nonsense").status_code == 200


def test_a_worker_tells_what_it_runs(operator: Client, llm: Pool, task: TaskId, snapshot: Snapshot) -> None:
    worker = HandWorker({PoolId(llm.pk): 4})
    worker.start()
    take_time()
    html = operator.get(f"/ops/workers/{worker.id}/").content.decode()
    assert f"task {task}" in html
    assert "llm: 4" in html
    assert "An engine drains when its process is told to end" in html
    assert operator.post(f"/ops/workers/{worker.id}/drain/", {"reason": "x"}).status_code == 409
    assert not Worker.objects.get(pk=worker.id).draining


def test_draining_needs_a_reason_and_is_audited_once(operator: Client, llm: Pool, snapshot: Snapshot) -> None:
    worker = make_worker("gpu-1", slots={str(llm.pk): 2})
    url = f"/ops/workers/{worker}/drain/"
    assert operator.post(url, {"reason": " "}).status_code == 422
    assert operator.post(url, {"reason": "the host is replaced"}).status_code == 303
    assert Worker.objects.get(pk=worker).draining
    assert "It finishes what it has and takes nothing new." in operator.get(f"/ops/workers/{worker}/").content.decode()
    assert operator.post(url, {"reason": "again"}).status_code == 409
    said = AuditEvent.objects.get(subject=f"worker:{worker}")
    assert (said.action, said.source, said.reason) == ("worker.drain", "ui", "the host is replaced")
    assert operator.post(f"/ops/workers/{uuid.uuid4()}/drain/", {"reason": "x"}).status_code == 404


def pools(*changes: dict[str, object]) -> list[PoolView]:
    body = {"pools": [sample.pool(f"p{number}", **change) for number, change in enumerate(changes)]}
    return list(read_board(1, 1.0, body).pools)


def test_no_workers_is_said_only_where_it_keeps_work_back() -> None:
    nothing = {"critical": 0, "high": 0, "normal": 0, "low": 0}
    lines = workers_by_pool(
        pools({"workers": 2}, {"workers": 0, "waiting": nothing}, {"workers": 0, "state": "paused"}, {"workers": 0})
    )
    assert [(line.pool.name, line.word) for line in lines] == [
        ("p3", "No workers connected"),
        ("p0", "Connected"),
        ("p1", "None, and nothing waits"),
        ("p2", "Paused"),
    ]
