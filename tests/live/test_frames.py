"""Frames: what is sent is what changed, and nothing that belongs to one viewer is ever in them."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import pytest

from scheduler.live.audience import is_for_tenant
from scheduler.live.board import EMPTY, read_board
from scheduler.live.frames import Frame, Key, beat, opening, out_of_band
from scheduler.live.pages import LIVE_PAGES, OF_A_TENANT, SCOPED, draw_page, is_live
from scheduler.policy.types import BudgetId, TenantId
from scheduler.reads.money import budget_of
from scheduler.reads.standings import TenantStanding
from scheduler.store.accounts import BudgetRow
from tests.live import sample

OVERVIEW = Key("overview")
KEYS = [Key(page, "llm" if page in SCOPED else "") for page in LIVE_PAGES]
XSS = [
    '"><script>alert(1)</script>',
    "<img src=x onerror=alert(1)>",
    "{{ 7*7 }}{% csrf_token %}",
    "' hx-get='/x' data-x='",
]


def draw(key: Key = OVERVIEW, seq: int = 1000, **changes: Any) -> Frame:
    return draw_page(key, read_board(seq, sample.AS_OF_S + seq - 1000, sample.body(seq, **changes)))


def standing(slug: str) -> TenantStanding:
    """A tenant that has spent 2.50 of 10 dollars."""
    row = BudgetRow(
        tenant=TenantId(1),
        slug=slug,
        time_zone="UTC",
        version=1,
        monthly=10 * 10**9,
        alert_at=(0.8,),
        success_target=None,
        after=None,
        budget=BudgetId(1),
        limit=10 * 10**9,
        spent=2_500_000_000,
        reserved=0,
        period_start=sample.AS_OF_S - 86_400,
        period_end=sample.AS_OF_S + 86_400,
        top_up=0,
        top_up_until=None,
        burn=None,
        now=sample.AS_OF_S,
    )
    return TenantStanding(budget_of(row), suspended=False, in_flight=3, queued=4)


def ids(html: str) -> list[str]:
    return re.findall(r'\bid="([^"]+)"', html)


@pytest.mark.parametrize("key", KEYS, ids=lambda key: key.page)
def test_ids_are_unique_on_a_page(key: Key) -> None:
    found = ids(draw(key).html)
    assert len(found) == len(set(found))


OF_A_BOARD = [key for key in KEYS if key.page not in {"still", "counts", *OF_A_TENANT}]


@pytest.mark.parametrize("key", OF_A_BOARD, ids=lambda key: key.page)
def test_an_empty_system_and_no_snapshot_are_different_pages(key: Key) -> None:
    quiet = draw_page(key, read_board(5, sample.AS_OF_S, sample.quiet_body()))
    never = draw_page(key, EMPTY)
    assert quiet.html != never.html


def test_a_changed_number_sends_its_element_and_nothing_else() -> None:
    before = draw()
    pools = sample.body()["pools"]
    pools[0]["running"] += 1
    after = draw(pools=pools)
    assert len(ids(after.since(before))) == 1
    assert "189" in after.since(before)


def test_an_unchanged_board_sends_nothing() -> None:
    assert draw().since(draw()) == ""


def test_a_new_row_sends_its_table_once() -> None:
    before, after = draw(), draw(pools=[*sample.body()["pools"], sample.pool("brand-new")])
    sent = after.since(before)
    assert sent.count('id="pools"') == 1
    assert "brand-new" in sent
    found = ids(sent)
    assert len(found) == len(set(found))


def test_what_is_sent_turns_the_old_page_into_the_new_one() -> None:
    before, after = draw(seq=1000), draw(seq=1007)
    shown = dict(before.fragments)
    for fragment in after.fragments.values():
        if fragment.html in after.since(before):
            shown[fragment.id] = fragment
    assert {key: each.own for key, each in shown.items()} == {key: each.own for key, each in after.fragments.items()}


def test_a_joiner_gets_what_its_page_lacks() -> None:
    frame, later = draw(seq=1000), draw(seq=1001)
    assert opening(frame, seq=1000, shape=frame.shape) == []
    assert frame.shape == later.shape
    leaves = opening(later, seq=1000, shape=frame.shape)
    assert len(leaves) > 10
    assert not any("<section" in leaf for leaf in leaves)
    assert opening(later, seq=1000, shape="other") == [later.html, *later.beside]
    assert opening(later, seq=None, shape="") == [later.html, *later.beside]


@pytest.mark.parametrize("key", KEYS, ids=lambda key: key.page)
def test_every_message_parses_as_one_body(key: Key) -> None:
    """A lone table part would be dropped by the browser's parser."""
    for fragment in draw(key).fragments.values():
        assert not re.match(r"<(td|th|tr|tbody|thead|caption|col)\b", fragment.html)


