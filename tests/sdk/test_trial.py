"""What a client does with an answer, decided without any I/O."""

from __future__ import annotations

import pytest

from scheduler.sdk import ApiError
from scheduler.sdk.remote.trial import Again, Reply, Trial


def trial(method: str = "POST", total_s: float = 10.0) -> Trial:
    return Trial(method, now=100.0, total_s=total_s)


def test_a_success_is_the_end_of_it() -> None:
    assert trial().answered(Reply(202, {}), now=100.0) is None


def test_a_refusal_is_raised_with_what_the_server_said() -> None:
    problem = {"code": "unknown_pool", "detail": "There is no pool.", "errors": [{"loc": ["pool"], "msg": "No."}]}
    with pytest.raises(ApiError) as raised:
        trial().answered(Reply(422, problem), now=100.0)
    error = raised.value
    assert (error.code, error.status, error.retryable, str(error)) == ("unknown_pool", 422, False, "There is no pool.")
    assert error.errors[0]["loc"] == ["pool"]


@pytest.mark.parametrize("body", [None, "<html>", []])
def test_an_answer_that_is_not_ours_is_told_by_its_status(body: object) -> None:
    with pytest.raises(ApiError) as raised:
        trial().answered(Reply(404, body), now=100.0)
    assert raised.value.code == "http_404"


@pytest.mark.parametrize("status", [429, 500, 502, 503, 504])
def test_what_may_succeed_later_is_tried_again_never_before_the_server_says(status: int) -> None:
    again = trial().answered(Reply(status, {}, 3.0), now=100.0)
    assert again is not None
    assert 3.0 <= again.after_s <= 3.5


def test_pauses_are_jittered_and_grow() -> None:
    tries = trial(total_s=1_000.0)
    pauses = [tries.lost("refused", now=100.0, sent=False).after_s for _ in range(40)]
    assert len(set(pauses)) == 40
    assert pauses[0] <= 0.1
    assert max(pauses) <= 5.0
    assert max(pauses[8:]) > 1.0


def test_all_tries_end_within_the_time_given() -> None:
    with pytest.raises(ApiError) as raised:
        trial(total_s=10.0).answered(Reply(429, {"code": "overloaded"}, 60.0), now=100.0)
    assert (raised.value.code, raised.value.retryable, raised.value.retry_after) == ("overloaded", True, 60.0)
    with pytest.raises(ApiError, match="does not answer"):
        trial(total_s=10.0).lost("refused", now=110.0, sent=False)


@pytest.mark.parametrize("sent", [True, False])
def test_an_edit_is_only_repeated_when_it_never_arrived(*, sent: bool) -> None:
    tries = trial("PATCH")
    if sent:
        with pytest.raises(ApiError):
            tries.lost("reset", now=100.0, sent=True)
    else:
        assert isinstance(tries.lost("refused", now=100.0, sent=False), Again)
    with pytest.raises(ApiError):
        tries.answered(Reply(503, {}), now=100.0)
