"""A plan reads the lanes of the deadlines that press most, however many lanes have some."""

from __future__ import annotations

from typing import Any

import pytest

from scheduler.policy.types import PriorityClass, TenantId
from scheduler.store import dispatch as store
from tests.support.work import make_pool, make_tenant, submit_tasks

pytestmark = pytest.mark.django_db


def hurried(name: str, deadline_in_s: float, **fields: Any) -> TenantId:
    """A tenant with a task that has a deadline."""
    tenant = make_tenant(name)
    submit_tasks(tenant, 1, **{"deadline_in_s": deadline_in_s, "duration_hint_s": 700.0} | fields)
    return tenant


def read() -> set[TenantId]:
    return {lane.tenant for lane in store.load_control(fresh_s=15.0, mark=0).always}


def test_those_that_press_most_of_each_pool_and_class(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store, "PRESSING_MAX", 3)
    make_pool("p")
    make_pool("q")
    normal = [hurried(f"n{n}", 800.0 + 60.0 * n) for n in reversed(range(6))][::-1]
    low = [hurried(f"l{n}", 1_000.0 + 60.0 * n, priority=PriorityClass.LOW) for n in range(4)]
    other = [hurried("o", 1_200.0, pool="q")]
    assert read() == {*normal[:3], *low[:3], *other}


def test_a_deadline_that_does_not_press_yet_is_in_nobodys_way() -> None:
    make_pool("p")
    hurried("calm", 600.0, duration_hint_s=1.0)
    long = hurried("long", 1_000.0)
    assert read() == {long}, "what takes long begins to press early"
