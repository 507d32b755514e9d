"""What the simulated model says depends on the request alone; how long it takes has a long tail."""

from __future__ import annotations

import math
from random import Random
from statistics import median

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scheduler.demo.provider_sim import content
from scheduler.demo.provider_sim.wire_formats import go_duration, http_date, rfc3339
from scheduler.providers.delays import parse_delay_s, parse_moment


@given(st.text(max_size=200), st.integers(1, 300))
def test_an_answer_has_exactly_the_tokens_it_is_billed_for(prompt: str, tokens: int) -> None:
    text = content.answer_text("sim-small", prompt, tokens)
    assert content.count_tokens(text) == tokens
    assert text == content.answer_text("sim-small", prompt, tokens)


def test_answers_vary_in_length_around_the_median() -> None:
    lengths = [content.answer_tokens("m", f"prompt {number}", median=60, sigma=0.6) for number in range(1000)]
    assert 55 <= median(lengths) <= 65
    assert min(lengths) < 20
    assert max(lengths) > 200


def test_latency_is_log_normal_with_a_long_tail_and_repeats_from_its_seed() -> None:
    def draw(seed: int) -> list[float]:
        chance = Random(seed)
        return [content.latency_s(chance, median_s=0.4, sigma=0.5, max_s=60.0) for _ in range(4000)]

    first = sorted(draw(3))
    assert median(first) == pytest.approx(0.4, rel=0.05)
    assert first[int(0.99 * len(first))] == pytest.approx(0.4 * math.exp(0.5 * 2.326), rel=0.15)
    assert sorted(draw(3)) == first
    assert content.latency_s(Random(1), median_s=99.0, sigma=0.0, max_s=2.0) == 2.0


@given(st.text(max_size=50), st.integers(1, 100))
def test_a_vector_is_of_unit_length_and_always_the_same(text: str, dimensions: int) -> None:
    vector = content.embedding("m", text, dimensions)
    assert len(vector) == dimensions
    assert math.hypot(*vector) == pytest.approx(1.0)
    assert vector == content.embedding("m", text, dimensions)


def test_a_prompt_is_all_text_of_its_messages() -> None:
    messages: list[object] = [
        {"role": "system", "content": "a"},
        {"role": "user", "content": [{"type": "text", "text": "b"}, {"type": "image_url", "image_url": {}}]},
        {"role": "assistant", "content": None},
    ]
    assert content.prompt_text(messages) == "a\nb"


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "0s"),
        (-1, "0s"),
        (0.012, "12ms"),
        (1, "1s"),
        (7.66, "7.66s"),
        (360, "6m0s"),
        (179.56, "2m59.56s"),
        (3600, "1h0m0s"),
    ],
)
def test_go_durations_are_spelt_as_go_spells_them(seconds: float, text: str) -> None:
    assert go_duration(seconds) == text


@given(st.floats(0, 86_000))
def test_what_is_spelt_here_is_read_there(seconds: float) -> None:
    read = parse_delay_s(go_duration(seconds), now=0.0)
    assert read is not None
    assert seconds - 1e-6 <= read <= seconds + 0.002
    assert parse_moment(rfc3339(1_800_000_000.25)) == 1_800_000_000.25
    assert parse_moment(http_date(1_800_000_000)) == 1_800_000_000
