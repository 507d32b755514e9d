"""What a task is handed of those that it came after, as JSON: `{name: {"state": …, "result": …}}`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import orjson

from scheduler.policy.types import LeasedTask
from scheduler.policy.upstream import UPSTREAM_BYTES_MAX, Handed, hand_over
from scheduler.store import graphs as store


def with_upstream(leased: Sequence[LeasedTask]) -> list[LeasedTask]:
    """The same attempts with what became of their parents. Asks nothing when none has any."""
    children = [each.task for each in leased if each.has_parents]
    if not children:
        return list(leased)
    outcomes = store.load_upstream(children, bytes_max=UPSTREAM_BYTES_MAX)
    return [
        each._replace(upstream=_json(hand_over(outcomes[each.task]))) if each.has_parents else each for each in leased
    ]


def _json(handed: Sequence[Handed]) -> str:
    return orjson.dumps({each.name: _entry(each) for each in handed}).decode()


def _entry(handed: Handed) -> dict[str, Any]:
    entry: dict[str, Any] = {
        "state": handed.state,
        "result": None if handed.result is None else orjson.Fragment(handed.result),
    }
    if handed.truncated_bytes is not None:
        entry["truncated"] = {"bytes": handed.truncated_bytes}
    return entry
