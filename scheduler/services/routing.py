"""Routes work that asks for a capability: at its door, and again while it waits and its model's provider is down.

A task needs at any time what one model needs, so a plan knows nothing of routes. Moving it changes its needs under the
turn to plan, so that no plan holds it to the old ones.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

import orjson
from django.db import transaction

from scheduler.errors import FieldError, Refused
from scheduler.policy.admission import Admitted, Priced, Submission
from scheduler.policy.limits import less_held, limit_at
from scheduler.policy.routes import Option, Prospect, Queued, choose, to_try, wait_s
from scheduler.policy.types import DemandId, ResourceId, TaskId, TenantId
from scheduler.services.pricing import price_rows
from scheduler.services.steps import Needs, demands_of
from scheduler.store import dispatch as dispatch_store
from scheduler.store import overview
from scheduler.store import resources as resource_store
from scheduler.store import routes as store
from scheduler.store import submit as submit_store

MOVES_MAX: Final = 1_000
"""Tasks moved at once: planning waits for as long."""

Item = tuple[TenantId, Submission]


@dataclass(frozen=True, slots=True)
class Routed:
    """Submissions as they are admitted: those that asked for a capability with what the chosen model needs."""

    items: Sequence[Item]
    routings: Mapping[int, store.Routing] = field(default_factory=dict)
    routes: Mapping[int, store.RouteRow] = field(default_factory=dict)
    refusals: Mapping[int, Refused] = field(default_factory=dict)


def route_each(items: Sequence[Item]) -> Routed:
    """Choose a model for each submission that asks for a capability. Nothing is read when none does."""
    wanted = {s.capability for _, s in items if s.capability is not None}
    if not wanted:
        return Routed(items)
    known = {row.capability: row for row in store.load(sorted(wanted))}
    outlook = _Outlook()
    routed = list(items)
    routings: dict[int, store.Routing] = {}
    routes: dict[int, store.RouteRow] = {}
    refusals: dict[int, Refused] = {}
    for place, (tenant, submission) in enumerate(items):
        if submission.capability is None:
            continue
        row = known.get(submission.capability)
        fault = _fault(submission, row)
        if row is None or fault is not None:
            refusals[place] = fault or _unknown(submission.capability)
            continue
        expected_s = submission.duration_hint_s or 1.0
        chosen = choose(outlook.prospects(row, expected_s), latest_start=_latest(submission, outlook), now=outlook.now)
        routings[place] = _routing(row, chosen, submission.resources)
        routes[place] = row
        option = row.options[chosen]
        needs = _needs(submission.resources, option)
        routed[place] = (tenant, replace(_with_model(submission, option.model), resources=needs))
    return Routed(routed, routings, routes, refusals)


def price_routed(
    rows: Sequence[tuple[int, Admitted]], routed: Routed, terms: submit_store.Terms
) -> tuple[dict[int, Priced], dict[int, Refused]]:
    """As `price_rows`; work that may go to several models is priced as the dearest of them."""
    plain = [row for row in rows if row[0] not in routed.routes]
    prices, refusals = price_rows(plain, routed.items, terms)
    for n in range(max((len(route.options) for route in routed.routes.values()), default=0)):
        of_n = [row for row in rows if row[0] in routed.routes and n < len(routed.routes[row[0]].options)]
        items = list(routed.items)
        for place, _ in of_n:
            tenant, submission = items[place]
            items[place] = (tenant, _with_model(submission, routed.routes[place].options[n].model))
        found, refused = price_rows(of_n, items, terms)
        refusals.update(refused)
        for place, priced in found.items():
            if place not in prices or priced.cost > prices[place].cost:
                prices[place] = priced
    return prices, refusals


def keep_routings(routed: Routed, ids: Mapping[int, TaskId]) -> None:
    """Keep how these new tasks, by place, were routed."""
    kept = {task: routed.routings[place] for place, task in ids.items() if place in routed.routings}
    if kept:
        store.keep(kept)


def reroute() -> int:
    """Move waiting tasks to where their route goes now; returns how many moved. Part of the leader's round."""
    if not store.count_routed() or not _moves():
        return 0
    with transaction.atomic():
        dispatch_store.lock()
        moves = _moves()
        return store.move(moves) if moves else 0


def _moves() -> list[store.Move]:
    """What to move, by how things are now: what a route's limits say, and one task to try what may be back."""
    outlook = _Outlook(store.count_routed())
    routes = {row.id: row for row in store.load()}
    waiting = {route for route, _ in outlook.routed}
    seen = {r: outlook.prospects(row, 1.0) for r, row in routes.items() if r in waiting}
    targets = {r: choose(prospects, latest_start=None, now=outlook.now) for r, prospects in seen.items()}
    trials = {r: n for r, prospects in seen.items() if (n := to_try(prospects, targets[r])) is not None}
    moves: dict[TaskId, store.Move] = {}
    for route, n in trials.items():
        for task in store.load_routed({route: n}, 1):
            if task.routing.choice != n:
                moves[task.id] = _move(task, routes[route], n, outlook)
    kept: set[tuple[int, int]] = set()
    for task in store.load_routed(targets, MOVES_MAX):
        row, now_at = routes[task.routing.route], task.routing.choice
        prospects = outlook.prospects(row, task.expected_s)
        place = (row.id, now_at)
        if now_at < len(prospects) and prospects[now_at].half_open and place not in kept:
            kept.add(place)  # it is to try this one
            continue
        chosen = choose(prospects, latest_start=task.latest_start, now=outlook.now)
        if chosen != now_at and task.id not in moves:
            moves[task.id] = _move(task, row, chosen, outlook)
    return list(moves.values())


