"""What people are told about a task that does not run."""

import pytest

from scheduler.policy.explain import (
    POSITION_MAX,
    LaneAhead,
    Need,
    Reason,
    Surroundings,
    WaitingTask,
    explain,
    explain_pool,
    position,
)
from scheduler.policy.states import TERMINAL, TaskState
from scheduler.policy.types import PriorityClass, ResourceId, ResourceKind, ResourceView, TenantId, TenantView

NOW = 1_800_000_000.0
HIGH, NORMAL, LOW = PriorityClass.HIGH, PriorityClass.NORMAL, PriorityClass.LOW


def task(state: TaskState = TaskState.READY, **changes: object) -> WaitingTask:
    fields: dict[str, object] = {
        "state": state,
        "tenant": "acme",
        "attempts": 0,
        "max_attempts": 3,
        "due_at": None,
        "needs": (),
        **changes,
    }
    return WaitingTask(**fields)  # type: ignore[arg-type]  # a builder


def around(**changes: object) -> Surroundings:
    fields: dict[str, object] = {
        "now": NOW,
        "pool": "llm",
        "paused_by": None,
        "pause_reason": "",
        "tenant_suspended": False,
        "slots": 4,
        "running": 0,
        "free_slots": 4,
        "ahead": 0,
        **changes,
    }
    return Surroundings(**fields)  # type: ignore[arg-type]  # a builder


def bucket(
    level: float, *, rate: float = 10.0, burst: float = 100.0, blocked_until: float | None = None
) -> ResourceView:
    return ResourceView(
        id=ResourceId(1),
        kind=ResourceKind.TOKEN_BUCKET,
        level=level,
        level_at=NOW,
        rate=rate,
        burst=burst,
        blocked_until=blocked_until,
    )


def semaphore(free: int, permits: int) -> ResourceView:
    return ResourceView(id=ResourceId(2), kind=ResourceKind.SEMAPHORE, level=free, level_at=NOW, permits=permits)


def only(found: tuple[Reason, ...]) -> Reason:
    assert len(found) == 1
    return found[0]


def test_nothing_in_the_way_is_said_too() -> None:
    assert only(explain(task(), around())).code == "next"


def test_every_reason_that_holds_is_given_in_the_order_of_the_gates() -> None:
    needs = (Need("openai", 5.0, bucket(1.0)), Need("gpu", 1.0, semaphore(0, 2)))
    found = explain(
        task(needs=needs),
        around(paused_by="ada", pause_reason="provider is down", tenant_suspended=True, running=4, ahead=7),
    )
    assert [reason.code for reason in found] == [
        "pool_paused",
        "tenant_suspended",
        "resource",
        "resource",
        "no_free_slot",
        "behind",
    ]
    assert found[0].text == "The pool llm was paused by ada: provider is down"
    assert found[2].text == "It needs 5 of openai, which has 1; enough is back in less than a second."
    next_at = pytest.approx(NOW + 0.4)
    assert found[2].detail == {"resource": "openai", "needed": 5.0, "available": 1.0, "next_at": next_at}
    assert found[3].text == "It needs 1 of gpu, and 0 are free: others hold the rest."
    assert found[5].text == "About 7 tasks go first in the pool llm."


@pytest.mark.parametrize(
    ("view", "says"),
    [
        (bucket(0.0, burst=0.0), "which is paused: its limit is 0."),
        (bucket(50.0, blocked_until=NOW + 5), "the provider asked us to stay away until 2027-01-15 08:00:05 UTC."),
        (bucket(0.0, rate=0.05), "enough is back in 100 s."),
        (bucket(0.0, rate=0.01), "enough is back in 8 min."),
        (bucket(0.0, rate=0.0001), "enough is back in 14 h."),
        (bucket(0.0, rate=0.0), "0 are free"),
    ],
)
def test_a_limit_says_what_it_lacks_and_when_it_is_back(view: ResourceView, says: str) -> None:
    reason = only(explain(task(needs=(Need("openai", 5.0, view),)), around()))
    assert reason.code == "resource"
    assert says in reason.text


def test_a_limit_that_suffices_is_no_reason() -> None:
    assert only(explain(task(needs=(Need("openai", 5.0, bucket(50.0)),)), around())).code == "next"


