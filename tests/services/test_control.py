"""Operators' changes: one transaction, one audit event, late edits told both versions."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest
from django.db import connection

from scheduler.errors import Conflict, NotFound, Refused
from scheduler.models import AuditEvent
from scheduler.policy.declarations import LimitSettings, PoolSettings
from scheduler.policy.types import ResourceKind
from scheduler.reads.pools import list_pools, pool_detail
from scheduler.services.changes import VersionConflict
from scheduler.services.pools import add_pool, edit_pool, pause_pool, resume_pool
from scheduler.services.resources import add_resource, edit_resource
from scheduler.services.tenants import add_tenant, edit_tenant
from tests.conftest import LiveDatabase


def actions() -> list[str]:
    return list(AuditEvent.objects.order_by("id").values_list("action", flat=True))


@pytest.mark.django_db
def test_a_change_and_its_audit_are_one() -> None:
    add_pool("p", "python", PoolSettings(), actor="ada", reason="first")
    edit_pool("p", 1, {"slots": 3}, actor="ada")
    pause_pool("p", actor="bob", reason="lunch")
    pause_pool("p", actor="eve", reason="later")
    assert pool_detail("p").pause is not None
    assert (pool_detail("p").state, pool_detail("p").version) == ("paused", 3)
    resume_pool("p", actor="bob")
    resume_pool("p", actor="bob")
    assert actions() == ["pool.add", "pool.edit", "pool.pause", "pool.resume"]
    edit = AuditEvent.objects.get(action="pool.edit")
    assert (edit.actor, edit.source, edit.before, edit.after) == ("ada", "ui", {"slots": 10}, {"slots": 3})
    assert (AuditEvent.objects.get(action="pool.resume").before or {})["pause_reason"] == "lunch"
    assert [p.name for p in list_pools()] == ["p"]


@pytest.mark.django_db
@pytest.mark.parametrize(
    "change",
    [
        lambda: edit_pool("p", 1, {"slots": 99}, actor="ada"),
        lambda: edit_pool("p", 1, {"colour": "red"}, actor="ada"),
        lambda: edit_resource("r", 1, {"rate": -1.0}, actor="ada"),
        lambda: edit_resource("r", 1, {"kind": "semaphore"}, actor="ada"),
        lambda: edit_resource("r", 1, {"colour": "red"}, actor="ada"),
        lambda: edit_tenant("t", 1, {"weight": -1.0}, actor="ada"),
        lambda: edit_tenant("t", 1, {"name": "\x00"}, actor="ada"),
        lambda: edit_tenant("t", 1, {"name": "x" * 201}, actor="ada"),
        lambda: edit_tenant("t", 1, {"colour": "red"}, actor="ada"),
        lambda: pause_pool("p", actor="ada", reason="x" * 501),
        lambda: pause_pool("p", actor="ada", reason="\x00"),
        lambda: add_pool("a b", "python", PoolSettings(), actor="ada"),
    ],
)
def test_a_refused_change_leaves_nothing(change: Callable[[], object]) -> None:
    add_pool("p", "python", PoolSettings(), actor="ada")
    add_resource("r", ResourceKind.TOKEN_BUCKET, LimitSettings(rate=1.0, burst=1.0), actor="ada")
    add_tenant("t", actor="ada")
    before = actions()
    with pytest.raises(Refused) as refused:
        change()
    assert refused.value.errors
    assert actions() == before


@pytest.mark.django_db
@pytest.mark.parametrize(
    "change",
    [
        lambda: edit_pool("p", 7, {"slots": 1}, actor="ada"),
        lambda: edit_resource("r", 7, {"rate": 1.0}, actor="ada"),
        lambda: edit_tenant("t", 7, {"weight": 1.0}, actor="ada"),
    ],
)
def test_a_late_edit_is_told_both_versions(change: Callable[[], object]) -> None:
    add_pool("p", "python", PoolSettings(), actor="ada")
    add_resource("r", ResourceKind.TOKEN_BUCKET, LimitSettings(), actor="ada")
    add_tenant("t", actor="ada")
    with pytest.raises(VersionConflict) as late:
        change()
    assert (late.value.sent, late.value.current) == (7, 1)


@pytest.mark.django_db
@pytest.mark.parametrize("name", ["nope", "a\x00b"])
def test_what_is_not_there_is_not_found(name: str) -> None:
    with pytest.raises(NotFound):
        edit_pool(name, 1, {}, actor="ada")
    with pytest.raises(NotFound):
        pause_pool(name, actor="ada", reason="")
    with pytest.raises(NotFound):
        edit_resource(name, 1, {}, actor="ada")
    with pytest.raises(NotFound):
        edit_tenant(name, 1, {}, actor="ada")
    with pytest.raises(NotFound):
        pool_detail(name)


@pytest.mark.django_db
def test_names_are_taken_once() -> None:
    add_tenant("t", actor="ada")
    with pytest.raises(Conflict):
        add_tenant("t", actor="ada")
    add_resource("r", ResourceKind.SEMAPHORE, LimitSettings(permits=1), actor="ada")
    with pytest.raises(Conflict):
        add_resource("r", ResourceKind.TOKEN_BUCKET, LimitSettings(), actor="ada")


def test_of_many_edits_of_one_version_one_wins(live_database: LiveDatabase) -> None:
    add_resource("r", ResourceKind.TOKEN_BUCKET, LimitSettings(rate=1.0, burst=1.0), actor="ada")

    def edit(rate: int) -> bool:
        try:
            edit_resource("r", 1, {"rate": float(rate)}, actor=f"user {rate}")
        except VersionConflict:
            return False
        else:
            return True
        finally:
            connection.close()

    with ThreadPoolExecutor(8) as pool:
        won = list(pool.map(edit, range(2, 10)))
    assert sum(won) == 1
    event = AuditEvent.objects.get(action="resource.edit")
    assert event.after == {"rate": float(won.index(True) + 2)}
    assert live_database.name
