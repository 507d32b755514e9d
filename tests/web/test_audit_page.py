"""The audit's pages: what was changed in words, found by anything, whole as a file, and never changed itself."""

from __future__ import annotations

import csv
import io
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from django.contrib.auth.models import User
from django.db import DatabaseError, connection, transaction
from django.test import AsyncClient, Client
from pytest_django import DjangoAssertNumQueries

from scheduler.models import AuditEvent, Pool, Snapshot
from scheduler.reads import audit as reads
from scheduler.reads.audit import AuditFilter
from scheduler.services.changes import Author, coming_from, record
from scheduler.services.prune import Keep, prune
from tests.conftest import LiveDatabase
from tests.support import loops
from tests.web.conftest import WithPermissions

URL = "/ops/audit/"
AUDITOR = {"scheduler.view_audit"}


def change(actor: str = "ada", action: str = "pool.edit", subject: str = "pool:llm", **said: Any) -> None:
    source, reason = said.pop("source", "ui"), said.pop("reason", "")
    record(Author(actor, source, reason), action, subject, **said)


@pytest.fixture
def auditor(with_permissions: WithPermissions, snapshot: Snapshot) -> Client:
    return with_permissions(AUDITOR)


def shown(client: Client, query: str = "") -> str:
    return client.get(URL + query).content.decode()


def test_a_change_is_told_in_words(auditor: Client, llm: Pool) -> None:
    change(before={"slots": 8, "lease_ttl_s": 30.0}, after={"slots": 16, "lease_ttl_s": 45.5}, reason="black friday")
    change(action="budget.edit", subject="tenant:acme", before={"limit": None}, after={"limit": 12_500_000_000})
    html = shown(auditor)
    assert "black friday" in html
    assert '<a href="/ops/pools/llm/">llm</a>' in html
    for text in ("slots", "</span>8</del>", "</span>16</ins>", "lease ttl", "45.5 s", "$12.50", "</span>none</del>"):
        assert text in html, text


def seen_by(client: Client, entry: str) -> list[str]:
    """The list, the page of an entry and the file."""
    return [shown(client), client.get(entry).content.decode(), str(rows_of(client.get(f"{URL}export.csv")))]


def test_what_tasks_carry_is_for_those_who_may_see_it(
    with_permissions: WithPermissions, auditor: Client, llm: Pool
) -> None:
    change(action="schedule.add", subject="schedule:acme/x", after={"task": {"kind": "k", "payload": {"a": "secret"}}})
    own = f"{URL}{AuditEvent.objects.get().pk}/"
    for text in seen_by(auditor, own):
        assert "secret" not in text
        assert "scheduler.view_payload" in text
    reader = with_permissions({*AUDITOR, "scheduler.view_payload"})
    for text in seen_by(reader, own):
        assert "secret" in text


def test_what_was_left_empty_is_told_only_in_the_whole(auditor: Client) -> None:
    change(action="tenant.add", subject="tenant:acme", after={"name": "Acme", "time_zone": None, "limit": 10**12})
    listed = shown(auditor)
    assert "$1,000.00" in listed
    assert "time zone" not in listed
    assert "time zone" in auditor.get(f"{URL}{AuditEvent.objects.get().pk}/").content.decode()


def test_a_long_change_is_cut_in_the_list_and_whole_on_its_own_page(auditor: Client) -> None:
    with coming_from("192.0.2.7", "req-1"):
        change(after={f"part{n}": "x" * 300 for n in range(6)})
    listed = shown(auditor)
    assert "and 2 more" in listed
    assert "x" * 81 not in listed
    whole = auditor.get(f"{URL}{AuditEvent.objects.get().pk}/").content.decode()
    assert "x" * 300 in whole
    assert "192.0.2.7" in whole
    assert "req-1" in whole
    assert auditor.get(f"{URL}999999/").status_code == 404


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("", {"one", "two", "three"}),
        ("?actor=ada", {"one", "two"}),
        ("?action=pool.pause", {"two"}),
        ("?subject=tenant:acme", {"three"}),
        ("?source=api", {"three"}),
        ("?actor=ada&action=pool.edit", {"one"}),
        ("?since=2001-01-01T00:00", {"one", "two", "three"}),
        ("?until=2001-01-01T00:00:00Z", set()),
        ("?actor=nobody", set()),
    ],
)
def test_changes_are_found_by_who_what_where_and_when(query: str, found: set[str], auditor: Client) -> None:
    change(reason="said one")
    change(action="pool.pause", reason="said two")
    change("token:1", "tenant.edit", "tenant:acme", source="api", reason="said three")
    html = shown(auditor, query)
    assert {word for word in ("one", "two", "three") if f"said {word}" in html} == found
    assert ("Nothing matches" in html) is (found == set())


