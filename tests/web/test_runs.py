"""The pages of runs: how they stand, one of them over time, and what may be done about it."""

from __future__ import annotations

import pytest
from django.test import Client
from django.utils import timezone

from scheduler.models import AuditEvent, Lease, Pool, Run, RunUse, Snapshot, Task
from scheduler.policy.types import PoolId, RunId, TenantId
from scheduler.services.kill import kill_run
from scheduler.services.runs import pause_run
from tests.support.work import make_tenant
from tests.web.conftest import WithPermissions
from tests.web.runs_cast import add_step, at_most, busy_run, make_run

MAY = {"scheduler.view_console", "scheduler.operate_run", "scheduler.view_payload", "scheduler.view_audit"}


@pytest.fixture
def acme(db: None) -> TenantId:
    return make_tenant()


@pytest.fixture
def run(llm: Pool, acme: TenantId, snapshot: Snapshot) -> RunId:
    return busy_run(acme, PoolId(llm.pk))


@pytest.fixture
def operator(with_permissions: WithPermissions) -> Client:
    return with_permissions(MAY)


def test_the_list_says_how_runs_stand(operator: Client, run: RunId, acme: TenantId) -> None:
    pause_run(make_run(acme, "nightly"), acme, actor="mira", reason="looking")
    with at_most(12):
        response = operator.get("/ops/runs/")
    html = response.content.decode()
    assert "1 run is active with 2 steps running; 1 is paused." in html
    assert "2 done, 2 running, 3 waiting" in html
    assert "7 of 40" in html
    assert "2 of 3" in html
    assert html.index("nightly") < html.index("research"), "newest first"
    assert 'style="' not in html


def test_the_list_costs_the_same_with_more_runs(operator: Client, acme: TenantId, snapshot: Snapshot) -> None:
    for number in range(60):
        make_run(acme, f"run-{number}")
    with at_most(12):
        first = operator.get("/ops/runs/").content.decode()
    assert "run-59" in first
    assert "run-9<" not in first
    assert "Older" in first
    edge = Run.objects.get(name="run-10").pk
    second = operator.get(f"/ops/runs/?below={edge}").content.decode()
    assert "run-9<" in second
    assert "run-10<" not in second
    assert "Newer" in second
    back = operator.get(f"/ops/runs/?above={Run.objects.get(name='run-9').pk}").content.decode()
    assert "run-10<" in back
    assert "run-59<" in back
    assert "Newer" not in back


def test_filters_stand_in_the_address_and_a_bad_one_is_said_beside_it(
    operator: Client, run: RunId, acme: TenantId
) -> None:
    make_tenant("globex")
    other = make_run(acme, "other")
    kill_run(other, None, actor="mira")

    def shown(query: str, status: int = 200) -> str:
        response = operator.get(f"/ops/runs/?{query}")
        assert response.status_code == status
        return response.content.decode()

    assert "research" not in shown("state=killed")
    assert "other" in shown("state=killed&tenant=acme")
    assert "No run matches" in shown("tenant=globex")
    assert "research" in shown("age=under-1h&state=open")
    assert "No run matches" in shown("age=over-1d")
    assert "Choose one of the list." in shown("state=dancing", 422)
    bad = shown("tenant=initech", 422)
    assert "There is no tenant &#x27;initech&#x27;." in bad
    assert 'value="initech"' in bad
    assert "This page is empty" in shown("below=1")


def test_a_run_tells_its_steps_over_time_and_what_it_left_behind(operator: Client, run: RunId) -> None:
    with at_most(12):
        response = operator.get(f"/ops/runs/{run}/")
    html = response.content.decode()
    assert response.status_code == 200
    assert "It is active: 2 steps of at most 3 at once." in html
    assert "Writing steps go one at a time, and another one of its run runs." in html
    assert "5 steps in 3 lanes" in html
    assert 'class="t-run"' in html
    assert 'class="t-fail"' in html
    assert "2 steps that have not begun are not drawn." in html
    assert "write_report" in html
    assert "book-&lt;b&gt;room&lt;/b&gt;" in html
    assert "Claimed, no receipt yet" in html
    assert "checkpoint 1" in html
    assert "&lt;script&gt;alert(1)" in html
    assert "<script>alert(1)" not in html
    assert 'style="' not in html


def test_a_run_of_many_steps_costs_no_more_statements_and_is_bounded(
    operator: Client, run: RunId, acme: TenantId
) -> None:
    Run.objects.filter(pk=run).update(max_steps=2000)
    for _ in range(60):
        add_step(acme, run)
    with at_most(12):
        html = operator.get(f"/ops/runs/{run}/").content.decode()
    assert html.count('data-label="Over the time of the run"') == 30
    assert "Later steps" in html
    last = Task.objects.order_by("-id")[10].pk
    further = operator.get(f"/ops/runs/{run}/?after={last}").content.decode()
    assert further.count('data-label="Over the time of the run"') == 10
    assert "First steps" in further


def test_a_goal_is_for_those_who_may_see_payloads(with_permissions: WithPermissions, run: RunId) -> None:
    html = with_permissions({"scheduler.view_console"}).get(f"/ops/runs/{run}/").content.decode()
    assert "alert(1)" not in html
    assert "scheduler.view_payload" in html
    assert "scheduler.operate_run" in html
    assert "scheduler.view_audit" in html
    assert "Pause this run" not in html


