"""A book that is kept hears of all work that came, also of what was folded away, and is seldom written anew for it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from django.db import transaction

from scheduler.policy import lanebook
from scheduler.policy.lanebook import LaneBook
from scheduler.policy.types import TaskId, TenantId
from scheduler.services import heartbeat
from scheduler.services.dispatch import dispatch
from scheduler.store import overview
from tests.support.work import HandWorker, make_pool, make_tenant, submit_tasks

pytestmark = pytest.mark.django_db
BEGIN = 0
"""Nothing was folded when the planner first looked."""


class Planner(HandWorker):
    """A worker with slots for all, who plans with the book of its plan before."""

    def __init__(self) -> None:
        super().__init__({make_pool(slots=100): 100})
        self.book = LaneBook()

    def plan(self) -> set[TaskId]:
        """Plan once; what started."""
        heartbeat.renew(self.id, [])
        return {leased.task for leased in dispatch(me=self.id, book=self.book).leased}


@pytest.fixture
def planner(monkeypatch: pytest.MonkeyPatch) -> Planner:
    """A planner with a book that counts as large: it knows lanes of six tenants that are kept back."""
    monkeypatch.setattr(lanebook, "LANES_EACH_FOLD", 1)
    made = Planner()
    make_pool("kept", slots=1, paused_at="2026-01-01T00:00:00Z")
    for n in range(6):
        submit_tasks(make_tenant(f"kept-{n}"), pool="kept")
    assert made.plan() == set()
    return made


def newcomers() -> Iterator[TenantId]:
    """Tenants that had nothing before: each comes with a new lane."""
    for n in range(1_000):
        yield make_tenant(f"new-{n}")


def test_what_was_folded_before_it_was_seen_starts_at_the_next_look(planner: Planner) -> None:
    tenants = newcomers()
    for _ in range(2):
        (task,) = submit_tasks(next(tenants))
        overview.fold_counts()
        assert planner.plan() == {task}
    assert planner.book.written_at == BEGIN


def test_what_came_before_and_after_two_folds_starts_at_one_look(planner: Planner) -> None:
    tenants = newcomers()
    came = set()
    for _ in range(2):
        came |= set(submit_tasks(next(tenants), 2))
        overview.fold_counts()
    came |= set(submit_tasks(next(tenants)))
    assert planner.plan() == came
    assert planner.book.written_at == BEGIN


def test_as_many_came_after_the_fold_as_were_seen_before_it(planner: Planner) -> None:
    tenant = next(newcomers())
    (first,) = submit_tasks(tenant)
    assert planner.plan() == {first}
    overview.fold_counts()
    (second,) = submit_tasks(tenant)
    assert planner.plan() == {second}
    overview.fold_counts()
    (third,) = submit_tasks(tenant)
    overview.fold_counts()
    assert planner.plan() == {third}
    assert planner.book.written_at == BEGIN


def test_a_fold_that_is_undone_took_nothing(planner: Planner) -> None:
    (task,) = submit_tasks(next(newcomers()))
    with transaction.atomic():
        overview.fold_counts()
        transaction.set_rollback(True)
    assert planner.plan() == {task}
    assert planner.book.written_at == BEGIN


def test_it_is_written_anew_after_a_few_folds_however_many_lanes_there_are(planner: Planner) -> None:
    tenants = newcomers()
    written = []
    for _ in range(4):
        submit_tasks(next(tenants))
        overview.fold_counts()
        planner.plan()
        written.append(planner.book.written_at)
    assert written == [BEGIN, BEGIN, BEGIN, 4]


def test_a_small_book_is_written_anew_with_every_fold(planner: Planner, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lanebook, "LANES_EACH_FOLD", 1_000)
    tenants = newcomers()
    written = []
    for _ in range(2):
        submit_tasks(next(tenants))
        overview.fold_counts()
        planner.plan()
        written.append(planner.book.written_at)
    assert written == [1, 2]


def test_who_has_not_looked_for_longer_than_folds_are_kept_reads_all_lanes(
    planner: Planner, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lanebook, "WRITTEN_ANEW_FOLDS", 1_000)
    monkeypatch.setattr(lanebook, "LANES_EACH_FOLD", 1e-6)
    tenants = newcomers()
    came = set()
    for _ in range(20):
        came |= set(submit_tasks(next(tenants)))
        overview.fold_counts()
    assert planner.plan() == came
    assert planner.book.written_at == 20
