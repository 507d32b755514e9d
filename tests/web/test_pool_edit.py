"""Editing a pool, pausing it for a while, and stopping what runs in it."""

from __future__ import annotations

import re
from typing import Any

import pytest
from django.db.models import F
from django.db.models.functions import Now
from django.test import Client

from scheduler.models import AuditEvent, Pool, Snapshot
from scheduler.policy.runs import KillScope
from scheduler.policy.types import PoolId
from scheduler.services.kill import kill
from scheduler.services.pools import end_pauses
from tests.conftest import LiveDatabase
from tests.support.work import HandWorker, make_tenant, submit_tasks
from tests.web.conftest import SignIn, WithPermissions

PAGE = "/ops/pools/llm/"
FORM = {"slots": "10", "min": "1", "max": "10", "reason": ""}


@pytest.fixture
def operator(signed_in: SignIn, llm: Pool, snapshot: Snapshot) -> Client:
    return signed_in("operator")


def save(client: Client, **changes: Any) -> Any:
    return client.post(f"{PAGE}save/", {**FORM, "version": Pool.objects.get(name="llm").version, **changes})


def settings() -> tuple[int, int, int, Any]:
    pool = Pool.objects.get(name="llm")
    return pool.slots, pool.slots_min, pool.slots_max, pool.slo


def test_slots_and_targets_are_saved_audited_and_taken_back(operator: Client) -> None:
    assert save(operator, slots="8", high="5", low="3600").status_code == 303
    assert settings() == (8, 1, 10, {"high": 5.0, "low": 3600.0})
    html = operator.get(PAGE).content.decode()
    toast = html[html.index('id="toast"') :].split("</form>")[0]
    values = dict(re.findall(r'<input type="hidden" name="(\w+)" value="([^"]*)"', toast))
    assert operator.post(f"{PAGE}save/", values).status_code == 303
    assert settings() == (10, 1, 10, None)
    assert list(AuditEvent.objects.values_list("action", "reason")) == [("pool.edit", ""), ("pool.edit", "undo")]
    assert operator.post(f"{PAGE}save/", values).status_code == 409


def test_a_conflict_shows_both_and_keeps_the_input(operator: Client) -> None:
    seen = Pool.objects.get(name="llm").version
    save(operator, slots="9", high="5")
    response = save(operator, slots="8", version=seen)
    html = response.content.decode()
    assert response.status_code == 409
    assert "operator changed llm at" in html
    assert re.search(r'data-label="Now" class="num">9</td><td[^>]*><b>8</b>', html)
    assert settings()[0] == 9


@pytest.mark.parametrize(
    ("changes", "field", "says"),
    [
        ({"slots": "many"}, "slots", "Write a whole number"),
        ({"slots": "11"}, "slots", "is not between min"),
        ({"min": "-1"}, "min", "min must be from 0"),
        ({"slots": "0", "min": "0"}, "reason", "is a large change"),
        ({"high": "soon"}, "high", "Write seconds"),
        ({"high": "-1"}, "high", "must be from 0.001"),
    ],
)
def test_what_cannot_be_is_refused_beside_its_field(
    operator: Client, changes: dict[str, str], field: str, says: str
) -> None:
    response = save(operator, **changes)
    fault = re.search(rf'id="{field}-fault">([^<]*)<', response.content.decode())
    assert response.status_code == 422
    assert fault
    assert says in fault[1]
    assert settings() == (10, 1, 10, None)


def test_a_preview_changes_nothing(live_database: LiveDatabase, request: pytest.FixtureRequest) -> None:
    client: Client = request.getfixturevalue("operator")  # its rows are committed, as the preview needs them
    response = client.post(f"{PAGE}preview/", {**FORM, "slots": "5"})
    assert response.status_code == 200
    assert "What it would do" in response.content.decode()
    assert settings()[0] == 10


def test_a_pause_ends_when_it_was_said_to_and_not_before(operator: Client) -> None:
    operator.post(f"{PAGE}pause/", {"reason": "lunch", "for_s": "3600"})
    assert "It resumes by itself at" in operator.get(PAGE).content.decode()
    assert end_pauses() == 0
    Pool.objects.update(resume_at=Now())
    assert end_pauses() == 1
    pool = Pool.objects.get(name="llm")
    assert (pool.paused_at, pool.resume_at) == (None, None)
    last = AuditEvent.objects.order_by("-id")[0]
    assert (last.actor, last.source, last.action) == ("system", "system", "pool.resume")
    assert last.before == {"paused": True, "paused_by": "operator", "pause_reason": "lunch"}
    assert end_pauses() == 0


def test_resuming_by_hand_forgets_when_the_pause_was_to_end(operator: Client) -> None:
    operator.post(f"{PAGE}pause/", {"reason": "lunch", "for_s": "3600"})
    operator.post(f"{PAGE}resume/")
    operator.post(f"{PAGE}pause/", {"reason": "for good", "for_s": "7"})  # no length that the form offers
    assert Pool.objects.get(name="llm").resume_at is None
    assert not Pool.objects.filter(resume_at__lt=F("paused_at")).exists()


def test_the_page_shows_what_runs_and_where_it_is_stopped(
    operator: Client, llm: Pool, with_permissions: WithPermissions
) -> None:
    submit_tasks(make_tenant(), 2, pool="llm")
    (leased,) = HandWorker({PoolId(llm.pk): 1}).start()
    html = operator.get(PAGE).content.decode()
    assert f'href="/ops/tasks/{leased.task}/"' in html[html.index("Running longest") :]
    assert "Stop what runs" not in html
    killer = with_permissions({"scheduler.view_console", "scheduler.operate_run"})
    assert 'href="/ops/kills/confirm/?scope=pool&amp;name=llm"' in killer.get(PAGE).content.decode()
    kill(KillScope.POOL, "llm", actor="mira", reason="wrong prompt")
    html = operator.get(PAGE).content.decode()
    assert "by mira: “wrong prompt”" in html
    assert "told to stop</small>" in html


@pytest.mark.parametrize("action", ["edit/", "save/", "preview/"])
def test_an_unknown_pool_is_not_found(operator: Client, action: str) -> None:
    url = f"/ops/pools/llmm/{action}"
    response = operator.get(url) if action == "edit/" else operator.post(url, FORM)
    assert response.status_code == 404