def test_a_pause_without_a_name_or_a_reason_is_still_a_sentence() -> None:
    assert only(explain(task(), around(paused_by=""))).text == "The pool llm was paused."


@pytest.mark.parametrize(
    ("changes", "code", "says"),
    [
        ({"free_slots": None}, "no_worker", "Is an engine running?"),
        ({"free_slots": 0}, "no_free_slot", "All slots that workers offer"),
        ({"running": 4}, "no_free_slot", "All 4 slots of the pool llm are taken."),
        ({"ahead": 1}, "behind", "About one task goes first"),
        ({"ahead": POSITION_MAX}, "behind", "10000 or more tasks go first"),
    ],
)
def test_slots_and_the_order(changes: dict[str, object], code: str, says: str) -> None:
    reason = only(explain(task(), around(**changes)))
    assert reason.code == code
    assert says in reason.text


def test_a_task_that_waits_for_a_time_says_which() -> None:
    scheduled = only(explain(task(TaskState.SCHEDULED, due_at=NOW + 90.0), around()))
    assert (scheduled.code, scheduled.detail) == ("scheduled_until", {"due_at": NOW + 90.0, "in_s": 90.0})
    assert scheduled.text == "It is to start at 2027-01-15 08:01:30 UTC, in 90 s."
    retrying = only(explain(task(TaskState.RETRYING, due_at=NOW + 3, attempts=2, last_failure="HTTP 500"), around()))
    assert retrying.code == "retry_at"
    assert retrying.text.endswith("in 3 s. Attempt 2 failed: HTTP 500")
    silent = only(explain(task(TaskState.RETRYING, attempts=1), around()))
    assert silent.text.endswith("in less than a second.")
    assert only(explain(task(TaskState.BLOCKED), around())).code == "blocked_on"


def test_a_pause_is_told_beside_the_time() -> None:
    found = explain(task(TaskState.SCHEDULED, due_at=NOW + 9), around(paused_by="ada"))
    assert [reason.code for reason in found] == ["scheduled_until", "pool_paused"]


def test_a_running_task_says_so() -> None:
    reason = only(explain(task(TaskState.RUNNING, attempts=2), around()))
    assert (reason.code, reason.text) == ("running", "It runs now: attempt 2 of at most 3.")


@pytest.mark.parametrize("state", sorted(TERMINAL))
def test_an_ended_task_says_how_it_ended(state: TaskState) -> None:
    reason = only(explain(task(state, last_failure="HTTP 400"), around()))
    assert reason.code == state.value
    assert reason.text.startswith("It ")
    assert ("HTTP 400" in reason.text) == (state in (TaskState.FAILED, TaskState.DEAD_LETTERED))


def lane(priority: PriorityClass, waiting: int, head_score: float, *, same_tenant: bool = False) -> LaneAhead:
    return LaneAhead(priority, same_tenant, waiting, head_score)


@pytest.mark.parametrize(
    ("ahead_in_lane", "lanes", "expected"),
    [
        (0, [], 0),
        (3, [], 3),
        (0, [lane(HIGH, 500, 1000.0)], 500),
        (0, [lane(HIGH, 500, 90.0)], 0),
        (0, [lane(NORMAL, 500, 200.0)], 1),
        (0, [lane(NORMAL, 500, 50.0)], 0),
        (9, [lane(NORMAL, 500, 50.0)], 18),
        (9, [lane(NORMAL, 2, 50.0)], 11),
        (0, [lane(NORMAL, 500, 200.0, same_tenant=True)], 1),
        (0, [lane(NORMAL, 500, 50.0, same_tenant=True)], 0),
        (2, [lane(LOW, 500, 5000.0)], 5),
        (9_999, [lane(HIGH, 500, 1000.0)], POSITION_MAX),
    ],
)
def test_the_position_counts_who_goes_first(ahead_in_lane: int, lanes: list[LaneAhead], expected: int) -> None:
    assert position(NORMAL, 100.0, ahead_in_lane, lanes) == expected


SHORT = Reason("resource", "The limit openai is short.")


