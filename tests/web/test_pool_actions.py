"""Pausing and resuming through the page: reason, undo, repeated and conflicting actions."""

from __future__ import annotations

import re

from django.test import Client

from scheduler.models import AuditEvent, Pool, Snapshot
from tests.web.conftest import SignIn

PAUSE, RESUME, PAGE = "/ops/pools/llm/pause/", "/ops/pools/llm/resume/", "/ops/pools/llm/"


def undo_form(html: str) -> tuple[str, str]:
    toast = html[html.index('id="toast"') :]
    action = re.search(r'action="([^"]+)"', toast)
    reason = re.search(r'name="reason" value="([^"]*)"', toast)
    assert action
    assert reason
    return action[1], reason[1]


def paused_for(client: Client) -> str | None:
    pool = Pool.objects.get(name="llm")
    return pool.pause_reason if pool.paused_at else None


def test_pause_and_undo(signed_in: SignIn, llm: Pool, snapshot: Snapshot) -> None:
    client = signed_in("operator")
    response = client.post(PAUSE, {"reason": " reindexing "})
    assert (response.status_code, response["Location"]) == (303, PAGE)
    assert paused_for(client) == "reindexing"
    html = client.get(PAGE).content.decode()
    assert "Paused llm. Nothing new starts; what runs goes on." in html
    assert "Paused by operator: “reindexing”" in html
    assert 'id="toast"' not in client.get(PAGE).content.decode()
    action, reason = undo_form(html)
    client.post(action, {"reason": reason})
    assert paused_for(client) is None
    action, reason = undo_form(client.get(PAGE).content.decode())
    assert (action, reason) == (PAUSE, "reindexing")


def test_every_change_is_audited_with_its_actor(signed_in: SignIn, llm: Pool, snapshot: Snapshot) -> None:
    client = signed_in("operator")
    client.post(PAUSE, {"reason": "why not"})
    client.post(RESUME)
    events = AuditEvent.objects.order_by("id").values_list("actor", "action", "subject", "source")
    assert list(events) == [
        ("operator", "pool.pause", "pool:llm", "ui"),
        ("operator", "pool.resume", "pool:llm", "ui"),
    ]


def test_a_pause_without_a_reason_is_refused_beside_its_field(signed_in: SignIn, llm: Pool, snapshot: Snapshot) -> None:
    client = signed_in("operator")
    response = client.post(PAUSE, {"reason": "   "})
    html = response.content.decode()
    assert response.status_code == 422
    assert 'aria-invalid="true" aria-describedby="fault pause-says"' in html
    assert paused_for(client) is None


def test_somebody_else_was_faster(signed_in: SignIn, llm: Pool, snapshot: Snapshot) -> None:
    client = signed_in("operator")
    client.post(PAUSE, {"reason": "first"})
    response = client.post(PAUSE, {"reason": "second"})
    html = response.content.decode()
    assert response.status_code == 409
    assert "operator paused it already: “first”. Nothing was changed." in html
    assert 'value="second"' in html
    assert paused_for(client) == "first"


def test_resuming_what_runs_changes_nothing_and_offers_no_undo(
    signed_in: SignIn, llm: Pool, snapshot: Snapshot
) -> None:
    client = signed_in("operator")
    client.post(RESUME)
    html = client.get(PAGE).content.decode()
    assert "llm was running already" in html
    assert "Undo" not in html
    assert not AuditEvent.objects.exists()


def test_an_unknown_pool_is_not_found(signed_in: SignIn, snapshot: Snapshot) -> None:
    client = signed_in("operator")
    assert client.post("/ops/pools/nope/pause/", {"reason": "x"}).status_code == 404
    assert client.post("/ops/pools/nope/resume/").status_code == 404


def test_a_reason_is_text_and_bounded(signed_in: SignIn, llm: Pool, snapshot: Snapshot) -> None:
    client = signed_in("operator")
    client.post(PAUSE, {"reason": "<script>alert(1)</script>" + "x" * 500})
    html = client.get(PAGE).content.decode()
    assert "<script>alert" not in html
    assert "&lt;script&gt;alert(1)" in html
    assert len(paused_for(client) or "") == 200


def test_several_pools_are_paused_by_kind_all_or_none_and_one_undo_takes_it_back(
    signed_in: SignIn, llm: Pool, snapshot: Snapshot
) -> None:
    client = signed_in("operator")
    for name in "embed", "chat":
        Pool.objects.create(name=name, executor="llm")
    Pool.objects.create(name="mail", executor="http")
    page = client.get("/ops/several-pools/").content.decode()
    assert 'name="kind" value="http"' in page
    assert 'name="pool" value="embed"' in page

    def paused() -> list[str]:
        return sorted(Pool.objects.filter(paused_at__isnull=False).values_list("name", flat=True))

    client.post(PAUSE, {"reason": "before"})
    for form, said in (
        ({"reason": "x"}, "Tick the pools that you mean"),
        ({"kind": "llm", "reason": " "}, "Say why"),
        ({"pool": ["embed", "nope"], "reason": "x"}, "Nothing was changed."),
    ):
        refused = client.post("/ops/several-pools/pause/", form)
        assert refused.status_code == 422
        assert said in refused.content.decode()
    assert paused() == ["llm"]
    assert (
        client.post("/ops/several-pools/pause/", {"kind": "llm", "reason": "outage", "for_s": "900"}).status_code == 303
    )
    assert paused() == ["chat", "embed", "llm"]
    assert Pool.objects.get(name="chat").resume_at is not None
    html = client.get("/ops/several-pools/").content.decode()
    assert "Paused 2 pools: chat, embed." in html
    names = re.search(r'name="names" value="([^"]*)"', html)
    assert names
    client.post("/ops/several-pools/resume/", {"names": names[1].replace("\n", "\r\n"), "reason": "undo"})
    assert paused() == ["llm"]
    assert AuditEvent.objects.filter(action="pool.pause", reason="outage").count() == 2
