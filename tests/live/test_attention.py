"""What needs a person, in which order, and in which words."""

from __future__ import annotations

from typing import Any

from scheduler.live.attention import NOTICES_MAX, Notice, Urgency, headline, needs_attention
from scheduler.live.board import read_board
from tests.live import sample


def notices(**changes: Any) -> list[Notice]:
    calm: dict[str, Any] = {"pools": [], "resources": [], "workers": [sample.worker("engine")]}
    return needs_attention(read_board(9, sample.AS_OF_S, sample.body(**{**calm, **changes})))


def said(**changes: Any) -> list[str]:
    return [f"{notice.urgency.word}: {notice.subject} {notice.says}" for notice in notices(**changes)]


def test_a_calm_board_needs_nobody() -> None:
    assert notices(pools=[sample.pool("llm")], resources=[sample.semaphore("gpu")]) == []
    assert headline([]) == "Nothing needs attention."


def test_a_pause_names_who_and_why() -> None:
    pause = {"by": "mira", "reason": "reindexing", "at": 1_795_000_000.0}
    [notice] = notices(pools=[sample.pool("llm", state="paused", pause=pause)])
    assert (notice.urgency, notice.says, notice.since_s) == (Urgency.PAUSED, "is paused", 1_795_000_000.0)
    assert notice.detail == "by mira · “reindexing” · 52 tasks waiting"


def test_work_without_a_worker_is_urgent() -> None:
    pool = sample.pool("gpu", bound_by={"code": "no_worker", "resource": None, "text": "no worker is connected"})
    assert said(pools=[pool]) == ["Act now: gpu has no worker for 52 waiting tasks"]


def test_no_worker_matters_only_while_something_waits() -> None:
    empty = dict.fromkeys(("critical", "high", "normal", "low"), 0)
    assert said(pools=[sample.pool("gpu", waiting=empty, bound_by={"code": "no_worker"})]) == []


def test_failing_attempts_are_urgent_and_a_stray_failure_is_not() -> None:
    assert said(pools=[sample.pool("llm", failed_per_s=4.0, succeeded_per_s=6.0)]) == [
        "Act now: llm ends 40 % of its tasks in failure"
    ]
    assert said(pools=[sample.pool("llm", failed_per_s=0.02, succeeded_per_s=0.0)]) == []


def test_a_long_wait_is_watched() -> None:
    [notice] = notices(pools=[sample.pool("eval", oldest_waiting_s=400.0)])
    assert (notice.urgency, notice.says) == (Urgency.WATCH, "has kept a task waiting for 6 min 40 s")


def test_a_bottleneck_names_the_pools_it_holds_up() -> None:
    bound = {"code": "resource", "resource": "openai", "text": "openai is empty"}
    pools = [sample.pool("a", bound_by=bound), sample.pool("b", bound_by=bound)]
    assert said(pools=pools, resources=[sample.bucket("openai")]) == ["Watch: openai is the bottleneck of a, b"]


def test_a_full_resource_that_nobody_waits_for_is_no_news() -> None:
    assert said(resources=[sample.bucket("openai", waiting=0)]) == []


def test_a_refusing_provider_is_urgent_only_when_it_lasts() -> None:
    now_s = sample.AS_OF_S
    assert said(resources=[sample.bucket("a", blocked_until=now_s + 9)])[0].startswith(
        "Watch: a is refused by its provider"
    )
    assert said(resources=[sample.bucket("a", blocked_until=now_s + 90)])[0].startswith("Act now")
    assert said(resources=[sample.bucket("a", blocked_until=now_s - 1, waiting=0)]) == []


def test_no_engine_is_urgent_when_work_waits() -> None:
    assert said(workers=[]) == ["Act now: Engines are missing: none is connected"]


def test_an_overloaded_pool_says_what_it_refuses() -> None:
    (one,) = notices(pools=[sample.pool("llm", overload_level=1)])
    assert (one.urgency, one.says, one.detail) == (Urgency.WATCH, "is overloaded", "level 1 · refuses new low work")
    (three,) = notices(pools=[sample.pool("llm", overload_level=3)])
    assert (three.urgency, three.detail) == (Urgency.ACT, "level 3 · refuses new low and normal work")


def test_the_most_urgent_come_first_and_the_list_is_bounded() -> None:
    paused = [sample.pool(f"p{n:02}", state="paused") for n in range(30)]
    found = notices(pools=[*paused, sample.pool("x", bound_by={"code": "no_worker"})])
    assert len(found) == NOTICES_MAX
    assert found[0].subject == "x"


def test_the_headline_moves_with_the_set_and_not_with_the_numbers() -> None:
    one = headline(notices(pools=[sample.pool("eval", oldest_waiting_s=400.0)]))
    two = headline(notices(pools=[sample.pool("eval", oldest_waiting_s=401.0)]))
    assert one == two == "1 thing needs attention: eval."
