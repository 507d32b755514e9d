"""Takes tasks in: admits them, gives them ids and stores them, in one transaction (the caller's, if there is one).

`submit_each` isolates faults between unrelated submissions (group commit); `submit_batch` is all or nothing.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

import orjson
from django.db import connection, transaction

from scheduler.errors import CronoqError, FieldError, Refused, Unavailable
from scheduler.policy.admission import Admitted, Priced, Submission, admit
from scheduler.policy.bounds import PoolBounds
from scheduler.policy.graph import Links
from scheduler.policy.states import TaskState
from scheduler.policy.trace import untraced
from scheduler.policy.types import DemandId, PoolId, TaskId, TenantId
from scheduler.services.again import again
from scheduler.services.arranging import UNTIED, Tie, Tied, store_ties, tie
from scheduler.services.bounds import hold_bounds
from scheduler.services.promising import keep_promises, refuse_overbooked
from scheduler.services.routing import Routed, keep_routings, price_routed, route_each
from scheduler.services.steps import Needs, count_steps, demands_of, refuse_steps
from scheduler.services.token_estimates import with_tokens
from scheduler.store import submit as store

BATCH_TASKS_MAX: Final = 1_000


@dataclass(frozen=True, slots=True)
class Accepted:
    """An accepted submission. `duplicate`: the key was used before for the same content, and this is that task.

    `overload` is the level of its pool; `degraded`: at that level its attempts are to answer only.
    """

    id: TaskId
    state: TaskState
    key: str | None
    duplicate: bool = False
    group: str | None = None
    overload: int = 0
    degraded: bool = False


def submit(tenant: TenantId, submission: Submission) -> Accepted:
    """Store one task. Raises Refused, Unavailable when it has to wait outside."""
    return submit_batch(tenant, [submission])[0]


@again
def submit_batch(tenant: TenantId, submissions: Sequence[Submission]) -> list[Accepted]:
    """Store these tasks or none.

    Raises Refused, naming the task at fault by its place, and Unavailable when there is no room for all of them.
    """
    if len(submissions) > BATCH_TASKS_MAX:
        raise Refused(f"A batch may hold at most {BATCH_TASKS_MAX} tasks.", code="batch_too_large")
    takes_turns = not connection.in_atomic_block
    with transaction.atomic():
        items = [(tenant, submission) for submission in submissions]
        answers = submit_each(items, together=True, takes_turns=takes_turns)
        accepted = []
        for place, answer in enumerate(answers):
            if isinstance(answer, CronoqError):
                raise _at(answer, place) if len(submissions) > 1 else answer
            accepted.append(answer)
    return accepted


@again
def submit_each(
    items: Sequence[tuple[TenantId, Submission]], *, together: bool = False, takes_turns: bool | None = None
) -> list[Accepted | CronoqError]:
    """Store what can be stored; a fault in one submission is its own answer and touches no other.

    `together`: they are one batch, may come after each other, and are all refused (Unavailable is raised) when one
    finds no room. `takes_turns`: near a bound, one transaction after the other; not inside a caller's own by default.

    1. choose a model where a capability is asked for; look up the time, and the pools and limits that are named;
    2. admit each submission, or keep its refusal as the answer; estimate what it costs where that costs money;
    3. take the turn of the runs that are named, and book slots for fixed starts; put those that name others behind them
       and into their groups;
    4. turn away those for whom there is no room;
    5. insert tasks and payloads in one statement;
    6. answer keys that were used before with the task they belong to;
    7. store what ties the new tasks to others.
    """
    if takes_turns is None:
        takes_turns = not connection.in_atomic_block
    with transaction.atomic(savepoint=False):
        routed = route_each(items)
        named = {name for _, s in routed.items for name in s.resources}
        terms = store.load_terms(
            {s.pool for _, s in items}, named, {s.kind for _, s in items}, {tenant for tenant, _ in items}
        )
        answers: list[Accepted | CronoqError | None] = [routed.refusals.get(place) for place in range(len(items))]
        rows, repeats = _admit(routed, answers, terms)
        prices, unpriced = price_routed(rows, routed, terms)
        rows = [row for row in rows if row[0] not in unpriced] if unpriced else rows
        overbooked: dict[int, CronoqError] = {**refuse_steps(items, rows), **refuse_overbooked(rows, terms.pools)}
        rows = [row for row in rows if row[0] not in overbooked] if overbooked else rows
        tied = tie(items, rows, terms.pools, together=together)
        for place, refused in {**unpriced, **overbooked, **tied.refusals}.items():
            answers[place] = refused
        turned_away = hold_bounds(items, tied.rows, terms.bounds, terms.quotas, takes_turns=takes_turns)
        if turned_away:
            tied = _turn_away(tied, turned_away, answers, together=together)
        added = _insert(items, tied, answers, terms.bounds, prices=prices, routed=routed)
        _answer_known(items, answers)
        if tied.ties:
            ids = {place: answer.id for place, answer in enumerate(answers) if isinstance(answer, Accepted)}
            store_ties(tied, items, ids, added, terms.pools)
        for place, first in repeats.items():
            answers[place] = _repeat(items[place][1], items[first][1], answers[first])
    return [_known(answer) for answer in answers]


def _admit(
    routed: Routed, answers: list[Accepted | CronoqError | None], terms: store.Terms
) -> tuple[list[tuple[int, Admitted]], dict[int, int]]:
    """The rows of those that are admitted; and, by the place of one that uses a key again, the place of the first."""
    rows: list[tuple[int, Admitted]] = []
    seen: dict[tuple[TenantId, str], int] = {}
    repeats: dict[int, int] = {}
    for place, (tenant, submission) in enumerate(routed.items):
        if answers[place] is not None:
            continue
        try:
            pool = terms.pools.get(submission.pool)
            wanted = with_tokens(submission, pool, terms.resources)
            row = admit(wanted, pool=pool, resources=terms.resources, now=terms.now)
        except Refused as refusal:
            answers[place] = refusal
            continue
        if submission.key is not None:
            first = seen.setdefault((tenant, submission.key), place)
            if first != place:
                repeats[place] = first
                continue
        rows.append((place, row))
    return rows, repeats


def _turn_away(
    tied: Tied, refusals: Mapping[int, Unavailable], answers: list[Accepted | CronoqError | None], *, together: bool
) -> Tied:
    """The rows that are let in. Of a batch none is when one is not: raises its refusal."""
    if together:
        raise refusals[min(refusals)]
    for place, refusal in refusals.items():
        answers[place] = refusal
    return replace(tied, rows=[(place, row) for place, row in tied.rows if place not in refusals])


def _insert(
    items: Sequence[tuple[TenantId, Submission]],
    tied: Tied,
    answers: list[Accepted | CronoqError | None],
    bounds: Mapping[PoolId, PoolBounds],
    *,
    prices: Mapping[int, Priced],
    routed: Routed,
) -> set[int]:
    """Insert the rows and answer for those that are new; returns their places."""
    rows = tied.rows
    if not rows:
        return set()
    needs = [_needs(items[place][1], row, prices.get(place)) for place, row in rows]
    demands = demands_of(set(needs))
    ties = [tied.ties.get(place, UNTIED) for place, _ in rows]
    tasks = [
        replace(
            _new_task(*items[place], row, demands[need], bound, routed=place in routed.routings),
            priced=prices.get(place),
        )
        for (place, row), need, bound in zip(rows, needs, ties, strict=True)
    ]
    added: dict[TaskId, Admitted] = {}
    places: dict[int, TaskId] = {}
    for n, task in store.insert_tasks(tasks).items():
        place, row = rows[n]
        pool = bounds[row.pool]
        answers[place] = Accepted(
            task,
            row.state,
            items[place][1].key,
            group=ties[n].group_name,
            overload=pool.level,
            degraded=pool.degrades,
        )
        added[task] = row
        places[place] = task
    keep_promises(added)
    keep_routings(routed, places)
    count_steps([items[place][1] for place in places])
    return set(places)


def _needs(submission: Submission, row: Admitted, priced: Priced | None) -> Needs:
    return Needs(row.needs, priced is not None and priced.cost > 0, row.labels, submission.run, submission.writes)


def _new_task(
    tenant: TenantId, submission: Submission, row: Admitted, demand: DemandId, bound: Tie, *, routed: bool
) -> store.NewTask:
    own = submission.retry.as_json() if submission.retry is not None else None
    return store.NewTask(
        tenant=tenant,
        submission=submission,
        row=row,
        demand=demand,
        fingerprint=None if submission.key is None else fingerprint(submission),
        retry=orjson.dumps(own).decode() if own else None,
        tags=orjson.dumps(dict(submission.tags)).decode() if submission.tags else None,
        links=int(bound.links | Links.ROUTED) if routed else int(bound.links),
        group=bound.group,
        run=submission.run,
    )


def _answer_known(items: Sequence[tuple[TenantId, Submission]], answers: list[Accepted | CronoqError | None]) -> None:
    open_places = [p for p, a in enumerate(answers) if a is None and items[p][1].key is not None]
    if not open_places:
        return
    tenants = [items[p][0] for p in open_places]
    keys = [items[p][1].key or "" for p in open_places]
    for n, known in store.find_by_key(tenants, keys).items():
        place = open_places[n]
        submission = items[place][1]
        if known.fingerprint == fingerprint(submission):
            answers[place] = Accepted(known.id, TaskState(known.state), submission.key, duplicate=True)
        else:
            answers[place] = _key_reused(submission)


def _repeat(submission: Submission, first: Submission, answer: Accepted | CronoqError | None) -> Accepted | CronoqError:
    if not isinstance(answer, Accepted):
        return _known(answer)
    if fingerprint(submission) != fingerprint(first):
        return _key_reused(submission)
    return replace(answer, duplicate=True)


def _known(answer: Accepted | CronoqError | None) -> Accepted | CronoqError:
    if answer is None:
        raise Refused("The key's task was removed meanwhile; submit again.", code="key_gone")
    return answer


def _key_reused(submission: Submission) -> Refused:
    detail = f"The key {submission.key!r} was used before for another task; use a new key or send the same content."
    return Refused(detail, code="key_reused", errors=(FieldError(("key",), detail),))


def _at(error: CronoqError, place: int) -> CronoqError:
    errors = tuple(FieldError(("tasks", place, *e.loc), e.msg) for e in error.errors)
    return type(error)(f"Task {place} of the batch: {error.detail}", code=error.code, errors=errors)


_RARE: Final = ("tolerance_s", "on_miss", "expires_in_s", "max_cost_nano", "capability")


def _asked(submission: Submission) -> dict[str, object]:
    """What few tasks ask for, as far as this one does."""
    asked = {name: getattr(submission, name) for name in _RARE}
    asked |= {"labels": dict(submission.labels) or None}
    if submission.run is not None:
        asked |= {"run": submission.run, "writes": submission.writes}
    return {name: value for name, value in asked.items() if value is not None}


def fingerprint(submission: Submission) -> bytes:
    """SHA-256 of what a submission asks for; absolute times that relative ones lead to do not count."""
    content = {
        name: getattr(submission, name)
        for name in ("pool", "kind", "deadline_at", "deadline_in_s", "start_at", "start_in_s", "duration_hint_s")
    }
    content |= {
        "payload": orjson.Fragment(orjson.dumps(orjson.loads(submission.payload), option=orjson.OPT_SORT_KEYS)),
        **_asked(submission),
        "priority": int(submission.priority),
        "timeout_s": submission.timeout_s,
        "retry": None if submission.retry is None else [submission.retry.max_attempts, submission.retry.as_json()],
        "resources": dict(submission.resources),
        "tags": untraced(submission.tags or {}),
    }
    if submission.after or submission.group is not None or submission.join is not None:
        content["after"] = [[each.key, each.id, each.on] for each in submission.after]
        content |= {"group": submission.group, "join": submission.join}
    return hashlib.sha256(orjson.dumps(content, option=orjson.OPT_SORT_KEYS)).digest()
