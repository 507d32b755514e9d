"""Which walk a search takes, and which terms it leaves out because they hold for all that stands on it."""

from __future__ import annotations

import pytest
from django.utils import timezone

from scheduler.models import DeadLetter, Task
from scheduler.policy.filters import Filter, FilterFault, parse_filter
from scheduler.policy.types import TenantId
from scheduler.reads import task_lists
from scheduler.reads.task_lists import FoundCount, find_page, read_filter
from scheduler.store import queries
from scheduler.store.filters import Look, Search, compile_filter, count, find, look
from tests.support.statements import statements
from tests.support.work import make_pool, make_tenant, submit_tasks

pytestmark = pytest.mark.django_db


def search(text: str, tenant: TenantId | None = None) -> Search | FilterFault:
    wanted = parse_filter(text)
    assert isinstance(wanted, Filter)
    return compile_filter(wanted, tenant=tenant, as_of=1e9)


@pytest.mark.parametrize(
    ("text", "walk", "conditions"),
    [
        ("", "walk_tasks", 0),
        ("state:dead", "walk_kept", 0),
        ("state:dead tenant:acme", "walk_dead_tenant", 0),
        ("state:dead pool:p", "walk_dead_pool", 0),
        ("state:dead pool:p,q", "walk_kept", 1),
        ("state:dead fingerprint:00000000000000ff tenant:acme", "walk_fingerprint", 1),
        ("state:discarded", "walk_discarded", 0),
        ("state:dead,discarded", "walk_dead", 1),
        ("state:failed", "walk_dead", 1),
        ("state:dead,ready", "walk_tasks", 1),
        ("state:ready", "walk_ready", 0),
        ("state:running pool:p", "walk_running", 1),
        ("state:retrying", "walk_due", 1),
        ("state:waiting", "walk_tasks", 1),
        ("-state:dead", "walk_tasks", 1),
        ("tenant:acme", "walk_tenant", 0),
        ("-tenant:acme", "walk_tasks", 1),
        ("key:a,b", "walk_key", 0),
        ("task:5 state:ready", "walk_ids", 1),
    ],
)
def test_the_narrowest_walk_is_taken(text: str, walk: str, conditions: int) -> None:
    make_tenant("acme")
    make_pool("p")
    make_pool("q")
    found = search(text)
    assert isinstance(found, Search)
    assert (found.walk.name, len(found.conditions)) == (walk, conditions)
    for back in (True, False):
        assert find(found, bound=5, back=back, look_max=10, rows_max=10) == []


@pytest.mark.parametrize("text", ["state:dead", "state:ready", "key:a", "task:5", "state:running", "", "tenant:acme"])
def test_a_tenant_is_always_a_condition_or_the_walk(text: str) -> None:
    acme = make_tenant("acme")
    found = search(text, acme)
    assert isinstance(found, Search)
    bound = [*found.walk.params, *(value for piece in found.conditions for value in piece.params)]
    assert acme in bound


def test_a_name_that_nobody_has_is_told_with_its_place() -> None:
    acme = make_tenant("acme")
    make_tenant("other")
    assert search("state:dead pool:nope") == FilterFault(12, "There is no pool 'nope'.")
    assert search("tenant:acme,other", acme) == FilterFault(1, "There is no tenant 'other'.")


def test_every_piece_binds_its_values() -> None:
    pieces = queries.load("filters.sql")
    assert not any("'%" in piece or "{" in piece for piece in pieces.values())


def test_a_look_asks_each_task_once_and_says_how_far_it_went() -> None:
    acme = make_tenant("acme")
    make_pool("p")
    tasks = [submit_tasks(acme, pool="p", kind="chat" if n % 3 == 0 else "other")[0] for n in range(12)]
    found = search("kind:chat")
    assert isinstance(found, Search)
    seen = look(found, bound=None, look_max=7, rows_max=2)
    assert [place.task for place in seen.found] == [tasks[9], tasks[6]]
    assert (seen.matches, seen.passed, seen.lowest) == (2, 7, tasks[5])
    rest = look(found, bound=seen.lowest, look_max=7, rows_max=2)
    assert [place.task for place in rest.found] == [tasks[3], tasks[0]]
    assert (rest.matches, rest.passed, rest.lowest) == (2, 5, tasks[0])
    nobody = search("kind:nobody")
    assert isinstance(nobody, Search)
    assert look(nobody, bound=tasks[0], look_max=7, rows_max=2) == Look([], 0, 0, 0)


