"""What a task is handed of its parents is bounded, and says what it leaves out."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from scheduler.policy.upstream import Handed, Outcome, hand_over

OUTCOMES = st.builds(
    Outcome,
    name=st.text(max_size=3),
    state=st.sampled_from(["succeeded", "failed", "skipped"]),
    bytes=st.integers(0, 30),
    result=st.none() | st.text(max_size=20),
)


def test_results_are_handed_over_in_order_until_the_size_is_used_up() -> None:
    outcomes = [
        Outcome("a", "succeeded", 4, '"1"'),
        Outcome("b", "succeeded", 9, '"1234567"'),
        Outcome("c", "succeeded", 3, "{}"),
        Outcome("d", "failed", None, None),
        Outcome("e", "succeeded", 1_000, None),
    ]
    assert hand_over(outcomes, bytes_max=8) == [
        Handed("a", "succeeded", '"1"'),
        Handed("b", "succeeded", None, 9),
        Handed("c", "succeeded", "{}"),
        Handed("d", "failed", None),
        Handed("e", "succeeded", None, 1_000),
    ]


@given(st.lists(OUTCOMES, max_size=8), st.integers(0, 60))
def test_never_more_than_the_bound_and_never_a_parent_less(outcomes: list[Outcome], bytes_max: int) -> None:
    handed = hand_over(outcomes, bytes_max=bytes_max)
    assert [(h.name, h.state) for h in handed] == [(o.name, o.state) for o in outcomes]
    assert sum(len(h.result.encode()) for h in handed if h.result is not None) <= bytes_max
    for before, after in zip(outcomes, handed, strict=True):
        assert after.result in (None, before.result)
        assert (after.truncated_bytes is None) == (after.result is not None)