def test_a_run_that_is_not_there_is_404(operator: Client, snapshot: Snapshot) -> None:
    for path in ("/ops/runs/99/", "/ops/runs/99/kill/", "/ops/runs/99/caps/"):
        response = operator.get(path)
        assert response.status_code == 404
        assert "There is no run 99." in response.content.decode()


def test_pausing_needs_a_reason_and_can_be_undone(operator: Client, run: RunId) -> None:
    assert operator.post(f"/ops/runs/{run}/pause/", {"reason": " "}).status_code == 422
    answer = operator.post(f"/ops/runs/{run}/pause/", {"reason": "odd answers"})
    assert (answer.status_code, answer["Location"]) == (303, f"/ops/runs/{run}/")
    html = operator.get(f"/ops/runs/{run}/").content.decode()
    assert "It is paused: “odd answers”." in html
    assert f'action="/ops/runs/{run}/resume/"' in html
    twice = operator.post(f"/ops/runs/{run}/pause/", {"reason": "again"})
    assert twice.status_code == 409
    assert operator.post(f"/ops/runs/{run}/resume/", {"reason": "undo"}).status_code == 303
    assert Run.objects.get(pk=run).state == "active"
    said = AuditEvent.objects.filter(subject=f"run:{run}").order_by("id").values_list("action", "source")
    assert list(said) == [("run.pause", "ui"), ("run.resume", "ui")]


def test_killing_asks_first_and_says_what_it_will_do(operator: Client, run: RunId) -> None:
    asks = operator.get(f"/ops/runs/{run}/kill/").content.decode()
    assert "2 running steps are told to stop" in asks
    assert "3 steps that wait are cancelled" in asks
    assert "1 effect was claimed without a receipt" in asks
    refused = operator.post(f"/ops/runs/{run}/kill/now/", {"reason": "it loops", "typed": "7777"})
    assert refused.status_code == 422
    assert 'value="it loops"' in refused.content.decode()
    assert Run.objects.get(pk=run).state == "active"
    assert operator.post(f"/ops/runs/{run}/kill/now/", {"typed": str(run)}).status_code == 422
    answer = operator.post(f"/ops/runs/{run}/kill/now/", {"reason": "it loops", "typed": str(run)})
    assert answer.status_code == 303
    assert Lease.objects.filter(cancel_requested_at=None).count() == 0
    html = operator.get(f"/ops/runs/{run}/").content.decode()
    assert "2 running steps were told to stop" in html
    assert "It was killed: “it loops”. Only a resume lets it go on." in html
    again = operator.post(f"/ops/runs/{run}/kill/now/", {"reason": "it loops", "typed": str(run)})
    assert again.status_code == 409
    assert Run.objects.get(pk=run).epoch == 1


def test_caps_are_changed_by_version_and_a_late_edit_shows_both(operator: Client, run: RunId) -> None:
    form = {"version": "1", "max_steps": "80", "max_width": "5", "max_cost_usd": "7.50", "reason": "a larger goal"}
    assert 'value="40"' in operator.get(f"/ops/runs/{run}/caps/").content.decode()
    assert operator.post(f"/ops/runs/{run}/caps/save/", form).status_code == 303
    caps = Run.objects.values("max_steps", "max_width", "max_cost_nano", "max_tokens").get(pk=run)
    assert caps == {"max_steps": 80, "max_width": 5, "max_cost_nano": 7_500_000_000, "max_tokens": None}
    late = operator.post(f"/ops/runs/{run}/caps/save/", {**form, "max_steps": "60"})
    html = late.content.decode()
    assert late.status_code == 409
    assert 'value="60"' in html
    assert "Now 80." in html
    entry = operator.get(f"/ops/runs/{run}/").context["audit"][0]
    changed = {(each.name, each.was, each.now) for each in entry.changes}
    assert {("max steps", "40", "80"), ("max width", "3", "5")} < changed
    assert entry.row.reason == "a larger goal"
    assert 'name="version" value="2"' in html
    for field, value, said in (
        ("max_steps", "many", "Write a whole number above 0."),
        ("max_width", "0", "max_width of a run here is above 0"),
        ("max_cost_usd", "1e", "Write an amount of dollars"),
        ("wall_clock_s", "-1", "Write whole seconds."),
        ("reason", "", "Say why"),
    ):
        wrong = operator.post(f"/ops/runs/{run}/caps/save/", {**form, "version": "2", field: value})
        assert wrong.status_code == 422
        assert said in wrong.content.decode()
    assert Run.objects.get(pk=run).version == 2


def test_resuming_says_which_cap_is_used_up(operator: Client, run: RunId) -> None:
    kill_run(run, None, actor="mira")
    Run.objects.filter(pk=run).update(max_tokens=1)
    RunUse.objects.filter(run_id=run).update(tokens=5)
    refused = operator.post(f"/ops/runs/{run}/resume/", {"reason": "go on"})
    assert refused.status_code == 422
    assert "Its cap of tokens is used up: 5 of 1; give it a higher one." in refused.content.decode()


def test_a_run_that_ended_has_no_actions_to_begin_with(operator: Client, run: RunId) -> None:
    assert 'id="act-h"' in operator.get(f"/ops/runs/{run}/").content.decode()
    Run.objects.filter(pk=run).update(state="succeeded", finished_at=timezone.now())
    html = operator.get(f"/ops/runs/{run}/").content.decode()
    assert 'id="act-h"' not in html
    late = operator.post(f"/ops/runs/{run}/pause/", {"reason": "too late"}).content.decode()
    assert 'id="fault"' in late, "who was too late is told so there"
