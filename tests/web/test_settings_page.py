"""Settings: the look of this browser; tokens that are shown once; webhooks that are paused and resumed."""

from __future__ import annotations

import re
from datetime import datetime, timedelta
from typing import Any

import pytest
from django.test import Client

from scheduler.live.newest import newest
from scheduler.models import ApiToken, AuditEvent, IdempotencyRecord, Snapshot, Webhook
from scheduler.services.changes import Author
from scheduler.services.delivering import Attempted, delivered, next_stretch
from scheduler.services.tokens import authenticate, create_token, forget_tokens
from scheduler.services.webhooks import add_webhook
from tests.support.work import make_pool, make_tenant, submit_tasks
from tests.web.conftest import SignIn, WithPermissions

TOKENS, HOOKS = "/ops/settings/tokens/", "/ops/settings/webhooks/"
FORM = {"key": "k1", "scopes": ["read", "submit"], "tenant": "acme", "name": "nightly", "reason": "for the loader"}


@pytest.fixture
def keeper(with_permissions: WithPermissions, snapshot: Snapshot) -> Client:
    make_tenant("acme")
    return with_permissions({"scheduler.view_console", "scheduler.edit_access"})


def text_of(client: Client, path: str = TOKENS) -> str:
    return client.get(path).content.decode()


def made_in(html: str) -> str:
    found = re.search(r"cq_[0-9a-f]{12}_[0-9a-f]{48}", html)
    return found[0] if found else ""


def test_a_token_is_shown_once_and_works(keeper: Client) -> None:
    answer = keeper.post(f"{TOKENS}add/", FORM)
    assert answer.status_code == 201
    token = made_in(answer.content.decode())
    who = authenticate(token)
    assert who is not None
    assert (who.tenant_slug, who.scopes) == ("acme", frozenset({"read", "submit"}))
    assert "no-store" in answer["Cache-Control"]
    listed = text_of(keeper)
    assert "nightly" in listed
    assert token.rpartition("_")[0] in listed
    assert made_in(listed) == ""
    event = AuditEvent.objects.get(action="token.add")
    assert (event.actor, event.reason) == ("somebody", "for the loader")
    secret = token.rpartition("_")[2]
    assert secret not in str(list(IdempotencyRecord.objects.values())) + str(list(AuditEvent.objects.values()))


def test_the_same_form_sent_twice_makes_one_token(keeper: Client) -> None:
    keeper.post(f"{TOKENS}add/", FORM)
    again = keeper.post(f"{TOKENS}add/", FORM)
    assert again.status_code == 409
    assert "was sent before" in again.content.decode()
    assert ApiToken.objects.count() == 1


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"scopes": []}, "scope"),
        ({"tenant": "nowhere"}, "There is no tenant &#x27;nowhere&#x27;."),
        ({"pools": "llm, nope"}, "There is no pool named"),
        ({"days": "-1"}, "Give a number of days"),
        ({"days": "99999"}, "Give a number of days"),
        ({"name": "x" * 201}, "more than 200 characters"),
        ({"key": ""}, "1 to 200 printable"),
    ],
)
def test_what_cannot_be_made_is_said_and_the_input_kept(changes: dict[str, object], says: str, keeper: Client) -> None:
    answer = keeper.post(f"{TOKENS}add/", {**FORM, **changes})
    html = answer.content.decode()
    assert answer.status_code == 422
    assert says in html
    assert 'value="for the loader"' in html
    assert not ApiToken.objects.exists()


def test_a_revoked_token_opens_nothing_and_is_still_listed(keeper: Client) -> None:
    made = create_token(scopes=["read"], name="old one", actor="test")
    answer = keeper.post(f"{TOKENS}{made.public_id}/revoke/", {"reason": "leaked"})
    assert answer.status_code == 303
    assert authenticate(made.text) is None
    assert "Revoked" in text_of(keeper)
    assert AuditEvent.objects.get(action="token.revoke").reason == "leaked"
    assert keeper.post(f"{TOKENS}{made.public_id}/revoke/").status_code == 409


def test_a_token_says_when_it_was_used(keeper: Client) -> None:
    made = create_token(scopes=["read"], actor="test")
    assert "never</td>" in text_of(keeper)
    forget_tokens()
    assert authenticate(f"{made.text[:-1]}!") is None
    assert authenticate(made.text[:-1] + ("0" if made.text[-1] != "0" else "1")) is None
    assert ApiToken.objects.get().last_used_at is None
    assert authenticate(made.text)
    first = ApiToken.objects.get().last_used_at
    assert first is not None
    assert authenticate(made.text)
    forget_tokens()
    assert authenticate(made.text)
    assert ApiToken.objects.get().last_used_at == first
    assert "s ago</time>" in text_of(keeper)


