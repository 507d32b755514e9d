"""Which walk a search takes, and which terms it leaves out because they hold for all that stands on it."""

from __future__ import annotations

import pytest

from scheduler.policy.filters import Filter, FilterFault, parse_filter
from scheduler.policy.types import TenantId
from scheduler.store import queries
from scheduler.store.filters import Search, compile_filter, find
from tests.support.work import make_pool, make_tenant

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
