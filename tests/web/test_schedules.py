"""The pages of schedules: what is ahead and behind, and a change that is saved only after its runs were shown."""

from __future__ import annotations

import re

import pytest
from django.test import Client

from scheduler.models import AuditEvent, Occurrence, Pool, Schedule, Snapshot, Task, Tenant
from scheduler.policy.types import TenantId
from scheduler.reads.schedule_pages import Run
from scheduler.services.ticking import tick
from scheduler.web import schedule_words
from tests.support.work import make_tenant
from tests.web.conftest import WithPermissions
from tests.web.runs_cast import at_most, make_schedule

MAY = {"scheduler.view_console", "scheduler.edit_schedule", "scheduler.view_payload"}


@pytest.fixture
def acme(llm: Pool, snapshot: Snapshot) -> TenantId:
    return make_tenant()


@pytest.fixture
def nightly(acme: TenantId) -> int:
    return make_schedule(acme, "nightly")


@pytest.fixture
def editor(with_permissions: WithPermissions) -> Client:
    return with_permissions(MAY)


def key_of(html: str) -> dict[str, str]:
    return dict(re.findall(r'name="(key)" value="([^"]*)"', html))


def test_a_schedule_is_run_now_once_and_its_times_stay(editor: Client, nightly: int) -> None:
    page = f"/ops/schedules/{nightly}/"
    before = Schedule.objects.get().next_at
    form = key_of(editor.get(page).content.decode())
    first, again = editor.post(f"{page}run/", form), editor.post(f"{page}run/", form)
    task = Task.objects.get()
    assert first["Location"] == again["Location"] == f"/ops/tasks/{task.pk}/"
    assert Schedule.objects.get().next_at == before
    assert Occurrence.objects.count() == 0
    assert AuditEvent.objects.filter(action="schedule.run").count() == 1
    Tenant.objects.update(max_queued=0)
    refused = editor.post(f"{page}run/", {"key": "another"})
    assert refused.status_code == 409
    assert "Nothing was submitted." in refused.content.decode()


def test_a_schedule_is_removed_with_a_reason(editor: Client, nightly: int) -> None:
    page = f"/ops/schedules/{nightly}/"
    assert editor.post(f"{page}remove/", {"reason": " "}).status_code == 422
    assert editor.post(f"{page}remove/", {"reason": "not needed"}).status_code == 303
    assert Schedule.objects.count() == 0
    assert AuditEvent.objects.get(action="schedule.remove").reason == "not needed"
    assert editor.post(f"{page}remove/", {"reason": "again"}).status_code == 404
    assert editor.post(f"{page}run/", {"key": "k"}).status_code == 404


def let_one_pass(schedule: int) -> None:
    """Its last nominal time came just now, and was decided."""
    Schedule.objects.filter(pk=schedule).update(next_at="2026-01-05T01:30:00Z")
    tick()


def test_the_list_shows_what_is_ahead_and_what_came_last(editor: Client, acme: TenantId, nightly: int) -> None:
    let_one_pass(nightly)
    for number in range(55):
        make_schedule(acme, f"every-{number}", "*/10 * * * *", "UTC")
    with at_most(12):
        html = editor.get("/ops/schedules/").content.decode()
    assert "every day at 02:30" in html
    assert "Europe/Berlin" in html
    assert "every 10 minutes" in html
    assert re.search(r"02:30 CES?T", html)
    assert "Waiting</span>" in html
    assert "every-48" in html
    assert "every-49" not in html
    after = re.search(r"\?after=(\d+)", html)
    assert after
    assert "every-49" in editor.get(f"/ops/schedules/?after={after[1]}").content.decode()


def test_filters_and_empty_states_say_which_kind_of_empty(editor: Client, nightly: int) -> None:
    make_tenant("globex")

    def shown(query: str, status: int = 200) -> str:
        response = editor.get(f"/ops/schedules/?{query}")
        assert response.status_code == status
        return response.content.decode()

    assert "nightly" in shown("state=active&tenant=acme")
    assert "No schedule matches" in shown("state=paused")
    assert "No schedule matches" in shown("tenant=globex")
    assert "This page is empty" in shown("after=999999")
    assert "Choose one of the list." in shown("state=asleep", 422)
    assert "There is no tenant &#x27;initech&#x27;." in shown("tenant=initech", 422)
    Schedule.objects.all().delete()
    assert "No schedule yet." in shown("")


