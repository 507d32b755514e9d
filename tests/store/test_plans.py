"""The hot statements use the indexes that were made for them, whatever the statistics say."""

from __future__ import annotations

from typing import Any

import pytest
from django.db import connection

from scheduler.policy.types import TenantId
from scheduler.store import queries
from scheduler.store.submit import load_terms
from scheduler.store.worker_pages import FIRST_ID
from tests.support.work import make_pool, make_tenant, submit_tasks

pytestmark = pytest.mark.django_db

LANE = {"pools": "{1}", "priorities": "{2}", "tenants": "{1}", "demands": "{1}", "needed": "{1}", "width": 10}
_FOLLOWERS = "parents conditions mets fate_conditions fate_mets edge_children edge_places edge_mets own locked"
FOLLOWERS: dict[str, Any] = dict.fromkeys(_FOLLOWERS.split(), "{}")


CONTROL = {"fresh_s": 15.0, "held_after_s": 60.0, "held_ahead_s": 60.0, "mark": 1, "folds": 0}
CONTROL |= {"pressing_max": 100, "window_min_s": 5.0}


WAITS: dict[str, Any] = {"labels": "{}", "each_minute_max": 10, "running_max": 10}
RUNS: dict[str, Any] = {"states": ["active"], "above": 0, "below": 9, "rows_max": 10}
WORKERS: dict[str, Any] = {
    "after_name": "",
    "after_id": FIRST_ID,
    "kind": None,
    "pool": None,
    "fresh_s": 3.0,
    "rows_max": 9,
}


def plan_of(file: str, name: str, params: dict[str, Any]) -> str:
    """The plan as dispatch gets it: sequential scans discouraged, as `lock_dispatch` does."""
    queries.run("SELECT set_config('enable_seqscan', 'off', true)")
    return "\n".join(row[0] for row in queries.fetch("EXPLAIN " + queries.load(file)[name], params))


@pytest.fixture(autouse=True)
def many_tasks() -> None:
    tenant = make_tenant()
    make_pool("p")
    for _ in range(3):
        submit_tasks(tenant, 1000, deadline_in_s=60.0)
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE task")


WALKED: list[tuple[str, str, dict[str, Any], str]] = [
    ("dispatch.sql", "read_control", CONTROL, "task_ready_by_pressure"),
    ("dispatch.sql", "read_all_lanes", {}, "task_ready_by_lane"),
    ("dispatch.sql", "read_control", CONTROL, "task_due"),
    ("dispatch.sql", "read_control", CONTROL, "task_start_by"),
    ("dispatch.sql", "read_control", CONTROL, "fixed_start_near"),
    ("missing.sql", "end_overdue", {"tasks_max": 10}, "task_start_by"),
    ("dispatch.sql", "read_lanes", LANE, "task_ready_by_lane"),
    ("dispatch.sql", "read_lanes", LANE, "task_ready_by_deadline"),
    ("promote.sql", "promote_due", {"tasks_max": 10}, "task_due"),
    ("overview.sql", "oldest_waiting", {}, "task_ready_by_lane"),
    ("bounds.sql", "lock_newest_of_lowest", {"pool": 1, "least": 1, "tasks_max": 5}, "task_ready_by_lane"),
    ("bounds.sql", "lock_oldest_low", {"pool": 1, "low": 3, "tasks_max": 5}, "task_ready_by_lane"),
    ("overview.sql", "recent_failures", {"rows_max": 10}, "attempt_failures"),
    ("waits.sql", "observed_waits", WAITS, "attempt_by_end"),
    ("forecast.sql", "read_ended", {"since": 0.0, "rows_max": 10}, "attempt_by_end"),
    ("run_pages.sql", "list_older", RUNS, "run_by_state"),
    ("run_pages.sql", "list_newer_of_tenant", RUNS | {"tenant": 1}, "run_by_tenant_state"),
    ("run_pages.sql", "newest_before", {"age_s": 60.0}, "run_by_age"),
    ("run_pages.sql", "run_figures", {"count_max": 10, "lately_s": 60.0}, "run_ended"),
    ("worker_pages.sql", "list_workers", WORKERS, "worker_by_name"),
    ("tasks.sql", "attempts_of_task", {"task": 1, "rows_max": 10}, "attempt_pkey"),
    ("graphs.sql", "lock_followers", FOLLOWERS, "task_edge_open"),
    ("graphs.sql", "decide_followers", FOLLOWERS, "task_edge_open"),
    ("graphs.sql", "read_unlinked", {"children": None, "edges_max": 10}, "task_edge_unlinked"),
    ("groups.sql", "waiting_members", {"groups": "{1}"}, "task_payload_by_group"),
    ("groups.sql", "tell_members", {"groups": "{1}"}, "task_payload_by_group"),
    ("groups.sql", "read_closing", {"groups_max": 10}, "task_group_closing"),
]
"""File, name and parameters of a statement, and the index that it is to walk."""


