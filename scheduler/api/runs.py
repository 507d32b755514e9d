"""Runs over REST: create, look, stop and let go on, checkpoints and receipts."""

from __future__ import annotations

from typing import Annotated

import orjson
from django.http import HttpRequest, HttpResponse
from ninja import Path, Query
from pydantic import Field

from scheduler.api.access import OPERATE, READ, SUBMIT, WORK, caller_of, tenant_for_submit
from scheduler.api.answers import In, once_per_key, respond
from scheduler.api.fields import PROBLEMS, Problem, Text
from scheduler.api.router import Router
from scheduler.api.run_schemas import (
    AbandonIn,
    CheckpointIn,
    CheckpointOut,
    ClaimIn,
    ClaimOut,
    CommitIn,
    CommitOut,
    FinishIn,
    ReceiptsOut,
    ResumeIn,
    RunCreatedOut,
    RunDetailOut,
    RunEditIn,
    RunIn,
    RunKilledOut,
    RunOut,
    RunPageOut,
    SavedOut,
    json_text,
    present_checkpoint,
    present_receipt,
    present_run,
    present_run_detail,
)
from scheduler.api.task_schemas import ReasonIn
from scheduler.api.threads import at_once, in_pool
from scheduler.engine.doorbell import ring
from scheduler.policy.runs import RunState
from scheduler.policy.types import LeaseId, RunId
from scheduler.reads.runs import PAGE_MAX, list_runs, run_checkpoint, run_detail, run_receipts, run_row
from scheduler.reads.tasks import ID_MAX
from scheduler.services import receipts
from scheduler.services.kill import kill_run
from scheduler.services.runs import create_run, edit_caps, finish_run, pause_run, resume_run

router = Router(tags=["runs"])

Id = Annotated[int, Field(ge=1, le=ID_MAX)]
Step = Annotated[Text, Field(min_length=1, max_length=200)]


class RunFilterIn(In):
    """Which runs."""

    state: list[RunState] | None = None
    cursor: Text | None = None
    limit: Annotated[int, Field(ge=1, le=PAGE_MAX)] = 50


@router.post(
    "/runs",
    auth=SUBMIT,
    operation_id="create_run",
    response={201: RunCreatedOut, 200: RunCreatedOut, PROBLEMS: Problem},
)
@at_once
def post_run(request: HttpRequest, body: RunIn) -> HttpResponse:
    """Store a run. 200 instead of 201 when its key was used before for the same content."""
    tenant = tenant_for_submit(caller_of(request), body.tenant)
    goal = json_text(body.goal, "goal")

    def act() -> tuple[int, RunCreatedOut]:
        made = create_run(tenant, goal, asked=body.asked(), name=body.name, key=body.key)
        state = run_row(made.id, tenant).state
        return 200 if made.duplicate else 201, RunCreatedOut(id=made.id, state=state, duplicate=made.duplicate)

    return once_per_key(request, act, rings=False)


@router.get("/runs", auth=READ, operation_id="list_runs", response={200: RunPageOut, PROBLEMS: Problem})
@in_pool
def get_runs(request: HttpRequest, wanted: Query[RunFilterIn]) -> HttpResponse:
    """Runs, newest first."""
    page = list_runs(caller_of(request).tenant_id, states=wanted.state, cursor=wanted.cursor, rows_max=wanted.limit)
    return respond(200, RunPageOut(runs=[present_run(r) for r in page.runs], next_cursor=page.next_cursor))


@router.get("/runs/{run_id}", auth=READ, operation_id="get_run", response={200: RunDetailOut, PROBLEMS: Problem})
@in_pool
def get_run(request: HttpRequest, run_id: Path[Id]) -> HttpResponse:
    """A run with what it has used and its steps by state."""
    return respond(200, present_run_detail(run_detail(RunId(run_id), caller_of(request).tenant_id)))


@router.patch("/runs/{run_id}", auth=OPERATE, operation_id="edit_run", response={200: RunOut, PROBLEMS: Problem})
@in_pool
def patch_run(request: HttpRequest, run_id: Path[Id], body: RunEditIn) -> HttpResponse:
    """Give a run other caps. 409 with both versions when it was changed meanwhile."""
    caller = caller_of(request)
    edit_caps(
        RunId(run_id), caller.tenant_id, body.version, body.caps.changes(), actor=caller.actor, reason=body.reason
    )
    ring()
    return respond(200, present_run(run_row(RunId(run_id), caller.tenant_id)))


@router.post(
    "/runs/{run_id}/kill", auth=SUBMIT, operation_id="kill_run", response={200: RunKilledOut, PROBLEMS: Problem}
)
@in_pool
def post_kill(request: HttpRequest, run_id: Path[Id], body: ReasonIn | None = None) -> HttpResponse:
    """Start nothing more of this run, tell what runs to stop, cancel what waits. Only a resume lifts it."""
    caller = caller_of(request)

    def act() -> tuple[int, RunKilledOut]:
        done = kill_run(RunId(run_id), caller.tenant_id, actor=caller.actor, reason=_reason(body))
        return 200, RunKilledOut(id=run_id, state=RunState.KILLED, epoch=done.epoch, told=done.told)

    return once_per_key(request, act)


@router.post("/runs/{run_id}/pause", auth=OPERATE, operation_id="pause_run", response={200: RunOut, PROBLEMS: Problem})
@in_pool
def post_pause(request: HttpRequest, run_id: Path[Id], body: ReasonIn | None = None) -> HttpResponse:
    """Start no further step; those that run go on."""
    caller = caller_of(request)

    def act() -> tuple[int, RunOut]:
        pause_run(RunId(run_id), caller.tenant_id, actor=caller.actor, reason=_reason(body))
        return 200, present_run(run_row(RunId(run_id), caller.tenant_id))

    return once_per_key(request, act)


