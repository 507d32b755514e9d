"""Reading a snapshot never fails, whatever an older or newer engine wrote into it."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scheduler.live.board import EMPTY, MESSAGE_CHARS_MAX, element_id, read_board
from scheduler.live.frames import Key
from scheduler.live.pages import LIVE_PAGES, draw_page
from tests.live import sample

JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**15), 10**15) | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=10,
)


def test_a_snapshot_is_read_as_written() -> None:
    board = read_board(1000, sample.AS_OF_S, sample.body())
    llm = board.pool("llm")
    assert llm is not None
    assert (llm.waiting, llm.running, llm.slots) == (24 + 96 + 180 + 702 + 1000 % 7, 188, 240)
    assert llm.bound is not None
    assert llm.bound.resource == "openai"
    assert board.totals.failed_per_min == 12.0
    assert len(board.history.started_per_s) == 60
    assert [resource.name for resource in board.resources] == ["openai-concurrency", "openai", "anthropic", "gpu-local"]


def test_what_is_burnt_is_read_to_the_nano_dollar_and_drawn() -> None:
    globex = sample.spender("globex\x07", burn=10**16 + 1, spent=7, limit=10**16 + 3)
    odd = [globex, {"tenant": 5}, "x", sample.spender("acme", burn=1.5, spent=True, limit=-1)]
    board = read_board(7, sample.AS_OF_S, sample.body(spending={"burn": 3 * 10**9, "tenants": odd}))
    assert [(row.tenant, row.burn, row.spent, row.limit) for row in board.spending.spenders] == [
        ("globex", 10**16 + 1, 7, 10**16 + 3),
        ("acme", 0, 0, None),
    ]
    html = draw_page(Key("overview"), board).html
    assert "$3.00 per hour, all tenants" in html
    assert "/ops/tenants/globex/" in html
    assert "Tenants that burn most" not in draw_page(Key("overview"), read_board(8, 0.0, sample.quiet_body())).html


def test_no_snapshot_at_all_is_told_apart_from_an_empty_one() -> None:
    assert not EMPTY.exists
    assert read_board(1, 0.0, sample.quiet_body()).exists


@settings(deadline=None, max_examples=30)
@given(st.dictionaries(st.sampled_from(sorted(sample.body())), JSON))
def test_any_json_draws_every_page(junk: dict[str, Any]) -> None:
    board = read_board(7, sample.AS_OF_S, {**sample.body(), **junk})
    for page in LIVE_PAGES:
        draw_page(Key(page, "llm" if page == "pool" else ""), board)


@pytest.mark.parametrize("field", ["started_per_s", "oldest_waiting_s", "running", "bound_by", "waiting", "name"])
def test_a_pool_with_a_missing_field_is_still_drawn(field: str) -> None:
    pool = sample.pool("llm")
    del pool[field]
    board = read_board(7, sample.AS_OF_S, sample.body(pools=[pool]))
    assert "pools" in draw_page(Key("pools"), board).fragments


def test_control_characters_and_endless_messages_are_cut() -> None:
    failure = sample.failure(1, message="a\x01live\x02b\u202ec\n" + "x" * 1000)
    message = read_board(1, 0.0, {"failures": [failure]}).failures[0].message
    assert message.startswith("a live b c x")
    assert len(message) == MESSAGE_CHARS_MAX
    assert message.endswith("…")


def test_ids_are_safe_and_differ() -> None:
    names = ["a b", "a'b", '"><script>', "日本", "a" * 200, "a" * 199]
    ids = {element_id("p", name) for name in names}
    assert len(ids) == len(names)
    assert all(each.isascii() and each.replace("-", "").isalnum() for each in ids)