@pytest.mark.parametrize(
    ("text", "is_far"),
    [
        ("kind:a", False),
        ("attempts>1", False),
        ("state:waiting", False),
        ("tenant:acme kind:a", True),
        ("reason:timeout", True),
        ("cost>1", True),
        ('"text"', True),
        ('-"text"', True),
        ("state:dead reason:timeout", False),
        ("state:dead,ready", True),
        ("fingerprint:00000000000000ff", True),
    ],
)
def test_what_looks_at_other_tables_is_known(text: str, is_far: bool) -> None:
    make_tenant("acme")
    found = search(text)
    assert isinstance(found, Search)
    assert found.is_far is is_far


def test_a_page_that_finds_nothing_looks_once() -> None:
    acme = make_tenant("acme")
    make_pool("p")
    submit_tasks(acme, 30, pool="p", kind="chat")
    for text in ("kind:nobody", '"nobody"', "state:waiting cost>5"):
        with statements() as sent:
            page = find_page(read_filter(text), None)
        assert (page.rows, page.count.n, page.count.passed) == ((), 0, None)
        assert sum("FROM task t" in each for each in sent) == 1
        assert len(sent) <= 3


def test_pages_beyond_where_a_look_stopped_are_complete(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(task_lists, "LOOK_MAX", 8)
    acme = make_tenant("acme")
    make_pool("p")
    wanted = [submit_tasks(acme, pool="p", kind="chat" if n % 5 == 0 else "other")[0] for n in range(30)][::5]
    found, older, stops = [], None, 0
    while True:
        page = find_page(read_filter("kind:chat"), None, older=older)
        assert page.count == FoundCount(1, more=True, passed=8)
        found += [row.id for row in page.rows]
        stops += page.stopped
        if page.older is None:
            break
        older = page.older
    assert (found, stops) == (wanted[::-1], 3)


def test_a_text_is_looked_for_once_in_each_task_that_is_passed_and_not_in_all_that_died() -> None:
    found = search('"nobody wrote this"')
    assert isinstance(found, Search)
    queries.run("SET LOCAL enable_seqscan = off")
    with statements() as sent:
        look(found, bound=None, look_max=4_000, rows_max=51)
    params = [51, 51, *(value for piece in found.conditions for value in piece.params), 2**62, 4_000]
    plan = "\n".join(row[0] for row in queries.fetch_anew("EXPLAIN " + sent[-1], params))
    assert "Index Scan using dead_letter_task_id" in plan, plan
    assert "hashed SubPlan" not in plan, plan
    assert "SubPlan 1" in plan, plan
    assert "SubPlan 2" not in plan, plan


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("state:dead", 5),
        ("state:dead tenant:acme", 5),
        ("state:dead pool:p", 5),
        ("state:dead reason:error", 5),
        ("state:dead reason:timeout", 0),
        ("state:dead fingerprint:0000000000000007", 5),
        ("state:discarded", 1),
        ("state:dead -reason:error", 0),
        ("state:dead kind:chat", 5),
        ("tenant:acme", 6),
        ("tenant:acme kind:other", 0),
    ],
)
def test_what_can_be_is_counted_without_the_tasks(text: str, number: int) -> None:
    acme, pool = make_tenant("acme"), make_pool("p")
    for n, task in enumerate(submit_tasks(acme, 6, pool="p", kind="chat")):
        Task.objects.filter(pk=task).update(state="dead_lettered")
        DeadLetter.objects.create(
            task_id=task,
            fingerprint=7,
            tenant_id=acme,
            pool_id=pool,
            kind="chat",
            failure_class="error",
            died_at=timezone.now(),
            discarded_at=timezone.now() if n == 0 else None,
        )
    wanted = parse_filter(text)
    assert isinstance(wanted, Filter)
    for frozen in (False,) if text.startswith("tenant") else (True, False):
        found = compile_filter(wanted, tenant=None, as_of=4e9, frozen=frozen)
        assert isinstance(found, Search)
        with statements() as sent:
            assert count(found, look_max=100, count_max=100) == number
        assert ("JOIN task" in sent[-1]) is ("kind" in text)
