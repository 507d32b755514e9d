"""What helps with a list of tasks: ticks, the notice of newer rows, and filters that are kept under a name."""

from __future__ import annotations

import re

import pytest
from django.test import Client

from scheduler.models import AuditEvent, Operation, SavedFilter
from scheduler.policy.types import PoolId, TenantId
from scheduler.services.dead import fold_dead
from tests.support.work import HandWorker, be_patient, make_pool, make_tenant, submit_tasks
from tests.web.conftest import SignIn, WithPermissions

pytestmark = pytest.mark.usefixtures("snapshot")
SAVE = "/ops/tasks/filters/save/"


@pytest.fixture
def acme(db: None) -> TenantId:
    return make_tenant("acme")


@pytest.fixture
def pool(db: None) -> PoolId:
    return make_pool("p", max_attempts=1, slots=200)


@pytest.fixture
def operator(with_permissions: WithPermissions) -> Client:
    return with_permissions({"scheduler.view_console", "scheduler.operate_task"})


def text_of(client: Client, url: str, status: int = 200) -> str:
    response = client.get(url)
    assert response.status_code == status
    return response.content.decode()


def test_ticked_tasks_become_an_operation_on_exactly_those(operator: Client, acme: TenantId, pool: PoolId) -> None:
    first, _, third = submit_tasks(acme, 3, pool="p")
    page = text_of(operator, "/ops/tasks/")
    assert page.count('name="task"') == 3
    assert 'form="pick"' in page
    confirm = text_of(operator, f"/ops/operations/new/?task={first}&task={third}&kind=cancel")
    assert "2 tasks match" in confirm
    shown = confirm[confirm.index("operations/start") :]
    form = dict(re.findall(r'name="(\w+)" (?:type="\w+" )?value="([^"]*)"', shown))
    assert operator.post("/ops/operations/start/", form | {"reason": "wrong ones"}).status_code == 303
    assert Operation.objects.get().filter == f"state:waiting,running task:{first},{third}"
    assert "No task is ticked" in text_of(operator, "/ops/operations/new/?kind=cancel", 404)
    refused = text_of(operator, "/ops/operations/new/?kind=cancel&task=x", 422)
    assert "Nothing was done" in refused
    assert 'value="task:x"' in refused


def test_who_may_only_look_sees_nothing_to_tick(signed_in: SignIn, acme: TenantId, pool: PoolId) -> None:
    submit_tasks(acme, 1, pool="p")
    assert 'type="checkbox"' not in text_of(signed_in("viewer"), "/ops/tasks/")


def asked_by(page: str) -> str:
    found = re.search(r'id="again" hidden hx-get="([^"]+)"', page)
    assert found is not None
    return found[1].replace("&amp;", "&")


def test_newer_rows_are_told_of_and_rows_stay(operator: Client, acme: TenantId, pool: PoolId) -> None:
    submit_tasks(acme, 1, pool="p", kind="report")
    url = asked_by(text_of(operator, "/ops/tasks/?filter=kind:report"))
    assert operator.get(url).status_code == 204
    submit_tasks(acme, 2, pool="p", kind="report")
    submit_tasks(acme, 1, pool="p", kind="other")
    told = text_of(operator, url)
    assert '<a href="/ops/tasks/?filter=kind%3Areport">2 new · Show</a>' in told
    again = re.search(r'hx-get="([^"]+)"', told)
    assert again is not None
    assert operator.get(again[1].replace("&amp;", "&")).status_code == 204
    assert operator.get("/ops/tasks/new/?filter=nonsense:1&since=1").status_code == 204
    assert operator.get("/ops/tasks/new/?since=x").status_code == 204


def test_the_list_of_groups_is_told_of_those_that_died_since(operator: Client, acme: TenantId, pool: PoolId) -> None:
    url = asked_by(text_of(operator, "/ops/dead/?filter=tenant:acme"))
    assert operator.get(url).status_code == 204
    submit_tasks(acme, 2, pool="p")
    worker = HandWorker({pool: 2})
    worker.fail(worker.dispatch().leased)
    fold_dead()
    be_patient()
    assert '<a href="/ops/dead/?filter=tenant%3Aacme">2 more have died · Show</a>' in text_of(operator, url)


def test_a_filter_is_kept_under_a_name_and_offered(operator: Client, acme: TenantId) -> None:
    answer = operator.post(f"{SAVE}?filter=tenant:acme+state:dead", {"name": " Acme's dead "})
    assert answer["Location"] == "/ops/tasks/?filter=tenant%3Aacme+state%3Adead"
    page = text_of(operator, answer["Location"])
    assert 'aria-current="true">Acme&#x27;s dead</a>' in page
    assert "cronoq list &#x27;tenant:acme state:dead&#x27;" in page
    assert "--data-urlencode" in page
    assert AuditEvent.objects.get().action == "filter.save"
    saved = SavedFilter.objects.get()
    forgot = operator.post(f"/ops/tasks/filters/{saved.pk}/forget/")
    undo = operator.get(forgot["Location"]).context["toast"].undo
    assert SavedFilter.objects.count() == 0
    assert operator.post(undo.url, undo.values).status_code == 303
    assert SavedFilter.objects.get().filter == "tenant:acme state:dead"


def test_filters_are_ones_own_unless_shared(operator: Client, signed_in: SignIn) -> None:
    operator.post(f"{SAVE}?filter=state:dead", {"name": "mine"})
    operator.post(f"{SAVE}?filter=state:dead", {"name": "ours", "shared": "on"})
    viewer = signed_in("viewer")
    page = text_of(viewer, "/ops/tasks/")
    assert "ours" in page
    assert "mine" not in page
    for saved in SavedFilter.objects.all():
        assert viewer.post(f"/ops/tasks/filters/{saved.pk}/forget/").status_code == 404
    refused = viewer.post(f"{SAVE}?filter=state:dead", {"name": "theirs", "shared": "on"})
    assert refused.status_code == 422
    assert "scheduler.operate_task" in refused.content.decode()
    assert SavedFilter.objects.count() == 2


@pytest.mark.parametrize(
    ("query", "name", "says"),
    [
        ("filter=state:dead", "", "A name has 1 to 60"),
        ("", "all", "nothing to save"),
        ("filter=state:nope", "x", "At character"),
    ],
)
def test_what_cannot_be_kept_is_refused_beside_the_field(operator: Client, query: str, name: str, says: str) -> None:
    refused = operator.post(f"{SAVE}?{query}", {"name": name})
    assert refused.status_code == 422
    if query != "":
        assert says in refused.content.decode()
    assert SavedFilter.objects.count() == 0


def test_a_name_is_used_again_and_there_is_an_end(operator: Client) -> None:
    for text in ("state:dead", "state:failed"):
        operator.post(f"{SAVE}?filter={text}", {"name": "same"})
    assert SavedFilter.objects.get().filter == "state:failed"
    for n in range(49):
        operator.post(f"{SAVE}?filter=attempts>{n}", {"name": f"n{n}"})
    refused = operator.post(f"{SAVE}?filter=state:dead", {"name": "one more"})
    assert refused.status_code == 422
    assert "remove one first" in refused.content.decode()
