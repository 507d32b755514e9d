"""Rehearsals without their stage: who takes part, what a verdict says, and the service that counts refunds."""

from __future__ import annotations

import io
import socket
import threading
from collections import Counter

import httpx2
import pytest

from scheduler.demo.rehearsal import payments, tickets
from scheduler.demo.rehearsal.campaign_cast import CAMPAIGN_STARTS, SESSIONS, TENANTS, cast, steps
from scheduler.demo.rehearsal.figures import costs, jain
from scheduler.demo.rehearsal.progress import Progress
from scheduler.demo.rehearsal.promises import Promise, Verdict, minutes

KEPT, BROKEN = Promise("it is quick", "0.4 s", kept=True), Promise("it is cheap", "$7 of $5", kept=False)


def test_a_verdict_with_a_broken_promise_is_broken_and_says_which() -> None:
    verdict = Verdict("campaign", "a story", (KEPT, BROKEN), (("requests", "12"),), took_s=71.0)
    assert not verdict.kept
    text = verdict.as_text()
    assert "BROKEN  it is cheap  $7 of $5" in text
    assert "kept    it is quick  0.4 s" in text
    assert text.endswith("1 of 2 promises were broken.")
    told = verdict.as_json()
    assert (told["kept"], told["facts"], told["promises"][1]["kept"]) == (False, {"requests": "12"}, False)


def test_all_kept_is_kept_and_nothing_promised_is_not() -> None:
    assert Verdict("a", "b", (KEPT,), (), 1.0).kept
    assert Verdict("a", "b", (KEPT,), (), 1.0).as_text().endswith("Every promise was kept.")
    assert not Verdict("a", "b", (), (), 1.0).kept
    assert (minutes(59.4), minutes(191.0)) == ("59 s", "3 min 11 s")


def test_figures() -> None:
    assert jain([2.0, 2.0, 2.0]) == pytest.approx(1.0)
    assert jain([1.0, 0.0, 0.0, 0.0]) == pytest.approx(0.25)
    assert jain([0.0, 0.0]) == 0.0
    assert [name for name, _ in costs()] == ["processor seconds", "load of the machine"]


@pytest.mark.parametrize("scale", [0.02, 0.3, 1.0])
def test_the_campaign_comes_all_at_once_and_somebody_falls(scale: float) -> None:
    sessions = cast(scale, seed=3)
    tenants = Counter(session.tenant for session in sessions)
    burst = [session for session in sessions if session.tenant == "t00"]
    assert len(sessions) >= SESSIONS * scale
    assert len(tenants) == max(4, round(TENANTS * scale))
    assert len(burst) <= CAMPAIGN_STARTS
    assert max(s.arrives_s for s in burst) - min(s.arrives_s for s in burst) <= 1.0
    fell = [session for session in sessions if session.dies]
    assert len(fell) >= 2
    assert all(session.refunds and session.tenant != max(tenants) for session in fell)
    equal = [count for slug, count in tenants.items() if slug != "t00"]
    assert max(equal) - min(equal) <= 1
    assert [s.order for s in cast(scale, seed=3)] == [s.order for s in sessions]


def test_the_steps_of_a_session_hang_together() -> None:
    session = next(each for each in cast(1.0, seed=1) if each.refunds and each.misses)
    session.run = 7
    tasks = steps(session)
    keys = {task["key"] for task in tasks}
    assert len(keys) == len(tasks) == 8
    assert all(edge["key"] in keys for task in tasks for edge in task["after"])
    assert {task["run"] for task in tasks} == {7}
    assert [task["kind"] for task in tasks if task.get("effect") == "write"] == ["refund"]
    assert sum(task["payload"].get("fails", False) for task in tasks) == 1
    assert tasks[-1]["kind"] == "answer"


def test_a_day_with_the_new_prompt_to_its_end_would_overrun_its_budget() -> None:
    normal = tickets.normal_usd()
    asked, answered = tickets.DRAFT_TOKENS
    wasteful = normal + tickets.price_usd((asked, answered), tickets.CAPABLE)
    share = tickets.REGRESSION_AT
    assert share * normal + (1 - share) * wasteful > normal * tickets.BUDGET_SLACK > normal


def test_the_payment_service_refunds_a_key_once() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        url = f"http://127.0.0.1:{listener.getsockname()[1]}/refunds"
        threading.Thread(target=payments.serve, args=(listener,), daemon=True).start()
        with httpx2.Client(trust_env=False) as http:
            assert http.post(url, json={"order": "a"}).status_code == 400
            asked = [http.post(url, json={"order": "a"}, headers={"Idempotency-Key": "k"}).json() for _ in range(2)]
            assert asked[0] == asked[1]
            assert http.get(url).json() == {"refunds": 1, "orders": {"a": 1}, "sent_again": 1}


def test_progress_is_silent_without_a_stream_and_one_line_a_step_elsewhere() -> None:
    Progress(None).now("nothing")
    stream = io.StringIO()
    progress = Progress(stream)
    progress.step("starting")
    progress.now("1 of 2")
    progress.now("2 of 2")
    progress.done()
    assert [line.split("s  ")[1] for line in stream.getvalue().splitlines()] == ["starting", "1 of 2"]