@pytest.mark.parametrize(
    ("surroundings", "waiting", "short", "codes"),
    [
        ({}, 0, None, ["idle"]),
        ({"paused_by": "ada"}, 0, None, ["pool_paused"]),
        ({}, 3, None, ["next"]),
        ({}, 3, SHORT, ["resource"]),
        ({"paused_by": "ada", "running": 4}, 3, SHORT, ["pool_paused", "resource", "no_free_slot"]),
        ({"free_slots": None}, 3, None, ["no_worker"]),
        ({"slots": 0}, 3, None, ["no_free_slot"]),
    ],
)
def test_a_pool_names_all_that_holds_it(
    surroundings: dict[str, object], waiting: int, short: Reason | None, codes: list[str]
) -> None:
    assert [reason.code for reason in explain_pool(around(**surroundings), waiting, short)] == codes


def test_a_pool_without_slots_says_so() -> None:
    assert explain_pool(around(slots=0), 1, None)[0].text == "The pool llm has no slots at the moment."


@pytest.mark.parametrize(
    ("limits", "codes", "text"),
    [
        (
            {"start_rate": 5.0, "start_burst": 5.0, "start_level": 0.0},
            ["tenant_start_rate"],
            "is due in less than a second",
        ),
        ({"start_rate": 0.0}, ["tenant_start_rate"], "its limit is 0"),
        (
            {"max_in_flight": 3, "in_flight": 3},
            ["tenant_in_flight"],
            "3 tasks of the tenant acme run, and no more than 3 may",
        ),
        (
            {"start_rate": 1.0, "start_level": 0.0, "max_in_flight": 0},
            ["tenant_start_rate", "tenant_in_flight"],
            "may start 1 tasks a second",
        ),
        ({"max_in_flight": 3, "in_flight": 2}, ["next"], "Nothing holds it back"),
        ({}, ["next"], "Nothing holds it back"),
    ],
)
def test_a_tenants_own_limits_are_named(limits: dict[str, float], codes: list[str], text: str) -> None:
    view = TenantView(TenantId(1), start_level_at=NOW, **limits)  # type: ignore[arg-type]  # a builder
    found = explain(task(), around(limits=view))
    assert [reason.code for reason in found] == codes
    assert text in found[0].text


@pytest.mark.parametrize("state", [TaskState.READY, TaskState.SCHEDULED, TaskState.RETRYING, TaskState.BLOCKED])
def test_a_task_that_may_come_too_late_says_when(state: TaskState) -> None:
    reason = explain(task(state, due_at=NOW + 5.0, start_by=NOW + 30.0), around())[-1]
    assert (reason.code, reason.detail["start_by_at"]) == ("start_by", NOW + 30.0)
    assert "in 30 s" in reason.text


@pytest.mark.parametrize("state", [TaskState.MISSED, TaskState.FAILED])
def test_one_that_came_too_late_says_by_when_it_had_to_start(state: TaskState) -> None:
    assert "it had not started by 2027-01-15 08:00:00 UTC" in only(explain(task(state, start_by=NOW), around())).text
    after = explain(task(TaskState.FAILED, start_by=NOW, last_failure="it broke"), around())
    assert "it broke" in only(after).text


@pytest.mark.parametrize(
    ("held", "said"),
    [
        (1, "The free slot of the pool llm is kept for a fixed start at 2027-01-15 08:00:20 UTC, in 20 s."),
        (2, "The free slot of the pool llm is kept for fixed starts, the first at 2027-01-15 08:00:20 UTC, in 20 s."),
    ],
)
def test_a_slot_that_is_kept_for_a_fixed_start_is_named(held: int, said: str) -> None:
    kept = around(running=3, free_slots=1, held=held, held_for=NOW + 20.0)
    (reason,) = explain(task(), kept)
    assert (reason.code, reason.text) == ("slot_held", said)
    assert reason.detail["starts_at"] == NOW + 20.0
    assert explain_pool(kept, 1, None)[0].code == "slot_held"


def test_slots_beyond_those_that_are_kept_are_free() -> None:
    assert explain(task(), around(running=2, free_slots=2, held=1, held_for=NOW))[0].code == "next"
    assert explain(task(), around(running=4, free_slots=0, held=1, held_for=NOW))[0].code == "no_free_slot"
    (both,) = explain(task(), around(running=2, free_slots=2, held=2, held_for=NOW))
    assert both.text.startswith("The 2 free slots of the pool llm are kept")
