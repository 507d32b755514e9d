"""Schedules under running engines: on time, once, and through a change of leader."""

from __future__ import annotations

from itertools import pairwise

from scheduler.models import Occurrence, Task
from scheduler.policy.admission import Submission
from scheduler.policy.schedules import CatchUp, Overlap
from scheduler.services.changes import Author
from scheduler.services.schedules import Declared, add_schedule, described
from tests.conftest import LiveDatabase
from tests.engine.running import engine
from tests.support.waiting import wait_until
from tests.support.work import make_pool, make_tenant


def test_two_engines_and_a_change_of_leader_run_each_second_once(live_database: LiveDatabase) -> None:
    tenant = make_tenant()
    make_pool()
    template = described(Submission(payload="1", pool="p"))
    add_schedule(tenant, "s", Declared("* * * * * *", "UTC", template, Overlap.ALLOW, CatchUp.ALL), Author("test"))
    handlers = {"p": lambda _ctx, payload: payload}
    with engine(handlers) as second:
        with engine(handlers) as first:
            wait_until(lambda: Occurrence.objects.count() >= 2, what="two occurrences")
            leader = first if first.engine.leading else second
            leader.stop()
        before = Occurrence.objects.count()
        if leader is second:
            with engine(handlers):
                wait_until(lambda: Occurrence.objects.count() >= before + 2, what="the next leader's occurrences")
        else:
            wait_until(lambda: Occurrence.objects.count() >= before + 2, what="the next leader's occurrences")
    nominals = list(Occurrence.objects.order_by("nominal_at").values_list("nominal_at", flat=True))
    assert len(nominals) == len(set(nominals)) == Task.objects.count()
    gaps = {(later - earlier).total_seconds() for earlier, later in pairwise(nominals)}
    assert gaps == {1.0}