def test_a_schedule_tells_when_it_runs_and_what_became_of_its_times(editor: Client, nightly: int) -> None:
    let_one_pass(nightly)
    with at_most(12):
        html = editor.get(f"/ops/schedules/{nightly}/").content.decode()
    assert "It runs every day at 02:30; next in" in html
    assert "Times of the day: each runs once" in html
    assert html.count("UTC</small>") >= 5
    assert "The last: the newest late run is made up for" in html
    assert "only the last one is made up for" in html
    assert "&lt;script&gt;alert(1)" in html
    assert 'style="' not in html


def test_history_goes_on_page_by_page(editor: Client, nightly: int) -> None:
    for day in range(60):
        Occurrence.objects.create(
            schedule_id=nightly, nominal_at=f"2026-0{1 + day // 28}-{1 + day % 28:02d}T01:30:00Z", fate="skipped"
        )
    html = editor.get(f"/ops/schedules/{nightly}/").content.decode()
    assert html.count("Skipped</span>") == 50
    before = re.search(r"\?before=([\d.]+)", html)
    assert before
    older = editor.get(f"/ops/schedules/{nightly}/?before={before[1]}").content.decode()
    assert older.count("Skipped</span>") == 10
    assert "Newest" in older


def test_pausing_and_resuming(editor: Client, nightly: int) -> None:
    assert editor.post(f"/ops/schedules/{nightly}/pause/", {"reason": ""}).status_code == 422
    assert editor.post(f"/ops/schedules/{nightly}/pause/", {"reason": "the source moves"}).status_code == 303
    html = editor.get(f"/ops/schedules/{nightly}/").content.decode()
    assert "Paused by somebody: “the source moves”." in html
    assert "None while it is paused." in html
    assert editor.post(f"/ops/schedules/{nightly}/pause/", {"reason": "again"}).status_code == 409
    assert editor.post(f"/ops/schedules/{nightly}/resume/", {"reason": "undo"}).status_code == 303
    assert editor.post(f"/ops/schedules/{nightly}/resume/").status_code == 409
    said = AuditEvent.objects.filter(subject="schedule:acme/nightly").order_by("id").values_list("action", "source")
    assert list(said) == [("schedule.add", "api"), ("schedule.pause", "ui"), ("schedule.resume", "ui")]


def test_a_change_is_saved_only_after_its_runs_were_shown(editor: Client, nightly: int) -> None:
    page = editor.get(f"/ops/schedules/{nightly}/edit/").content.decode()
    assert page.count("UTC</small>") == 5
    form = {
        "cron": "0 9 * * 1-5",
        "time_zone": "Asia/Seoul",
        "overlap": "queue",
        "catch_up": "none",
        "reason": "office hours",
        "version": "1",
        "seen": "30 2 * * *|Europe/Berlin",
    }
    url = f"/ops/schedules/{nightly}/save/"
    looked = editor.post(url, {**form, "look": "yes"}).content.decode()
    assert "On weekdays at 09:00." in looked
    assert looked.count("09:00 KST") == 5
    unseen = editor.post(url, form)
    assert unseen.status_code == 422
    assert "These are the runs that it would give." in unseen.content.decode()
    assert Schedule.objects.get(pk=nightly).version == 1
    seen = {**form, "seen": "0 9 * * 1-5|Asia/Seoul"}
    assert editor.post(url, {**seen, "reason": " "}).status_code == 422
    assert editor.post(url, seen).status_code == 303
    row = Schedule.objects.get(pk=nightly)
    assert (row.cron, row.time_zone, row.overlap, row.catch_up) == ("0 9 * * 1-5", "Asia/Seoul", "queue", "none")
    late = editor.post(url, {**seen, "catch_up": "all"})
    html = late.content.decode()
    assert late.status_code == 409
    assert "you edited version 1, the current one is 2" in html
    assert "Now none." in html
    assert 'name="version" value="2"' in html


def test_what_is_no_schedule_is_said_beside_its_field(editor: Client, nightly: int) -> None:
    url = f"/ops/schedules/{nightly}/save/"
    form = {"overlap": "skip", "catch_up": "last", "reason": "x", "version": "1"}
    wrong = editor.post(
        url, {**form, "cron": "61 * * * *", "time_zone": "Mars/Phobos", "seen": "61 * * * *|Mars/Phobos"}
    )
    html = wrong.content.decode()
    assert wrong.status_code == 422
    assert 'id="cron-fault"' in html
    assert "&#x27;Mars/Phobos&#x27; is not the name of a time zone" in html
    assert 'value="61 * * * *"' in html
    odd = editor.post(
        url, {**form, "overlap": "dance", "cron": "* * * * *", "time_zone": "UTC", "seen": "* * * * *|UTC"}
    )
    assert "Choose one of the list." in odd.content.decode()
    assert Schedule.objects.get(pk=nightly).version == 1


