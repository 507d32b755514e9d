"""Routes as declared, and the tasks that were routed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

import orjson

from scheduler.policy.routes import Option
from scheduler.policy.types import DemandId, RunId, TaskId
from scheduler.store import queries

_SQL: Final = queries.load("routes.sql")


@dataclass(frozen=True, slots=True)
class RouteRow:
    """A route as declared."""

    id: int
    capability: str
    options: tuple[Option, ...]
    degraded_model: str | None
    version: int


class Routing(NamedTuple):
    """How a task was routed: to which model, the `choice`-th of its route; `own` is what it needs of limits besides."""

    route: int
    choice: int
    model: str
    degraded_model: str | None
    own: Mapping[str, float]

    def as_text(self) -> str:
        """As it is kept with the payload."""
        return orjson.dumps(self._asdict()).decode()


class RoutedTask(NamedTuple):
    """A ready task that was routed. `priced` to `writes` are of its demand, and stay."""

    id: TaskId
    demand: DemandId
    latest_start: float | None
    expected_s: float
    routing: Routing
    priced: bool
    labels: tuple[str, ...]
    run: RunId | None
    writes: bool


class Move(NamedTuple):
    """A task to route anew: what it needs from now on."""

    task: TaskId
    demand: DemandId
    amounts: tuple[float, ...]
    routing: Routing


def load(capabilities: Sequence[str] | None = None) -> list[RouteRow]:
    """Routes by capability, or all of them."""
    wanted = None if capabilities is None else list(capabilities)
    return [
        RouteRow(
            route,
            capability,
            tuple(Option(each["model"], each["resources"]) for each in orjson.loads(options)),
            degraded_model,
            version,
        )
        for route, capability, options, degraded_model, version in queries.fetch(
            _SQL["read_routes"], {"capabilities": wanted}
        )
    ]


def add(capability: str, options: Sequence[Option], degraded_model: str | None) -> bool:
    """Add a route; False when there is one for this capability."""
    return queries.fetch_one(_SQL["add_route"], _params(capability, options, degraded_model)) is not None


def edit(capability: str, *, version: int, options: Sequence[Option], degraded_model: str | None) -> bool:
    """Change a route; False when `version` is not the current one."""
    params = {**_params(capability, options, degraded_model), "version": version}
    return queries.fetch_one(_SQL["edit_route"], params) is not None


def keep(routings: Mapping[TaskId, Routing]) -> None:
    """Keep how new tasks were routed."""
    params = {"tasks": queries.array(routings), "routings": queries.text_array(r.as_text() for r in routings.values())}
    queries.run(_SQL["keep_routing"], params)


def count_routed() -> dict[tuple[int, int], int]:
    """Ready tasks that were routed, by route and place in it."""
    return {(route, choice): count for route, choice, count in queries.fetch(_SQL["count_routed"])}


def load_routed(targets: Mapping[int, int], tasks_max: int) -> list[RoutedTask]:
    """Ready tasks that may have to be routed anew; `targets` says by route where those without a deadline go now."""
    params = {
        "routes": queries.array(targets),
        "targets": queries.array(targets.values()),
        "tasks_max": tasks_max,
    }
    return [
        RoutedTask(
            TaskId(task),
            DemandId(demand),
            latest_start,
            expected_s,
            Routing(**orjson.loads(routing)),
            priced,
            tuple(labels),
            run,
            bool(writes),
        )
        for task, demand, latest_start, expected_s, routing, priced, labels, run, writes in queries.fetch(
            _SQL["read_routed"], params
        )
    ]


def move(moves: Sequence[Move]) -> int:
    """Route tasks anew that are still ready; returns how many."""
    params = {
        "tasks": queries.array(m.task for m in moves),
        "demands": queries.array(m.demand for m in moves),
        "amounts": queries.text_array(queries.array(m.amounts) for m in moves),
        "routings": queries.text_array(m.routing.as_text() for m in moves),
    }
    return queries.run(_SQL["move_routed"], params)


def _params(capability: str, options: Sequence[Option], degraded_model: str | None) -> dict[str, object]:
    declared = [{"model": option.model, "resources": dict(option.resources)} for option in options]
    return {"capability": capability, "options": orjson.dumps(declared).decode(), "degraded_model": degraded_model}
