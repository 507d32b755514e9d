"""Writes submitted tasks."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any, Final

import orjson
from django.db import transaction

from scheduler.errors import FieldError, Refused
from scheduler.policy.admission import Admitted, PoolTerms, Priced, Submission
from scheduler.policy.bounds import Overflow, PoolBounds, TenantBounds
from scheduler.policy.graph import UnknownDependency
from scheduler.policy.types import DemandId, PoolId, ResourceId, ResourceKind, ResourceView, RunId, TaskId, TenantId
from scheduler.store import queries

_SQL: Final = queries.load("submit.sql")


@dataclass(frozen=True, slots=True)
class NewTask:
    """One task to insert. `fingerprint` is the hash of its content, for tasks with a key."""

    tenant: TenantId
    submission: Submission
    row: Admitted
    demand: DemandId
    fingerprint: bytes | None
    retry: str | None
    tags: str | None
    links: int = 0
    group: int | None = None
    priced: Priced | None = None
    run: RunId | None = None


@dataclass(frozen=True, slots=True)
class KnownTask:
    """The task that already has a key."""

    id: TaskId
    state: str
    fingerprint: bytes | None


@dataclass(frozen=True, slots=True)
class Terms:
    """What submissions are admitted by: the time, and the pools and limits they name (unknown names are missing).

    `bounds` are what the pools bear, `quotas` what those tenants bear that have a bound.
    """

    now: float
    pools: dict[str, PoolTerms]
    resources: dict[str, ResourceView]
    bounds: dict[PoolId, PoolBounds]
    quotas: dict[TenantId, TenantBounds]


def load_terms(
    pools: Iterable[str], resources: Iterable[str], kinds: Iterable[str], tenants: Iterable[TenantId]
) -> Terms:
    """The terms of these pools, limits and tenants, with how long tasks of these kinds take there.

    Levels of limits are not read: admission asks only for what fits ever.
    """
    params = {"pools": list(pools), "resources": list(resources), "kinds": list(kinds), "tenants": list(tenants)}
    row = queries.fetch_one(_SQL["read_terms"], params)
    assert row is not None  # noqa: S101 - a SELECT from a sequence gives a row
    now, *texts = row
    found, limits, bounds, quotas = (_parsed(text) for text in texts)
    return Terms(
        now=now,
        pools={
            name: PoolTerms(
                id=PoolId(pool),
                max_attempts=attempts,
                duration_default_s=duration,
                awaits=unknown == UnknownDependency.AWAIT,
                await_timeout_s=await_s,
                slots_max=slots_max,
                reservable_fraction=fraction,
                learned_s=learned or {},
                executor=executor,
                config=config or {},
                worker_second_nano=second,
                timeout_s=timeout_s,
            )
            for name, pool, attempts, duration, unknown, await_s, slots_max, fraction, *rest in found
            for executor, config, second, timeout_s, learned in (rest,)
        },
        resources={
            name: ResourceView(ResourceId(limit), ResourceKind(kind), 0.0, now, rate=rate, burst=burst, permits=permits)
            for name, limit, kind, rate, burst, permits in limits
        },
        bounds={
            PoolId(pool): PoolBounds(PoolId(pool), name, most, Overflow(overflow), *rest)
            for pool, name, most, overflow, *rest in bounds
        },
        quotas={TenantId(t): TenantBounds(TenantId(t), slug, most, at_most) for t, slug, most, at_most in quotas},
    )


def _parsed(text: str | None) -> list[list[Any]]:
    found: list[list[Any]] = [] if text is None else orjson.loads(text)
    return found


_demand_ids: dict[tuple[tuple[ResourceId, ...], bool, tuple[str, ...]], DemandId] = {}

LABELLED_DEMANDS_MAX: Final = 2_000
"""Sets of labels are made up by submitters, and every one makes lanes of its own."""


def demand_id(resources: tuple[ResourceId, ...], *, priced: bool = False, labels: tuple[str, ...] = ()) -> DemandId:
    """The id of a set of resources and labels, added when it is new; one for what is free, one for what costs money.

    Sets never change, so a process remembers those it has seen, once the transaction that saw them has committed.
    Raises Refused when there are too many sets of labels.
    """
    known = _demand_ids.get((resources, priced, labels))
    if known is not None:
        return known
    params = {"resources": list(resources), "priced": priced, "labels": list(labels)}
    row = queries.fetch_one(_SQL["find_demand"], params)
    if row is None:
        if labels:
            _refuse_too_many_sets()
        row = queries.fetch_one(_SQL["add_demand"], params)
    if row is None:
        return demand_id(resources, priced=priced, labels=labels)
    found = DemandId(row[0])
    transaction.on_commit(partial(_demand_ids.__setitem__, (resources, priced, labels), found))
    return found


def _refuse_too_many_sets() -> None:
    row = queries.fetch_one(_SQL["count_labelled_demands"])
    if row is not None and row[0] >= LABELLED_DEMANDS_MAX:
        detail = f"There are {LABELLED_DEMANDS_MAX} sets of labels already; use tags for what chooses no worker."
        raise Refused(detail, code="too_many_label_sets", errors=(FieldError(("labels",), detail),))


def forget_demands() -> None:
    """Forget the remembered sets, for tests that empty the tables."""
    _demand_ids.clear()


def insert_tasks(tasks: Sequence[NewTask]) -> dict[int, TaskId]:
    """Insert tasks with their payloads; ids by place. A missing place has a key that was used before."""
    params = {
        "tenants": queries.array(t.tenant for t in tasks),
        "pools": queries.array(t.row.pool for t in tasks),
        "demands": queries.array(t.demand for t in tasks),
        "priorities": queries.array(int(t.submission.priority) for t in tasks),
        "states": queries.array(t.row.state.value for t in tasks),
        "max_attempts": queries.array(t.row.max_attempts for t in tasks),
        "ready_ats": queries.array(t.row.ready_at for t in tasks),
        "due_ats": queries.array(t.row.due_at for t in tasks),
        "latest_starts": queries.array(t.row.latest_start for t in tasks),
        "expected_s": queries.array(t.row.expected_s for t in tasks),
        # An array of arrays must be rectangular, so each task's amounts travel as the text of an array.
        "amounts": queries.text_array(_array_text(t.row.amounts) for t in tasks),
        "kinds": queries.text_array(t.submission.kind for t in tasks),
        "keys": queries.text_array(t.submission.key for t in tasks),
        "payloads": queries.text_array(t.submission.payload for t in tasks),
        "fingerprints": queries.text_array(
            None if t.fingerprint is None else "\\x" + t.fingerprint.hex() for t in tasks
        ),
        "deadline_ats": queries.array(t.row.deadline_at for t in tasks),
        "timeouts_s": queries.array(t.submission.timeout_s for t in tasks),
        "retries": queries.text_array(t.retry for t in tasks),
        "tags": queries.text_array(t.tags for t in tasks),
        "links": queries.array(t.links for t in tasks),
        "groups": queries.array(t.group for t in tasks),
        "start_bys": queries.array(t.row.start_by for t in tasks),
        "costs": queries.array(None if t.priced is None else t.priced.cost for t in tasks),
        "costs_min": queries.array(None if t.priced is None else t.priced.cost_min for t in tasks),
        "pricings": queries.text_array(None if t.priced is None else t.priced.pricing for t in tasks),
        "runs": queries.array(t.run for t in tasks),
    }
    return {place - 1: TaskId(task) for place, task in queries.fetch(_SQL["insert_tasks"], params)}


@lru_cache(maxsize=4096)
def _array_text(amounts: tuple[float, ...]) -> str:
    return "{" + ",".join(map(repr, amounts)) + "}"


def find_by_key(tenants: Sequence[TenantId], keys: Sequence[str]) -> dict[int, KnownTask]:
    """Tasks with these (tenant, key) pairs, by position in the arguments."""
    rows = queries.fetch(_SQL["find_by_key"], {"tenants": list(tenants), "keys": list(keys)})
    return {
        place - 1: KnownTask(TaskId(task), state, bytes(fingerprint) if fingerprint is not None else None)
        for place, task, state, fingerprint in rows
    }