@router.post(
    "/runs/{run_id}/resume", auth=OPERATE, operation_id="resume_run", response={200: RunOut, PROBLEMS: Problem}
)
@in_pool
def post_resume(request: HttpRequest, run_id: Path[Id], body: ResumeIn | None = None) -> HttpResponse:
    """Let a paused or killed run go on; give other caps where one is used up."""
    caller = caller_of(request)
    wanted = body or ResumeIn()

    def act() -> tuple[int, RunOut]:
        caps = None if wanted.caps is None else wanted.caps.changes()
        resume_run(RunId(run_id), caller.tenant_id, caps=caps, actor=caller.actor, reason=wanted.reason)
        return 200, present_run(run_row(RunId(run_id), caller.tenant_id))

    return once_per_key(request, act)


@router.post("/runs/{run_id}/finish", auth=SUBMIT, operation_id="finish_run", response={200: RunOut, PROBLEMS: Problem})
@in_pool
def post_finish(request: HttpRequest, run_id: Path[Id], body: FinishIn | None = None) -> HttpResponse:
    """End a run with its result. Steps that wait are cancelled; those that run go on."""
    caller = caller_of(request)
    wanted = body or FinishIn()
    result = None if wanted.result is None else json_text(wanted.result, "result")

    def act() -> tuple[int, RunOut]:
        finish_run(
            RunId(run_id),
            caller.tenant_id,
            RunState(wanted.state),
            actor=caller.actor,
            result=result,
            reason=wanted.reason,
        )
        return 200, present_run(run_row(RunId(run_id), caller.tenant_id))

    return once_per_key(request, act)


@router.get(
    "/runs/{run_id}/checkpoint",
    auth=READ,
    operation_id="get_checkpoint",
    response={200: CheckpointOut, PROBLEMS: Problem},
)
@in_pool
def get_checkpoint(request: HttpRequest, run_id: Path[Id]) -> HttpResponse:
    """Where the run can be taken up."""
    return respond(200, present_checkpoint(run_checkpoint(RunId(run_id), caller_of(request).tenant_id)))


@router.put(
    "/runs/{run_id}/checkpoint", auth=WORK, operation_id="save_checkpoint", response={200: SavedOut, PROBLEMS: Problem}
)
@in_pool
def put_checkpoint(request: HttpRequest, run_id: Path[Id], body: CheckpointIn) -> HttpResponse:
    """Write where the run can be taken up, under a current lease of one of its steps."""
    tenant = caller_of(request).tenant_id
    run_row(RunId(run_id), tenant)
    text = json_text(body.checkpoint, "checkpoint")
    lease = LeaseId(body.lease_id)
    version = receipts.save_checkpoint(RunId(run_id), text, lease=lease, tenant=tenant, after=body.version)
    return respond(200, SavedOut(version=version))


@router.get(
    "/runs/{run_id}/receipts", auth=READ, operation_id="list_receipts", response={200: ReceiptsOut, PROBLEMS: Problem}
)
@in_pool
def get_receipts(request: HttpRequest, run_id: Path[Id]) -> HttpResponse:
    """The effects of the run on the world outside."""
    found = run_receipts(RunId(run_id), caller_of(request).tenant_id)
    return respond(200, ReceiptsOut(receipts=[present_receipt(row) for row in found]))


@router.post(
    "/runs/{run_id}/receipts/{step}/claim",
    auth=WORK,
    operation_id="claim_receipt",
    response={200: ClaimOut, PROBLEMS: Problem},
)
@in_pool
def post_claim(request: HttpRequest, run_id: Path[Id], step: Path[Step], body: ClaimIn) -> HttpResponse:
    """Ask to make an effect, before making it: once per run and step."""
    tenant = caller_of(request).tenant_id
    run_row(RunId(run_id), tenant)
    done = receipts.claim(RunId(run_id), step, body.fingerprint, lease=LeaseId(body.lease_id), tenant=tenant)
    return respond(200, ClaimOut.of(done))


@router.post(
    "/runs/{run_id}/receipts/{step}/commit",
    auth=WORK,
    operation_id="commit_receipt",
    response={200: CommitOut, PROBLEMS: Problem},
)
@in_pool
def post_commit(request: HttpRequest, run_id: Path[Id], step: Path[Step], body: CommitIn) -> HttpResponse:
    """Put down what came of an effect. Repeating it changes nothing: the first receipt stands."""
    tenant = caller_of(request).tenant_id
    run_row(RunId(run_id), tenant)
    text = json_text(body.receipt, "receipt")
    stands = receipts.commit(RunId(run_id), step, text, lease=LeaseId(body.lease_id), tenant=tenant)
    return respond(200, CommitOut(receipt=orjson.Fragment(stands)))


@router.post(
    "/runs/{run_id}/receipts/{step}/abandon",
    auth=WORK,
    operation_id="abandon_receipt",
    response={204: None, PROBLEMS: Problem},
)
@in_pool
def post_abandon(request: HttpRequest, run_id: Path[Id], step: Path[Step], body: AbandonIn) -> HttpResponse:
    """Give up a claim whose effect was not made; whoever claims it next makes it."""
    tenant = caller_of(request).tenant_id
    run_row(RunId(run_id), tenant)
    receipts.abandon(RunId(run_id), step, lease=LeaseId(body.lease_id), tenant=tenant)
    return HttpResponse(status=204)


def _reason(body: ReasonIn | None) -> str:
    return "" if body is None else body.reason