def _move(task: store.RoutedTask, row: store.RouteRow, chosen: int, outlook: _Outlook) -> store.Move:
    needs = _needs(task.routing.own, row.options[chosen])
    amounts = sorted((outlook.ids[name], amount) for name, amount in needs.items() if name in outlook.ids)
    resources = tuple(resource for resource, _ in amounts)
    wanted = Needs(resources, task.priced, task.labels, task.run, task.writes)
    demand = outlook.demand_of(wanted)
    taken = tuple(amount for _, amount in amounts)
    return store.Move(task.id, demand, taken, _routing(row, chosen, task.routing.own))


class _Outlook:
    """How limits look now: what is left of them and what waits for them. `routed`: ready tasks by route and place."""

    def __init__(self, routed: Mapping[tuple[int, int], int] | None = None) -> None:
        self.now = dispatch_store.load_now()
        self.routed = routed or {}
        held = resource_store.load_held()
        rows = resource_store.load()
        self.ids = {row.name: row.view.id for row in rows}
        self._views = {row.name: less_held(row.view, held.get(row.view.id, 0.0)) for row in rows}
        self._ahead: dict[ResourceId, int] = defaultdict(int)
        waiting = overview.load_waiting_by_demand()
        for demand, view in dispatch_store.load_demands(sorted(waiting)).items():
            for resource in view.resources:
                self._ahead[resource] += waiting[demand]
        self._demands: dict[Needs, DemandId] = {}
        self._known: dict[tuple[int, int, float], list[Prospect]] = {}

    def demand_of(self, needs: Needs) -> DemandId:
        """The demand of these needs, found or made once."""
        if needs not in self._demands:
            self._demands |= demands_of([needs])
        return self._demands[needs]

    def prospects(self, row: store.RouteRow, expected_s: float) -> list[Prospect]:
        """How each option of a route looks."""
        place = (row.id, row.version, expected_s)
        if place not in self._known:
            self._known[place] = [self._prospect(row, n, expected_s) for n in range(len(row.options))]
        return self._known[place]

    def _prospect(self, row: store.RouteRow, n: int, expected_s: float) -> Prospect:
        needs = row.options[n].resources
        views = [self._views[name] for name in needs if name in self._views]
        queue = [Queued(limit_at(v, now=self.now), amount, amount * self._ahead[v.id]) for v, amount in self._of(needs)]
        half_open = any(v.open_until is not None and v.open_until <= self.now for v in views)
        shut = any(v.open_until is not None and v.open_until > self.now for v in views)
        under_way = any(v.probing for v in views) or self.routed.get((row.id, n), 0) > 0
        return Prospect(
            open=not half_open and not shut,
            paused=len(views) < len(needs) or any(q.limit.paused or q.limit.capacity <= 0.0 for q in queue),
            half_open=half_open and not shut,
            trial=half_open and not shut and not under_way,
            wait_s=wait_s(queue, expected_s=expected_s, now=self.now),
        )

    def _of(self, needs: Mapping[str, float]) -> list[tuple[Any, float]]:
        return [(self._views[name], amount) for name, amount in needs.items() if name in self._views]


def _needs(own: Mapping[str, float], option: Option) -> dict[str, float]:
    """What a task takes of limits: its own, and what a call of the model takes."""
    needs = dict(own)
    for name, amount in option.resources.items():
        needs[name] = needs.get(name, 0.0) + amount
    return needs


def _routing(row: store.RouteRow, chosen: int, own: Mapping[str, float]) -> store.Routing:
    return store.Routing(row.id, chosen, row.options[chosen].model, row.degraded_model, dict(own))


def _with_model(submission: Submission, model: str) -> Submission:
    payload = {**orjson.loads(submission.payload), "model": model}
    return replace(submission, payload=orjson.dumps(payload).decode())


def _latest(submission: Submission, outlook: _Outlook) -> float | None:
    """When it has to start at the latest, as far as that is known before it is admitted."""
    deadline = submission.deadline_at
    if deadline is None and submission.deadline_in_s is not None:
        deadline = outlook.now + submission.deadline_in_s
    return None if deadline is None else deadline - (submission.duration_hint_s or 0.0)


def _fault(submission: Submission, row: store.RouteRow | None) -> Refused | None:
    if row is None:
        return None
    if not submission.payload.lstrip().startswith("{"):
        detail = "A task that asks for a capability carries a JSON object, to which its model is added."
        return Refused(detail, code="bad_payload", errors=(FieldError(("payload",), detail),))
    return None


def _unknown(capability: str) -> Refused:
    detail = f"There is no route for {capability!r}; declare one with POST /routes, or name a model."
    return Refused(detail, code="unknown_capability", errors=(FieldError(("capability",), detail),))
