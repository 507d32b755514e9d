"""Random worlds hold every promise. SEED=N plays one, SEEDS=A:B a range."""

from __future__ import annotations

import os

import pytest

from tests.simulation.promises import Broken
from tests.simulation.simulation import Failed, play
from tests.simulation.story import shrink, tell
from tests.simulation.worlds import Scale

SEEDS_PER_TEST = 20


def _ranges() -> list[range]:
    if "SEED" in os.environ:
        seed = int(os.environ["SEED"])
        return [range(seed, seed + 1)]
    first, _, last = os.environ.get("SEEDS", "0:500").partition(":")
    return [
        range(start, min(start + SEEDS_PER_TEST, int(last))) for start in range(int(first), int(last), SEEDS_PER_TEST)
    ]


@pytest.mark.parametrize("seeds", _ranges(), ids=lambda seeds: f"{seeds.start}-{seeds.stop - 1}")
def test_random_worlds_hold_every_promise(seeds: range) -> None:
    for seed in seeds:
        try:
            play(seed)
        except Failed as failed:
            pytest.fail(tell(shrink(seed, Scale(), failed)), pytrace=False)


def test_a_seed_gives_the_same_world_every_time() -> None:
    assert play(3).log == play(3).log


def test_a_failure_is_told_as_a_small_story(monkeypatch: pytest.MonkeyPatch) -> None:
    """A provider that takes nothing makes every world fail; the story is one task long, and without any fault."""
    monkeypatch.setattr("tests.simulation.provider.DUST", -1e12)
    with pytest.raises(Broken) as caught:
        play(5)
    assert isinstance(caught.value, Failed)
    smallest = shrink(5, Scale(), caught.value)
    assert not smallest.scale.faults
    assert smallest.scale.tasks <= 3
    story = tell(smallest)
    assert story.startswith("seed 5: task ")
    assert "submitted" in story
    assert story.endswith(smallest.failed.sentence)
