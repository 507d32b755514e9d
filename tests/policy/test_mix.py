"""Which limits a pool's work needs, learned from what waits and runs."""

from scheduler.policy.autoscale import LimitUse
from scheduler.policy.mix import PARTS_MAX, NamedLimit, Part, learn_mix, limit_uses
from scheduler.policy.types import DemandId, ResourceId
from tests.policy.build import bucket, semaphore

FREE, ONE, BOTH = DemandId(1), DemandId(2), DemandId(3)
OPENAI, GPU = ResourceId(1), ResourceId(2)
NEEDS = {FREE: (), ONE: (OPENAI,), BOTH: (OPENAI, GPU)}
LIMITS = {OPENAI: NamedLimit("openai", bucket(rate=10.0, margin=0.1)), GPU: NamedLimit("gpu", semaphore(permits=4))}


def test_amounts_and_shares_by_limit() -> None:
    mix = {FREE: Part(10), ONE: Part(20, (2.0,)), BOTH: Part(10, (5.0, 1.0))}
    gpu, openai = limit_uses(mix, NEEDS, LIMITS)
    assert openai == LimitUse("openai", 3.0, 0.75, per_s=9.0)
    assert gpu == LimitUse("gpu", 1.0, 0.25, permits=4.0)


def test_limits_that_are_gone_and_demands_unheard_of_bound_nobody() -> None:
    assert limit_uses({ONE: Part(20, (2.0,)), DemandId(9): Part(1, (1.0,))}, NEEDS, {}) == ()
    assert limit_uses({}, NEEDS, LIMITS) == ()


def test_the_first_look_counts_whole_and_later_ones_by_their_time() -> None:
    first = learn_mix({}, {ONE: Part(20, (2.0,))}, elapsed_s=0.0)
    assert first == {ONE: Part(20, (2.0,))}
    later = learn_mix(first, {ONE: Part(0, (8.0,)), FREE: Part(10)}, elapsed_s=1.0)
    assert 19 < later[ONE].tasks < 20
    assert 2.0 < later[ONE].amounts[0] < 2.5
    assert 0 < later[FREE].tasks < 1
    assert learn_mix(later, {}, elapsed_s=-5.0) == later


def test_amounts_are_remembered_while_none_is_seen_and_taken_from_the_first_that_is() -> None:
    unseen = learn_mix({ONE: Part(5.0)}, {ONE: Part(5.0, (3.0,))}, elapsed_s=1.0)
    assert unseen[ONE].amounts == (3.0,)
    assert learn_mix(unseen, {ONE: Part(5.0)}, elapsed_s=1.0)[ONE].amounts == (3.0,)


def test_what_comes_no_more_is_forgotten_and_the_rarest_first() -> None:
    assert learn_mix({ONE: Part(5.0, (1.0,))}, {}, elapsed_s=1e6) == {}
    many = {DemandId(n): Part(float(n)) for n in range(1, PARTS_MAX + 50)}
    kept = learn_mix({}, many, elapsed_s=1.0)
    assert len(kept) == PARTS_MAX
    assert DemandId(1) not in kept
