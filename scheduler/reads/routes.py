"""Routes as pages and the API show them."""

from __future__ import annotations

from dataclasses import dataclass

from scheduler.errors import NotFound
from scheduler.policy.routes import Option
from scheduler.store import routes


@dataclass(frozen=True, slots=True)
class RouteDetail:
    """A route: its models, cheapest first, and how many tasks wait for each."""

    capability: str
    version: int
    options: tuple[Option, ...]
    waiting: tuple[int, ...]
    degraded_model: str | None


def route_detail(capability: str) -> RouteDetail:
    """The route of a capability. Raises NotFound."""
    found = _details(routes.load([capability])) if "\x00" not in capability else []
    if not found:
        raise NotFound(f"There is no route for {capability!r}.", code="unknown_capability")
    return found[0]


def list_routes() -> list[RouteDetail]:
    """All routes by capability."""
    return _details(routes.load())


def _details(rows: list[routes.RouteRow]) -> list[RouteDetail]:
    waiting = routes.count_routed() if rows else {}
    return [
        RouteDetail(
            row.capability,
            row.version,
            row.options,
            tuple(waiting.get((row.id, n), 0) for n in range(len(row.options))),
            row.degraded_model,
        )
        for row in rows
    ]
