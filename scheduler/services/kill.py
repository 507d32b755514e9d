"""Kills a run, a tenant, a pool or everything: nothing under it starts from then on, and what runs is told to stop.

Only an explicit resume lifts it; it stands in the database, so no restart does. The waiting steps of a killed run are
cancelled (`run_tending`); what waits under any other kill is held back and goes on after the resume.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from django.db import transaction

from scheduler.errors import Conflict, FieldError, Refused
from scheduler.policy.runs import MOVES, KillScope, RunState
from scheduler.policy.types import RunId, TenantId
from scheduler.services.again import again
from scheduler.services.changes import Author, check_reason, record
from scheduler.services.pools import load_pool
from scheduler.services.runs import lock_run
from scheduler.services.tenants import load_tenant
from scheduler.store import dispatch as dispatch_store
from scheduler.store import kills as store
from scheduler.store import run_steps as step_store
from scheduler.store import runs as run_store

REASON_CHARS_MAX: Final = 500
EVERYTHING_ID: Final = 0


@dataclass(frozen=True, slots=True)
class Killed:
    """A kill in force: for the how-manieth time, and how many running attempts were told."""

    epoch: int
    told: int


@again
def kill_run(run: RunId, tenant: TenantId | None, *, actor: str, reason: str = "", source: str = "api") -> Killed:
    """Kill a run of `tenant` (None: of anyone). Raises NotFound, Conflict when it has ended."""
    author = Author(actor, source, reason)
    check_reason(author)
    with transaction.atomic():
        seen, _ = lock_run(run, tenant)
        return end_by_kill(run, seen, author)


def end_by_kill(run: RunId, seen: RunState, author: Author) -> Killed:
    """Kill a locked run, in the transaction that holds the turn to plan. Raises Conflict when it has ended."""
    if RunState.KILLED not in MOVES[seen]:
        raise Conflict(f"The run {run} has ended already: it is {seen}.", code="run_ended")
    run_store.move(run, seen=seen, state=RunState.KILLED, reason=author.reason[:REASON_CHARS_MAX])
    run_store.tell_planner(run)
    told = step_store.tell([run])
    epoch = run_store.load([run], tenant=None)[0].epoch
    after = {"state": RunState.KILLED.value, "epoch": epoch, "told": len(told)}
    record(author, "run.kill", f"run:{run}", before={"state": seen.value}, after=after)
    return Killed(epoch, len(told))


@again
def kill(scope: KillScope, name: str | None, *, actor: str, reason: str = "", source: str = "api") -> Killed:
    """Kill the tenant or pool of that name, or (None) everything. Raises NotFound, Conflict when it is killed."""
    author = Author(actor, source, reason)
    check_reason(author)
    with transaction.atomic():
        scope_id = _id_of(scope, name)
        dispatch_store.take_turn()
        epoch = store.raise_epoch(scope, scope_id, actor=actor[:200], reason=reason[:REASON_CHARS_MAX])
        if epoch is None:
            raise Conflict(f"{_said(scope, name)} is killed already; resume it first.", code="killed")
        told = store.tell()
        record(author, "kill.raise", _subject(scope, name), after={"epoch": epoch, "told": len(told)})
    return Killed(epoch, len(told))


@again
def lift(scope: KillScope, name: str | None, *, actor: str, reason: str = "", source: str = "api") -> int:
    """Let what was killed start again; the epoch that ends. Raises NotFound, Conflict when nothing is in force."""
    author = Author(actor, source, reason)
    check_reason(author)
    with transaction.atomic():
        scope_id = _id_of(scope, name)
        dispatch_store.take_turn()
        epoch = store.lift_epoch(scope, scope_id)
        if epoch is None:
            raise Conflict(f"{_said(scope, name)} is not killed.", code="not_killed")
        record(author, "kill.lift", _subject(scope, name), before={"epoch": epoch}, after={"lifted": True})
    return epoch


def _id_of(scope: KillScope, name: str | None) -> int:
    if (name is None) != (scope is KillScope.EVERYTHING):
        detail = "Name the tenant or the pool; everything has no name."
        raise Refused(detail, code="bad_scope", errors=(FieldError(("name",), detail),))
    match scope:
        case KillScope.EVERYTHING:
            return EVERYTHING_ID
        case KillScope.TENANT:
            return load_tenant(name or "").id
        case KillScope.POOL:
            return load_pool(name or "").id


def _said(scope: KillScope, name: str | None) -> str:
    return "Everything" if name is None else f"The {scope} {name!r}"


def _subject(scope: KillScope, name: str | None) -> str:
    return scope.value if name is None else f"{scope}:{name}"
