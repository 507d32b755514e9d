"""Names every live page, the template that draws it, and what that template is given."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from scheduler.live import drawing, limit, promise, rows, tenant, wording
from scheduler.live.attention import headline, needs_attention
from scheduler.live.audience import OWN, STILL
from scheduler.live.board import CLASSES, Board, WorkerView
from scheduler.live.frames import Frame, Key
from scheduler.live.render import draw
from scheduler.live.standing import Standing
from scheduler.live.workforce import worker_rows, workers_by_pool

ROWS_ON_OVERVIEW_MAX: Final = 12
ROWS_MAX: Final = 100
PROMISES_ON_OVERVIEW_MAX: Final = 6
SCOPE_CHARS_MAX: Final = 200
OF_A_TENANT: Final = frozenset({"tenant", OWN})
"""Pages about one tenant, which is read for them besides the board."""
SCOPED: Final = frozenset({"pool", "task", "resource"}) | OF_A_TENANT
"""Pages about one pool, limit or tenant, named by their scope."""
COUNTS: Final = Key("counts")
"""The live body of a page on which only the counts in the navigation move."""


@dataclass(frozen=True, slots=True)
class LivePage:
    """A template under ``templates/live/`` and the function from a board and a scope to its values.

    `counts`: the navigation counts beside it, over all tenants. No page that is for tenants has them.
    """

    template: str
    values: Callable[[Board, str], Mapping[str, Any]]
    counts: bool = True


def draw_page(key: Key, board: Board) -> Frame:
    """The frame of a live page; `KeyError` for a page that does not exist."""
    page = LIVE_PAGES[key.page]
    beside = "live/_tally.html" if page.counts else ""
    return draw(key, board, page.template, page.values(board, key.scope), beside=beside)


def is_live(key: Key) -> bool:
    """Whether somebody may watch this: a known page, with a scope exactly when the page is about one thing."""
    return key.page in LIVE_PAGES and len(key.scope) <= SCOPE_CHARS_MAX and (key.page in SCOPED) == bool(key.scope)


def _overview(board: Board, _scope: str) -> dict[str, Any]:
    notices = needs_attention(board)
    chart = _attempts(board)
    return {
        "notices": notices,
        "headline": headline(notices),
        "figures": rows.overview_figures(board),
        **_pool_table(board, ROWS_ON_OVERVIEW_MAX),
        **_resource_table(board, ROWS_ON_OVERVIEW_MAX),
        **_promise_table(board, PROMISES_ON_OVERVIEW_MAX, targets_only=True),
        "chart": chart,
        "chart_half": chart.top / 2 if chart else None,
        "failed_per_s": board.totals.failed_per_min / 60,
        "failures": board.failures,
        "burn": wording.dollars(board.spending.burn),
        "spenders": rows.spender_rows(board),
        **_worker_table(board.workers),
    }


def _pools(board: Board, _scope: str) -> dict[str, Any]:
    table = _pool_table(board, ROWS_MAX)
    return {**table, "sections": rows.pool_sections(table["pools"])}


def _resources(board: Board, _scope: str) -> dict[str, Any]:
    return _resource_table(board, ROWS_MAX)


def _resource(board: Board, name: str) -> dict[str, Any]:
    row = next((row for row in rows.resource_rows(board) if row.resource.name == name), None)
    if row is None:
        return {"row": None}
    says = limit.state_sentence(row.resource, board.as_of_s or 0.0)
    return {"row": row, "says": says, "figures": limit.limit_figures(board, row.resource)}


def _slo(board: Board, _scope: str) -> dict[str, Any]:
    return _promise_table(board, ROWS_MAX)


def _pool(board: Board, name: str) -> dict[str, Any]:
    pool = board.pool(name)
    if pool is None:
        return {"row": None}
    row = rows.pool_row(pool, pool.waiting)
    waited_for = pool.bound.resource if pool.bound else None
    return {
        "row": row,
        "figures": rows.pool_figures(row),
        "classes": rows.class_rows(pool),
        "resources": [row for row in rows.resource_rows(board) if row.resource.name == waited_for],
        "failures": [failure for failure in board.failures if failure.pool == name],
        **_worker_table([worker for worker in board.workers if name in worker.pools or not worker.pools]),
    }


def _task(board: Board, pool: str) -> dict[str, Any]:
    """What lives on a task's page: the pool that it waits in, named by the scope."""
    found = board.pool(pool)
    return {"row": None if found is None else rows.pool_row(found, found.waiting)}


def _workers(board: Board, _scope: str) -> dict[str, Any]:
    """What pools have of workers, those that lack any first."""
    found = workers_by_pool(board.pools)
    return {"lines": found[:ROWS_MAX], "lines_left": max(len(found) - ROWS_MAX, 0)}


def _tenant(board: Board, _scope: str) -> dict[str, Any]:
    return {} if board.tenant is None else tenant.values_of(board.tenant)


def _still(_board: Board, _scope: str) -> dict[str, Any]:
    return {}


LIVE_PAGES: Final[Mapping[str, LivePage]] = {
    "overview": LivePage("live/overview.html", _overview),
    "pools": LivePage("live/pools.html", _pools),
    "pool": LivePage("live/pool.html", _pool),
    "task": LivePage("live/task.html", _task),
    "resources": LivePage("live/resources.html", _resources),
    "slo": LivePage("live/slo.html", _slo),
    "resource": LivePage("live/resource.html", _resource),
    "workers": LivePage("live/workers.html", _workers),
    "tenant": LivePage("live/tenant.html", _tenant),
    OWN: LivePage("live/tenant.html", _tenant, counts=False),
    COUNTS.page: LivePage("live/still.html", _still),
    STILL.page: LivePage("live/still.html", _still, counts=False),
}


def _pool_table(board: Board, rows_max: int) -> dict[str, Any]:
    found = rows.pool_rows(board)
    return {
        "pools": found[:rows_max],
        "sections": [("", found[:rows_max])],
        "pools_left": max(len(found) - rows_max, 0),
        "classes": CLASSES,
    }


def _resource_table(board: Board, rows_max: int) -> dict[str, Any]:
    found = rows.resource_rows(board)
    return {"resources": found[:rows_max], "resources_left": max(len(found) - rows_max, 0)}


def _promise_table(board: Board, rows_max: int, *, targets_only: bool = False) -> dict[str, Any]:
    found = promise.promise_rows(board)
    says = promise.summary(found)
    if targets_only:
        found = [row for row in found if row.standing is not Standing.NO_TARGET]
    return {"promises": found[:rows_max], "promises_left": max(len(found) - rows_max, 0), "promises_say": says}


def _worker_table(workers: Sequence[WorkerView]) -> dict[str, Any]:
    found = worker_rows(workers)
    return {
        "workers": found[:ROWS_ON_OVERVIEW_MAX],
        "workers_left": max(len(found) - ROWS_ON_OVERVIEW_MAX, 0),
        "slots": sum(worker.slots for worker in workers),
        "busy": sum(worker.busy for worker in workers),
    }


def _attempts(board: Board) -> drawing.Chart | None:
    history, seq = board.history, board.seq
    series = {
        "started": drawing.settled(history.started_per_s, seq),
        "succeeded": drawing.settled(history.succeeded_per_s, seq),
        "failed": drawing.settled(history.failed_per_s, seq),
    }
    return drawing.chart(series, board.interval_s)