@pytest.mark.parametrize("key", KEYS, ids=lambda key: key.page)
def test_frames_know_no_viewer(key: Key) -> None:
    html = draw(key).html
    for forbidden in ("csrf", "<form", "<input", "<button", "<select", "style=", "<script", "onclick", "hx-"):
        assert forbidden not in html


def test_counts_stand_beside_the_page_and_only_where_nobody_is_bound() -> None:
    tally = {"runs": 0, "dead": 1000, "operations": 2}
    counted = draw(Key("counts"), tally=tally)
    assert "999+" in "".join(counted.beside)
    assert counted.since(draw(Key("counts"), tally={**tally, "dead": 7})).count("<b") == 1
    assert "999+" not in counted.html
    assert draw(Key("still"), tally=tally).beside == draw(Key("own", "acme"), tally=tally).beside == []


def test_a_tenants_frames_hold_nothing_of_anybody_else() -> None:
    """Every page that somebody who is bound to a tenant may watch, drawn from a busy board."""
    board = replace(read_board(1000, sample.AS_OF_S, sample.body()), tenant=standing("acme"))
    keys = [Key(page, scope) for page in LIVE_PAGES for scope in ("", "acme", "globex", "llm")]
    allowed = [key for key in keys if is_for_tenant(key, "acme")]
    assert allowed == [Key("own", "acme"), Key("still")]
    others = ["globex", "llm", "openai", "engine-7f3a", "tally-"]
    for key in allowed:
        frame = draw_page(key, board)
        sent = "".join([frame.html, *frame.beside, *frame.leaves()])
        assert [name for name in others if name in sent] == []
    assert "$7.50" in draw_page(Key("own", "acme"), board).html


@pytest.mark.parametrize("evil", XSS)
def test_text_from_outside_stays_text(evil: str) -> None:
    pause = {"by": evil, "reason": evil, "at": 1.0}
    bound = {"code": evil, "resource": evil, "text": evil}
    frame = draw(
        pools=[
            sample.pool(evil, pause=pause, state="paused", bound_by=bound, executor=evil),
            sample.pool("llm", bound_by=bound),
        ],
        resources=[sample.bucket(evil, kind=evil)],
        failures=[sample.failure(1, message=evil, tenant=evil, pool=evil, kind=evil, **{"class": evil})],
        workers=[sample.worker(evil, pools=[evil])],
    )
    assert "<script" not in frame.html
    assert "<img" not in frame.html
    assert " hx-get='" not in frame.html
    if "{{" in evil:
        assert evil in frame.html


def test_a_beat_is_small() -> None:
    assert len(beat(draw(seq=10**15), 10**7)) <= 200


def test_frames_stay_within_their_budget() -> None:
    pools = [sample.pool(f"pool-{n:03}", waiting={"critical": n, "high": n, "normal": n, "low": n}) for n in range(300)]
    moved = [{**pool, "running": pool["running"] + 1} for pool in pools]
    before, after = draw(Key("pools"), 1000, pools=pools), draw(Key("pools"), 1001, pools=moved)
    assert len(after.since(before)) < 32_000
    assert "200 more pools are not shown" in after.html
    overview = draw(seq=1003).since(draw(seq=1002))
    assert len(overview) < 2_000


def test_polling_asks_for_each_top_level_element_by_id() -> None:
    html = out_of_band(['<p id="a">x <b id="inner"></b></p>', '<p class="k" id="b"></p>'])
    assert html == '<p hx-swap-oob="true" id="a">x <b id="inner"></b></p><p class="k" hx-swap-oob="true" id="b"></p>'


@pytest.mark.parametrize(
    ("key", "live"),
    [
        (Key("overview"), True),
        (Key("overview", "x"), False),
        (Key("pool", "llm"), True),
        (Key("pool"), False),
        (Key("pool", "x" * 201), False),
        (Key("secrets"), False),
    ],
)
def test_only_known_pages_with_a_fitting_scope_are_live(key: Key, live: bool) -> None:
    assert is_live(key) is live