def test_statements_walk_their_indexes() -> None:
    plans = [(f"{file} {name}", index, plan_of(file, name, params)) for file, name, params, index in WALKED]
    assert {f"{what}: {plan}" for what, index, plan in plans if index not in plan} == set()
    assert {f"{what}: {plan}" for what, _, plan in plans if "Seq Scan on task t" in plan} == set()


@pytest.mark.parametrize(("name", "params"), [("read_control", CONTROL), ("read_lanes", LANE)])
def test_from_what_is_set_aside_one_comes_to_its_tasks_and_not_the_other_way_round(
    name: str, params: dict[str, Any]
) -> None:
    """Little is ever set aside, and its table is never analysed: the optimizer takes it for the longer one."""
    plan = plan_of("dispatch.sql", name, params)
    assert "Index Cond: (id = a.task_id)" in plan, plan


def test_claiming_and_settling_find_tasks_by_id() -> None:
    arrays = dict.fromkeys(("tasks", "attempts", "states", "dues", "spent", "results", "took_s"), "{}")
    plan = plan_of("settle.sql", "apply_settlements", {**arrays, "weight_min": 1e-6})
    assert "task_pkey" in plan, plan
    assert "Seq Scan" not in plan, plan
    names = "tasks workers pools ttls_s timeouts_s resources levels taken tenants tenant_classes values clock_classes"
    names += " reserves held capped budgets wanted"
    names += " clocks credit_pools credit_classes credits quota_tenants quota_levels aside_resources aside_classes"
    arrays = dict.fromkeys(f"{names} aside_tasks aside_amounts probes served_resources served_classes".split(), "{}")
    me = "00000000-0000-0000-0000-000000000000"
    plan = plan_of("dispatch.sql", "start_tasks", {**arrays, "tasks": "{1}", "me": me, "now": 0.0})
    assert "Index Scan using task_pkey on task t" in plan, plan
    assert "Seq Scan on task" not in plan, plan
    assert "task_ready_by_lane" not in plan, "the whole backlog would be read for each plan"


def test_a_submission_looks_up_the_depths_it_needs_and_no_others() -> None:
    params = {"pools": ["p"], "resources": ["r"], "kinds": ["k"], "tenants": [1]}
    lines = plan_of("submit.sql", "read_terms", params).splitlines()
    looks = [line for line in lines if " on waiting_depth" in line]
    assert len(looks) == 2
    assert all("Index Scan using waiting_depth_pkey" in line for line in looks), looks


def test_terms_of_a_submission_are_planned_once_for_a_connection() -> None:
    for n in range(12):
        load_terms({"p"}, ["openai"] * (n % 3), {"python"}, [TenantId(1)])
    (counts,) = queries.fetch(
        "SELECT generic_plans, custom_plans FROM pg_prepared_statements WHERE statement LIKE '%learned_duration d%'"
    )
    assert counts[0] >= 5, counts