@pytest.mark.parametrize(
    ("query", "says"),
    [
        ("?since=yesterday", "Write a time like"),
        ("?source=door", "A source is one of"),
        ("?since=2026-02-01T00:00&until=2026-01-01T00:00", "an end that is after the beginning"),
        ("?cursor=x", "This cursor is not one"),
        ("?cursor=99999999999999999999", "This cursor is not one"),
        ("?actor=%00", "cannot be kept"),
    ],
)
@pytest.mark.parametrize("path", [URL, f"{URL}export.csv"])
def test_a_filter_that_means_nothing_is_refused_where_it_stands(
    path: str, query: str, says: str, auditor: Client
) -> None:
    if "cursor" in query and path != URL:
        pytest.skip("a file has no pages")
    response = auditor.get(path + query)
    assert response.status_code == 422
    assert says in response.content.decode()


def test_pages_follow_each_other_both_ways_without_holes_while_more_is_written(
    auditor: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("scheduler.web.audit_page.ROWS", 3)
    for n in range(8):
        change(actor="ada" if n != 4 else "bob", reason=f"change {n}.")

    def seen(query: str) -> tuple[list[int], str, str]:
        html = shown(auditor, query)
        links = [part.split('"')[0].replace("&amp;", "&") for part in html.split('<a href="?')[1:]]
        turns = ["?" + link for link in links if "cursor=" in link]
        newer = next((link for link in turns if parse_qs(urlsplit(link).query)["cursor"][0].startswith("-")), "")
        older = next((link for link in turns if link != newer), "")
        return [n for n in range(20) if f"change {n}." in html], newer, older

    first, newer, older = seen("?actor=ada")
    assert (first, newer) == ([5, 6, 7], "")
    change(actor="ada", reason="change 8.")
    second, newer, last = seen(older)
    assert second == [1, 2, 3]
    assert seen(last)[0] == [0]
    assert seen(last)[2] == ""
    assert seen(newer)[0] == [5, 6, 7]
    assert seen(seen(newer)[1])[0] == [8]


def test_a_page_costs_the_same_with_any_number_of_rows(
    auditor: Client, django_assert_max_num_queries: DjangoAssertNumQueries
) -> None:
    shown(auditor)
    for n in range(60):
        change(after={"n": n})
    with django_assert_max_num_queries(8):
        assert len(shown(auditor)) < 60_000


def test_each_filter_has_an_index(db: None) -> None:
    """Beyond a few thousand changes no filter may read them all."""
    with connection.cursor() as cursor:
        cursor.execute(
            "INSERT INTO audit_event (at, actor, source, action, subject, reason)"
            " SELECT now() - n * interval '1 s', 'a' || n % 9, 'ui', 'b.' || n % 7, 'pool:' || n % 5, ''"
            " FROM generate_series(1, 5000) n"
        )
        cursor.execute("ANALYZE audit_event")
    wanted = (AuditFilter("nobody"), AuditFilter(None, "no.thing"), AuditFilter(subject="pool:none"))
    for each in (*wanted, AuditFilter(source="api")):
        before = _rows_read()
        assert reads.list_events(each, cursor=None, rows_max=50).events == ()
        assert _rows_read() - before < 100, each


def _rows_read() -> int:
    """Rows of the audit that statements of this transaction have looked at so far."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT pg_stat_get_xact_tuples_returned(c.oid) + coalesce((SELECT sum(pg_stat_get_xact_tuples_returned("
            "i.indexrelid)) FROM pg_index i WHERE i.indrelid = c.oid), 0) FROM pg_class c WHERE relname = 'audit_event'"
        )
        return int(cursor.fetchone()[0])


def rows_of(response: Any) -> list[list[str]]:
    text = b"".join(response.streaming_content).decode()
    return list(csv.reader(io.StringIO(text)))


def test_the_file_holds_everything_that_the_filter_finds(auditor: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reads, "CHUNK_ROWS", 2)
    for n in range(5):
        change(reason=f"no. {n}", after={"n": n})
    change("bob")
    response = auditor.get(f"{URL}export.csv?actor=ada")
    assert response["Content-Type"].startswith("text/csv")
    assert "attachment" in response["Content-Disposition"]
    heading, *rows = rows_of(response)
    assert heading[:3] == ["id", "time", "actor"]
    assert [row[6] for row in rows] == [f"no. {n}" for n in (4, 3, 2, 1, 0)]
    assert rows[0][8] == '{"n":4}'


def test_a_file_that_would_not_end_says_that_it_was_cut(auditor: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reads, "CHUNK_ROWS", 1)
    monkeypatch.setattr(reads, "EXPORT_ROWS_MAX", 2)
    monkeypatch.setattr("scheduler.web.audit_export.EXPORT_ROWS_MAX", 2)
    for _ in range(3):
        change()
    rows = rows_of(auditor.get(f"{URL}export.csv"))
    assert len(rows) == 4
    assert "ends after 2 entries" in rows[-1][2]


@pytest.mark.parametrize("text", ["=1+1", "+1", "-1", "@SUM(A1)", "\tx", "\rx"])
def test_no_cell_of_the_file_is_a_formula(text: str, auditor: Client) -> None:
    change(actor=text, reason=text)
    row = rows_of(auditor.get(f"{URL}export.csv"))[1]
    assert (row[2], row[6]) == (f"'{text}", f"'{text}")


def test_the_file_is_streamed_by_an_asynchronous_server(live_database: LiveDatabase) -> None:
    client = AsyncClient()
    change(reason="kept")
    client.force_login(User.objects.create_superuser("root"))

    async def scenario() -> None:
        response: Any = await client.get(f"{URL}export.csv")
        pieces = [piece.decode() async for piece in response.streaming_content]
        assert len(pieces) == 2
        assert "kept" in pieces[1]

    loops.run(scenario())


@pytest.mark.parametrize("statement", ["UPDATE audit_event SET actor = 'eve'", "DELETE FROM audit_event"])
def test_what_is_written_stays(statement: str, db: None) -> None:
    change()
    with pytest.raises(DatabaseError, match="append-only"), transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(statement)
    assert AuditEvent.objects.get().actor == "ada"


def test_only_a_prune_forgets_and_only_what_is_old(db: None) -> None:
    change("new")
    with connection.cursor() as cursor:
        cursor.execute(
            "INSERT INTO audit_event (at, actor, source, action, subject, reason)"
            " VALUES (now() - interval '9 days', 'old', 'ui', 'a.b', 'c:d', '')"
        )
    assert prune(Keep(86_400.0, 86_400.0), rest=lambda: None).audit_events == 1
    assert AuditEvent.objects.get().actor == "new"


def test_a_change_says_from_which_request_and_address_it_came(
    with_permissions: WithPermissions, llm: Pool, snapshot: Snapshot
) -> None:
    client = with_permissions({"scheduler.view_console", "scheduler.operate_pool"})
    answer = client.post("/ops/pools/llm/pause/", {"reason": "x"}, REMOTE_ADDR="192.0.2.9", HTTP_X_REQUEST_ID="abc-1")
    assert answer["X-Request-ID"] == "abc-1"
    event = AuditEvent.objects.get(action="pool.pause")
    assert (event.address, event.request_id) == ("192.0.2.9", "abc-1")
    odd = client.post("/ops/pools/llm/resume/", REMOTE_ADDR="<b>", HTTP_X_REQUEST_ID="a b\tc")
    event = AuditEvent.objects.get(action="pool.resume")
    assert event.address is None
    assert event.request_id == odd["X-Request-ID"]