def test_a_schedule_that_is_not_there_is_404(editor: Client, snapshot: Snapshot) -> None:
    assert editor.get("/ops/schedules/99/").status_code == 404
    assert editor.get("/ops/schedules/99/edit/").status_code == 404
    assert editor.post("/ops/schedules/99/pause/", {"reason": "x"}).status_code == 404
    assert editor.post("/ops/schedules/99/save/").status_code == 404


def test_the_day_on_which_clocks_change_is_told() -> None:
    runs = [Run(1792800000.0, 7200.0), Run(1792800000.0 + 90_000.0, 3600.0)]
    lines = schedule_words.ahead_lines(runs, "Europe/Berlin", now=1792799000.0)
    assert lines[0].note == ""
    assert lines[1].note == "the clocks of Europe/Berlin change before it: UTC+2 becomes UTC+1"
    assert lines[0].local.endswith("CEST")
    assert lines[0].until == "in 16 min 40 s"


def test_a_schedule_is_declared_once_and_only_after_its_runs_were_shown(editor: Client, acme: TenantId) -> None:
    form = key_of(editor.get("/ops/schedules/new/?name=weekly&cron=0+6+*+*+1").content.decode())
    form |= {"name": "weekly", "tenant": "acme", "pool": "llm", "kind": "report", "priority": "high"}
    form |= {"payload": '{"n": 1}', "cron": "0 6 * * 1", "time_zone": "Europe/Berlin", "overlap": "skip"}
    form |= {"catch_up": "last", "reason": "asked for"}
    first = editor.post("/ops/schedules/add/", form)
    assert first.status_code == 422
    html = first.content.decode()
    assert "These are the runs that it would give." in html
    assert len(re.findall(r"06:00 CES?T", html)) == 5
    assert Schedule.objects.count() == 0
    form["seen"] = "0 6 * * 1|Europe/Berlin"
    twice = [editor.post("/ops/schedules/add/", form) for _ in range(2)]
    made = Schedule.objects.get()
    assert [each["Location"] for each in twice] == [f"/ops/schedules/{made.pk}/"] * 2
    assert (made.name, made.cron, made.task["pool"], made.task["kind"]) == ("weekly", "0 6 * * 1", "llm", "report")
    assert AuditEvent.objects.get(action="schedule.add").reason == "asked for"
    taken = editor.post("/ops/schedules/add/", form | {"key": "another"})
    assert taken.status_code == 409
    assert "This name is taken" in taken.content.decode()


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"name": ""}, "Give a name of 1 to 64 characters."),
        ({"name": "x" * 65}, "Give a name of 1 to 64 characters."),
        ({"tenant": ""}, "Say whose tasks they are"),
        ({"tenant": "initech"}, "There is no tenant"),
        ({"pool": "none"}, "There is no pool"),
        ({"payload": '{"a": '}, "This is no JSON"),
        ({"payload": '"\\ud800"'}, "This is no JSON"),
        ({"priority": "urgent"}, "Choose one of the list."),
        ({"cron": "61 * * * *"}, 'id="cron-fault"'),
        ({"time_zone": "Mars"}, "is not the name of a time zone"),
        ({"reason": ""}, "Say why"),
    ],
)
def test_a_faulty_schedule_is_refused_beside_the_field_with_what_was_typed(
    editor: Client, acme: TenantId, change: dict[str, str], said: str
) -> None:
    form = {"name": "weekly", "tenant": "acme", "pool": "llm", "kind": "report", "priority": "high", "payload": "{}"}
    form |= {
        "cron": "0 6 * * 1",
        "time_zone": "UTC",
        "overlap": "skip",
        "catch_up": "last",
        "reason": "why",
        "key": "k",
    }
    form |= change
    answer = editor.post("/ops/schedules/add/", form | {"seen": f"{form['cron']}|{form['time_zone']}"})
    assert answer.status_code == 422
    html = answer.content.decode()
    assert said in html
    assert 'value="report"' in html
    assert Schedule.objects.count() == 0