def test_tokens_come_in_pages(keeper: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("scheduler.web.settings_page.ROWS", 2)
    for n in range(3):
        create_token(scopes=["read"], name=f"no. {n}!", actor="test")
    first = text_of(keeper)
    assert [f"no. {n}!" in first for n in range(3)] == [False, True, True]
    older = re.search(r'href="(\?before=\d+)"', first)
    assert older
    assert "no. 0!" in text_of(keeper, TOKENS + older[1])


def test_a_webhook_is_paused_and_resumed_and_one_that_changed_meanwhile_is_not(keeper: Client) -> None:
    tenant = make_tenant("globex")
    hook = add_webhook(tenant, "https://hooks.example.org/x", ("alert",), Author("test", "system", "")).webhook
    assert "https://hooks.example.org/x" in text_of(keeper, HOOKS)
    assert keeper.post(f"{HOOKS}{hook.id}/pause/", {"version": hook.version}).status_code == 303
    assert Webhook.objects.get().standing == "paused"
    late = keeper.post(f"{HOOKS}{hook.id}/resume/", {"version": hook.version})
    assert late.status_code == 409
    assert "was changed meanwhile" in late.content.decode()
    assert keeper.post(f"{HOOKS}{hook.id}/resume/", {"version": "x"}).status_code == 422
    assert keeper.post(f"{HOOKS}999/resume/", {"version": "1"}).status_code == 404
    assert keeper.post(f"{HOOKS}{hook.id}/resume/", {"version": hook.version + 1}).status_code == 303
    assert Webhook.objects.get().standing == "active"


def form_of(html: str) -> dict[str, str]:
    return dict(re.findall(r'name="(key|version)" value="([^"]*)"', html))


def test_a_webhook_is_added_once_and_its_secret_shown_once(keeper: Client) -> None:
    make_tenant("globex")
    url = "https://hooks.example.org/x"
    form = form_of(text_of(keeper, HOOKS)) | {"url": url, "tenant": "globex", "events": ["alert", "task.succeeded"]}
    made = keeper.post(f"{HOOKS}add/", form)
    assert made.status_code == 201
    assert "whsec_" in made.content.decode()
    again = keeper.post(f"{HOOKS}add/", form)
    assert again.status_code == 409
    assert "whsec_" not in again.content.decode()
    assert Webhook.objects.count() == 1
    hook = Webhook.objects.get()
    assert list(hook.events) == ["alert", "task.succeeded"]
    page = text_of(keeper, f"{HOOKS}{hook.pk}/")
    assert "Nothing was posted in the last week." in page
    assert "whsec_" not in page


def test_a_faulty_webhook_is_refused_with_what_was_typed(keeper: Client) -> None:
    form = form_of(text_of(keeper, HOOKS)) | {"url": "ftp://x", "tenant": "", "events": []}
    refused = keeper.post(f"{HOOKS}add/", form)
    html = refused.content.decode()
    assert refused.status_code == 422
    assert 'value="ftp://x"' in html
    assert 'id="url-fault"' in html
    assert "Name at least one event" in html
    assert keeper.post(f"{HOOKS}add/", form | {"tenant": "nobody", "key": "k"}).status_code == 422
    assert Webhook.objects.count() == 0


def test_a_webhook_gets_a_new_secret_goes_back_and_is_removed(keeper: Client) -> None:
    hook = add_webhook(make_tenant("globex"), "https://h.example.org/x", ("alert",), Author("t", "system", "")).webhook
    page = f"{HOOKS}{hook.id}/"
    form = form_of(text_of(keeper, page))
    assert "whsec_" in keeper.post(f"{page}rotate/", form).content.decode()
    assert keeper.post(f"{page}rotate/", form).status_code == 409
    assert keeper.post(f"{page}replay/", {"after": "x"}).status_code == 422
    beyond = keeper.post(f"{page}replay/", {"after": "999999"})
    assert beyond.status_code == 422
    assert "can be delivered again from" in beyond.content.decode()
    assert keeper.post(f"{page}replay/", {"after": str(hook.cursor)}).status_code == 303
    assert keeper.post(f"{page}remove/", {"reason": "moved"}).status_code == 303
    assert keeper.get(page).status_code == 404
    assert keeper.post(f"{page}remove/").status_code == 404
    actions = set(AuditEvent.objects.values_list("action", flat=True))
    assert {"webhook.rotate", "webhook.replay", "webhook.remove"} <= actions


def test_a_viewer_learns_what_tokens_need(signed_in: SignIn, snapshot: Snapshot) -> None:
    html = text_of(signed_in("viewer"), "/ops/settings/")
    assert "scheduler.edit_access" in html
    assert TOKENS not in html


def test_rows_are_compact_where_somebody_wants_them_so(signed_in: SignIn, snapshot: Snapshot) -> None:
    client = signed_in("viewer")
    client.post("/ops/look/", {"theme": "dark", "next": "/ops/settings/"})
    client.post("/ops/look/", {"density": "compact", "next": "/ops/settings/"})
    html = text_of(client, "/ops/settings/")
    assert 'data-theme="dark" data-density="compact"' in html
    client.post("/ops/look/", {"density": "<b>"})  # which is none, and changes nothing
    assert 'data-density="compact"' in text_of(client, "/ops/settings/")


def test_a_webhook_is_tested_and_its_result_shown(keeper: Client) -> None:
    hook = add_webhook(None, "https://h.example.org/x", ("alert",), Author("t", "system", "")).webhook
    path = f"{HOOKS}{hook.id}/"
    assert keeper.post(f"{path}test/")["Location"] == path
    assert keeper.post(f"{path}test/")["Location"] == path
    assert AuditEvent.objects.filter(action="webhook.test").count() == 1
    assert f'hx-get="{path}tested/"' in keeper.get(path).content.decode()
    assert keeper.get(f"{path}tested/").status_code == 204
    test = next_stretch(hook.id)
    assert test is not None
    delivered(test, Attempted(None, 15.0, "no whole answer within 15 s"))
    said = keeper.get(f"{path}tested/").content.decode()
    assert 'id="tested"' in said
    assert "The test failed: no whole answer within 15 s after 15 s." in said
    page = keeper.get(path).content.decode()
    assert "The test failed" in page
    assert "a test</td>" in page
    assert "hx-get" not in page.split('id="again"')[1][:80]
    assert keeper.post(f"{HOOKS}999/test/").status_code == 404


def own(client: Client, **values: str | list[str]) -> Any:
    return client.post("/ops/settings/own/", {"zone": "UTC", "tasks": "", "dead": "", **values})


def test_times_are_read_on_the_clock_of_ones_own_zone(keeper: Client) -> None:
    hook = add_webhook(None, "https://h.example.org/x", ("alert",), Author("t", "system", "")).webhook
    assert " UTC</time>" in keeper.get(f"{HOOKS}{hook.id}/").content.decode()
    assert own(keeper, zone="Asia/Seoul").status_code == 303
    html = keeper.get(f"{HOOKS}{hook.id}/").content.decode()
    looked = re.search(r'<time datetime="([^"]+)" title="\1">([^<]+) KST</time>', html)
    assert looked
    apart = datetime.fromisoformat(looked[2]) - datetime.fromisoformat(looked[1]).replace(tzinfo=None)
    assert apart == timedelta(hours=9)
    assert "times of Asia/Seoul" in html
    refused = own(keeper, zone="Mars/Olympus")
    assert refused.status_code == 422
    assert "This is no time zone" in refused.content.decode()
    assert 'value="Mars/Olympus"' in refused.content.decode()


def test_what_moves_is_drawn_in_utc_for_everybody(keeper: Client) -> None:
    before = keeper.get("/ops/_live/overview/").content.split(b"</i>", 1)[1]
    own(keeper, zone="Asia/Seoul")
    newest.forget()
    keeper.get("/ops/")
    assert keeper.get("/ops/_live/overview/").content.split(b"</i>", 1)[1] == before


def test_lists_begin_with_ones_own_filter(keeper: Client) -> None:
    assert own(keeper, tasks="state:dead pool:llm", dead="").status_code == 303
    html = keeper.get("/ops/settings/").content.decode()
    assert 'href="/ops/tasks/?filter=state%3Adead+pool%3Allm"' in html
    assert 'href="/ops/dead/"' in html
    refused = own(keeper, tasks="stat:dead")
    assert refused.status_code == 422
    assert "There is no key" in refused.content.decode()
    assert own(keeper, dead="x" * 301).status_code == 422


def test_lists_of_tasks_show_the_columns_that_were_chosen(keeper: Client) -> None:
    make_pool("p")
    submit_tasks(make_tenant("globex"), pool="p")
    every = ["Pool", "Tenant", "Class", "Attempts", "Age", "Cost"]

    def columns() -> list[str]:
        html = keeper.get("/ops/tasks/").content.decode()
        return [name for name in every if f"{name}</th>" in html and f'data-label="{name}"' in html]

    assert columns() == every
    own(keeper, column=["pool", "age"])
    assert columns() == ["Pool", "Age"]
    keeper.post("/ops/look/", {"density": "compact"})
    assert columns() == ["Pool", "Age"]


def test_the_pace_is_kept_beside_the_rest_of_the_look(keeper: Client) -> None:
    for asked, kept in (
        ({"pace": "15"}, "15"),
        ({"theme": "dark"}, "15"),
        ({"pace": "2"}, "15"),
        ({"pace": "off"}, "off"),
    ):
        keeper.post("/ops/look/", asked)
        assert f'data-pace="{kept}"' in keeper.get("/ops/settings/").content.decode()
    assert 'data-theme="dark"' in keeper.get("/ops/settings/").content.decode()
