"""Events: told in any order, read in one. See `sql/events.sql` for why none is missed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final, NamedTuple

import orjson

from scheduler.policy.types import TenantId
from scheduler.store import queries

_SQL: Final = queries.load("events.sql")

EVERYONE: Final = TenantId(0)
"""Stands for all tenants where a tenant is asked for."""


class Bounds(NamedTuple):
    """The newest place, the one from which on all events can be read, and the same for alerts alone."""

    last: int
    kept_from: int
    alerts_from: int


@dataclass(frozen=True, slots=True)
class Event:
    """Something that happened, at its place. Of a transition `task` and what follows are known; `data` is JSON text."""

    seq: int
    type: str
    task: int | None
    tenant: str | None
    pool: str | None
    before: str | None
    attempt: int | None
    kind: str | None
    key: str | None
    at: float
    data: str | None


def add(tenant: TenantId | None, event_type: str, data: Mapping[str, object]) -> None:
    """Tell an event that is no transition, in the caller's transaction."""
    params = {"tenant": tenant, "type": event_type, "data": orjson.dumps(dict(data)).decode()}
    queries.run(_SQL["add_event"], params)


def has_fresh() -> bool:
    """Whether something was told that has no place yet."""
    row = queries.fetch_one(_SQL["has_fresh"])
    return row is not None and bool(row[0])


def lock_mark() -> int | None:
    """The newest place, for who gives the next ones; None when another does, or none was ever given."""
    row = queries.fetch_one(_SQL["lock_mark"])
    return None if row is None else int(row[0])


def ensure_mark() -> None:
    """Let there be a mark."""
    queries.run(_SQL["ensure_mark"])


def publish(last_seq: int, *, events_max: int) -> int:
    """Give places to what was told, behind `last_seq`; returns how many."""
    row = queries.fetch_one(_SQL["publish_fresh"], {"last_seq": last_seq, "events_max": events_max})
    return 0 if row is None else int(row[0])


def load_newest(after: int) -> tuple[int, dict[int, int]]:
    """The newest place, and by tenant (0: the installation) the newest of its events beyond `after`."""
    row = queries.fetch_one(_SQL["read_newest"], {"after": after})
    if row is None or row[0] is None:
        return 0, {}
    told = orjson.loads(row[1]) if row[1] else {}
    return int(row[0]), {int(tenant): int(seq) for tenant, seq in told.items()}


def load(tenant: TenantId | None, *, after: int, events_max: int) -> list[Event]:
    """Events beyond a place, in order; of every tenant for None."""
    params = {"tenant": tenant, "after": after, "events_max": events_max}
    statement = _SQL["read_events"] if tenant is None else _SQL["read_events_of_tenant"]
    return [Event(*row) for row in queries.fetch(statement, params)]


def load_alerts(tenant: TenantId | None, *, after: int, events_max: int) -> list[Event]:
    """Alerts beyond a place, in order; of every tenant and of the whole installation for None."""
    params = {"tenant": tenant, "after": after, "events_max": events_max}
    return [Event(*row) for row in queries.fetch(_SQL["read_alerts"], params)]


def listen(tenant: TenantId, *, seconds: float | None) -> None:
    """Have transitions told for so long from now at least; None: until `listen_no_longer`."""
    queries.run(_SQL["listen"], {"tenant": tenant, "seconds": seconds})


def listen_no_longer(tenant: TenantId, *, seconds: float) -> None:
    """Have them told only for so long from now, if no webhook needs them."""
    queries.run(_SQL["listen_no_longer"], {"tenant": tenant, "seconds": seconds})


def load_bounds(tenant: TenantId | None) -> Bounds:
    """How far events of this tenant (None: of all) can be read."""
    row = queries.fetch_one(_SQL["read_bounds"], {"tenant": EVERYONE if tenant is None else tenant})
    return Bounds(0, 0, 0) if row is None else Bounds(*row)


def forget(*, keep_s: float, events_max: int, rows_max: int) -> None:
    """Remove some of what is too old or too much, and listeners that went."""
    queries.run(_SQL["forget_listeners"])
    queries.run(_SQL["forget_events"], {"keep_s": keep_s, "events_max": events_max, "rows_max": rows_max})


def told(event: Event) -> dict[str, object]:
    """The event as JSON says it."""
    said: dict[str, object] = {
        "seq": event.seq,
        "type": event.type,
        "at": datetime.fromtimestamp(event.at, UTC).isoformat().replace("+00:00", "Z"),
        "tenant": event.tenant,
    }
    if event.task is not None:
        said |= {
            "task": event.task,
            "state": event.type.removeprefix("task."),
            "from": event.before,
            "attempt": event.attempt,
            "pool": event.pool,
            "kind": event.kind,
            "key": event.key,
        }
    if event.data is not None:
        said["data"] = orjson.loads(event.data)
    return said
