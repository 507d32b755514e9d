"""Writes the newest picture in Prometheus' text format.

Labels are names that operators declare (pools, resources) and closed sets (classes); never tenants, tasks or models, so
that the number of series is bounded.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from scheduler.policy.breaker import BreakerState
from scheduler.reads.snapshot import SnapshotRow

SERIES_NAMES_MAX: Final = 500
_POOL_GAUGES: Final = (
    ("running", "Tasks that run"),
    ("slots", "Slots"),
    ("desired", "Slots that the pool should have"),
    ("workers", "Connected workers"),
    ("scheduled", "Tasks that wait for a time"),
    ("retrying", "Tasks that wait for another attempt"),
    ("overload_level", "The overload level, 0 to 3"),
    ("oldest_waiting_s", "Seconds that the longest waiting ready task has waited"),
    ("started_per_s", "Attempts started per second"),
    ("succeeded_per_s", "Tasks succeeded per second"),
    ("failed_per_s", "Attempts failed per second"),
)
_SCALE_GAUGES: Final = (
    ("demand_slots", "Slots that the pool's work asks for, before any bound"),
    ("ceiling_slots", "Slots that the tightest limit can feed"),
    ("arrivals_per_s", "Tasks that become ready per second, averaged"),
)
_RESOURCE_GAUGES: Final = (
    ("available", "Tokens left or permits free"),
    ("capacity", "The most that can be available"),
    ("in_use", "What running work holds"),
    ("waiting", "Ready tasks that need it"),
    ("factor", "The part of the declared rate that is used since its provider refused, 0.1 to 1"),
)


def exposition(row: SnapshotRow | None) -> str:
    """The text; `cronoq_up` 0 alone while no engine ever ran."""
    if row is None:
        return "\n".join((*_head("cronoq_up", "Whether an engine has written a picture"), "cronoq_up 0", ""))
    lines = [*_head("cronoq_up", "Whether an engine has written a picture"), "cronoq_up 1"]
    lines += [*_head("cronoq_snapshot_timestamp_seconds", "When the picture was taken")]
    lines.append(f"cronoq_snapshot_timestamp_seconds {row.as_of:.3f}")
    pools = _named(row.body.get("pools"))
    lines += _head("cronoq_pool_waiting", "Ready tasks")
    for pool in pools:
        waiting = pool.get("waiting")
        for priority, count in waiting.items() if isinstance(waiting, Mapping) else ():
            lines += _sample("cronoq_pool_waiting", {"pool": pool["name"], "class": priority}, count)
    lines += _head("cronoq_pool_paused", "Whether the pool is paused")
    for pool in pools:
        lines += _sample("cronoq_pool_paused", {"pool": pool["name"]}, int(pool.get("state") == "paused"))
    lines += _gauges("pool", pools, _POOL_GAUGES)
    lines += _gauges("pool", [_scale(pool) for pool in pools if pool.get("scale")], _SCALE_GAUGES)
    lines += _gauges("resource", _named(row.body.get("resources")), _RESOURCE_GAUGES)
    lines += _breakers(_named(row.body.get("resources")))
    return "\n".join((*lines, ""))


def _breakers(resources: list[Mapping[str, Any]]) -> Iterator[str]:
    """One series for each state that a breaker can be in, 1 for the one that it is in; and who is paused."""
    yield from _head("cronoq_resource_breaker", "Whether the limit's breaker is in this state")
    for resource in resources:
        for state in BreakerState if resource.get("breaker") else ():
            labels = {"resource": resource["name"], "state": state.value}
            yield from _sample("cronoq_resource_breaker", labels, int(resource["breaker"] == state))
    yield from _head("cronoq_resource_paused", "Whether nothing is taken of the limit, by a person or a provider")
    for resource in resources:
        if "paused" in resource:
            yield from _sample("cronoq_resource_paused", {"resource": resource["name"]}, int(bool(resource["paused"])))


def _gauges(what: str, items: list[Mapping[str, Any]], gauges: Iterable[tuple[str, str]]) -> Iterator[str]:
    for field, text in gauges:
        name = f"cronoq_{what}_{field.replace('_per_s', '_per_second').removesuffix('_s')}"
        name = f"{name}_seconds" if field.endswith("waiting_s") else name
        yield from _head(name, text)
        for item in items:
            yield from _sample(name, {what: item["name"]}, item.get(field))


def _scale(pool: Mapping[str, Any]) -> Mapping[str, Any]:
    """The figures of an autoscaled pool."""
    scale = pool["scale"]
    ceiling = scale.get("ceiling") or {}
    return {
        "name": pool["name"],
        "demand_slots": scale.get("demand"),
        "ceiling_slots": ceiling.get("slots"),
        "arrivals_per_s": scale.get("arrivals_per_s"),
    }


def _named(items: object) -> list[Mapping[str, Any]]:
    found = items if isinstance(items, list) else []
    return [i for i in found if isinstance(i, Mapping) and isinstance(i.get("name"), str)][:SERIES_NAMES_MAX]


def _head(name: str, text: str) -> tuple[str, str]:
    return f"# HELP {name} {text}.", f"# TYPE {name} gauge"


def _sample(name: str, labels: Mapping[str, object], value: object) -> Iterator[str]:
    if isinstance(value, int | float):
        text = ",".join(f'{label}="{_escaped(str(said))}"' for label, said in labels.items())
        yield f"{name}{{{text}}} {value:g}"


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
