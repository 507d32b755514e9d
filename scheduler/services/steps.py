"""Takes steps of runs in, and counts what they used: what a submission and a settlement do for tasks that have a run.

Tasks without one cost nothing here. A submission holds its runs' intake and nothing that others need, so that an
application's open transaction stops no settlement and no kill.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

import orjson

from scheduler.errors import CronoqError
from scheduler.policy.admission import Admitted, Submission
from scheduler.policy.runs import fault_in_step
from scheduler.policy.types import DemandId, ResourceId, RunId, TenantId, is_of_run
from scheduler.store import run_steps as store
from scheduler.store import submit as submit_store


class Needs(NamedTuple):
    """What makes a demand: resources, whether it costs money, labels; of a step its run and whether it writes."""

    resources: tuple[ResourceId, ...]
    priced: bool
    labels: tuple[str, ...]
    run: RunId | None
    writes: bool


def refuse_steps(
    items: Sequence[tuple[TenantId, Submission]], rows: Sequence[tuple[int, Admitted]]
) -> dict[int, CronoqError]:
    """Take the turn of the runs that these submissions name; what is refused, by place.

    One whose key was used before is let through, to be answered with the task that has it.
    """
    named = [(place, items[place][0], run) for place, _ in rows if (run := items[place][1].run) is not None]
    if not named:
        return {}
    terms = store.lock_terms({run for _, _, run in named})
    refused: dict[int, CronoqError] = {}
    taken: Counter[RunId] = Counter()
    for place, tenant, run in named:
        found = terms.get(run)
        mine = found if found is not None and found.tenant == tenant else None
        fault = fault_in_step(
            run,
            state=None if mine is None else mine.state,
            steps=0 if mine is None else mine.steps + taken[run],
            max_steps=0 if mine is None else mine.max_steps,
        )
        if fault is None:
            taken[run] += 1
        else:
            refused[place] = fault
    known = _known(items, refused)
    return {place: fault for place, fault in refused.items() if place not in known}


def _known(items: Sequence[tuple[TenantId, Submission]], places: Collection[int]) -> set[int]:
    """The places whose keys have a task already."""
    keyed = [place for place in places if items[place][1].key is not None]
    if not keyed:
        return set()
    found = submit_store.find_by_key([items[p][0] for p in keyed], [items[p][1].key or "" for p in keyed])
    return {keyed[n] for n in found}


def count_steps(submissions: Sequence[Submission]) -> None:
    """Count those of these new tasks that are steps of runs, whose turn the caller has."""
    steps = Counter(submission.run for submission in submissions if submission.run is not None)
    if steps:
        store.count_taken_in(steps)


def demands_of(wanted: Collection[Needs]) -> dict[Needs, DemandId]:
    """The ids of what these tasks need; new ones are added in one order, lest two submissions wait for each other."""
    found: dict[Needs, DemandId] = {}
    for needs in sorted(wanted, key=lambda each: (*each[:3], each.run or 0, each.writes)):
        base = submit_store.demand_id(needs.resources, priced=needs.priced, labels=needs.labels)
        found[needs] = base if needs.run is None else store.demand_of_run(needs.run, base, writes=needs.writes)
    return found


def charge(ended: Sequence[tuple[DemandId, str | None]]) -> None:
    """Count what ended attempts used against their runs; `ended` has the demand and the usage (JSON text) of each."""
    steps = [(demand, _tokens(usage)) for demand, usage in ended if is_of_run(demand)]
    if steps:
        store.charge(steps)


def _tokens(usage: str | None) -> int:
    """All tokens of an attempt; the buckets of its usage do not overlap."""
    if usage is None:
        return 0
    buckets: Mapping[str, object] = orjson.loads(usage)
    return sum(max(0, n) for n in buckets.values() if isinstance(n, int) and not isinstance(n, bool))
