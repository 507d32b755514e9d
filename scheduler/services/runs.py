"""Creates runs, and moves them at their owner's wish: pause, resume, finish, other caps. Killing is in `kill`.

Whatever a plan heeds of a run is written while holding the turn to plan, so that no plan that has not seen it commits
after it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any, Final

import orjson
from django.db import transaction

from scheduler.errors import Conflict, FieldError, NotFound, Refused
from scheduler.policy.payload import fault_in_json, fault_in_text
from scheduler.policy.runs import (
    MOVES,
    OPEN,
    Asked,
    Caps,
    RunQuota,
    RunState,
    caps_for,
    fatal,
    faults_in_caps,
    heed_at,
    near_caps,
)
from scheduler.policy.types import RunId, TenantId
from scheduler.services.again import again
from scheduler.services.changes import Author, VersionConflict, check_reason, differences, record, refuse
from scheduler.store import control
from scheduler.store import dispatch as dispatch_store
from scheduler.store import run_steps as step_store
from scheduler.store import runs as store

GOAL_BYTES_MAX: Final = 262_144
NAME_CHARS_MAX: Final = 200
REASON_CHARS_MAX: Final = 500
UNCHANGED: Final = Asked()


@dataclass(frozen=True, slots=True)
class Created:
    """A stored run. `duplicate`: the key was used before for the same content, and this is that run."""

    id: RunId
    duplicate: bool = False


@again
def create_run(
    tenant: TenantId, goal: str, *, asked: Asked = UNCHANGED, name: str = "", key: str | None = None
) -> Created:
    """Store a run with its caps; `goal` is JSON text. Raises Refused with what to change."""
    _check(goal, name)
    quota = control.load_run_quota(tenant)
    caps = caps_for(asked, quota)
    refuse(faults_in_caps(caps, quota), code="bad_caps")
    print_ = _fingerprint(goal, name, asked) if key is not None else None
    with transaction.atomic():
        run = store.add(store.NewRun(tenant, name, key, print_, goal, caps), heed_s=heed_at(caps, 0.0, now=0.0))
        if run is not None:
            return Created(run)
        known = store.find_by_key(tenant, key or "")
    if known is None or known[1] != print_:
        detail = f"The key {key!r} was used before for another run; use a new key or send the same content."
        raise Refused(detail, code="key_reused", errors=(FieldError(("key",), detail),))
    return Created(known[0], duplicate=True)


def _check(goal: str, name: str) -> None:
    said = fault_in_text(name)
    if said is not None or len(name) > NAME_CHARS_MAX:
        detail = f"The name {said or f'has more than {NAME_CHARS_MAX} characters'}."
        raise Refused(detail, code="bad_run", errors=(FieldError(("name",), detail),))
    check_json(goal, what="goal", bytes_max=GOAL_BYTES_MAX)


def check_json(text: str, *, what: str, bytes_max: int) -> None:
    """Raise Refused for JSON text that cannot be kept, or is too large."""
    if len(text.encode(errors="replace")) > bytes_max:
        detail = f"The {what} has more than {bytes_max} bytes; store it elsewhere and refer to it."
        raise Refused(detail, code=f"{what}_too_large", errors=(FieldError((what,), detail),))
    fault = fault_in_json(orjson.loads(text))
    if fault is not None:
        error = FieldError((what, *fault.loc), fault.msg)
        raise Refused(f"The {what} cannot be kept: {fault.msg}", code=f"bad_{what}", errors=(error,))


def _fingerprint(goal: str, name: str, asked: Asked) -> bytes:
    same = orjson.dumps([orjson.loads(goal), name, asdict(asked)], option=orjson.OPT_SORT_KEYS)
    return hashlib.sha256(same).digest()


@again
def pause_run(run: RunId, tenant: TenantId | None, *, actor: str, reason: str = "", source: str = "api") -> None:
    """Start no further step; those that run go on. Raises NotFound, Conflict when it is not active."""
    _move(run, tenant, RunState.PAUSED, Author(actor, source, reason), "run.pause")


@again
def finish_run(
    run: RunId,
    tenant: TenantId | None,
    state: RunState,
    *,
    actor: str,
    result: str | None = None,
    reason: str = "",
    source: str = "api",
) -> None:
    """End a run as succeeded or failed, with a result (JSON text). Steps that wait are cancelled; those that run go on.

    Raises NotFound, Refused, Conflict when it has ended already.
    """
    if state not in (RunState.SUCCEEDED, RunState.FAILED):
        detail = "A run is finished as succeeded or failed; use kill to stop it."
        raise Refused(detail, code="bad_state", errors=(FieldError(("state",), detail),))
    if result is not None:
        check_json(result, what="result", bytes_max=GOAL_BYTES_MAX)
    _move(run, tenant, state, Author(actor, source, reason), "run.finish", result=result)


@again
def resume_run(
    run: RunId,
    tenant: TenantId | None,
    *,
    caps: Mapping[str, Any] | None = None,
    actor: str,
    reason: str = "",
    source: str = "api",
) -> None:
    """Let a paused or killed run go on, with new caps where some are given by their names in `Caps`.

    Raises NotFound, Conflict when it is neither, Refused while one of its caps is used up.
    """
    author = Author(actor, source, reason)
    check_reason(author)
    with transaction.atomic():
        seen, _ = lock_run(run, tenant)
        _check_move(run, seen, RunState.ACTIVE)
        if caps:
            _give_caps(run, caps, author)
        _refuse_used_up(run)
        _apply(run, seen, RunState.ACTIVE, author, "run.resume")


@again
def edit_caps(
    run: RunId,
    tenant: TenantId | None,
    version: int,
    caps: Mapping[str, Any],
    *,
    actor: str,
    reason: str = "",
    source: str = "api",
) -> None:
    """Give a run other caps, by their names in `Caps`. Raises NotFound, VersionConflict, Refused."""
    author = Author(actor, source, reason)
    check_reason(author)
    with transaction.atomic():
        _, current = lock_run(run, tenant)
        if version != current:
            raise VersionConflict(f"The run {run}", sent=version, current=current)
        _give_caps(run, caps, author)


def lock_run(run: RunId, tenant: TenantId | None) -> tuple[RunState, int]:
    """Take the turn to plan, then lock the run; its state and version. Raises NotFound."""
    dispatch_store.take_turn()
    locked = store.lock(run, tenant=tenant)
    if locked is None:
        raise NotFound(f"There is no run {run}.", code="unknown_run")
    return locked


def _move(
    run: RunId, tenant: TenantId | None, state: RunState, author: Author, action: str, *, result: str | None = None
) -> None:
    check_reason(author)
    with transaction.atomic():
        seen, _ = lock_run(run, tenant)
        _check_move(run, seen, state)
        _apply(run, seen, state, author, action, result=result)


def _check_move(run: RunId, seen: RunState, state: RunState) -> None:
    if state not in MOVES[seen]:
        code = "run_ended" if seen not in OPEN else "run_state"
        raise Conflict(f"The run {run} is {seen}; it cannot become {state}.", code=code)


def _apply(
    run: RunId, seen: RunState, state: RunState, author: Author, action: str, *, result: str | None = None
) -> None:
    store.move(run, seen=seen, state=state, reason=author.reason[:REASON_CHARS_MAX], result=result)
    store.tell_planner(run)
    record(author, action, f"run:{run}", before={"state": seen.value}, after={"state": state.value})


def _give_caps(run: RunId, changes: Mapping[str, Any], author: Author) -> None:
    row = store.load([run], tenant=None)[0]
    caps = replace(row.caps, **changes)
    quota = control.load_run_quota(row.tenant_id)
    refuse(faults_in_caps(caps, quota), code="bad_caps")
    now = dispatch_store.load_now()
    store.edit_caps(run, caps, heed_at=heed_at(caps, row.created_at, now=now))
    store.tell_planner(run)
    before, after = differences(asdict(row.caps), asdict(caps))
    record(author, "run.edit", f"run:{run}", before=before, after=after)


def _refuse_used_up(run: RunId) -> None:
    use = step_store.lock_uses([run])[0].use
    used_up = fatal(near_caps(use, now=dispatch_store.load_now()))
    if used_up is not None:
        detail = (
            f"Its cap of {used_up.cap.value} is used up: {used_up.used:g} of {used_up.most:g}; give it a higher one."
        )
        raise Refused(detail, code="run_cap_reached", errors=(FieldError(("caps", used_up.cap.value), detail),))


def caps_of(quota: RunQuota) -> Caps:
    """What a run of that tenant gets if it asks for nothing."""
    return caps_for(UNCHANGED, quota)
