"""Remote workers over HTTP: register, poll for leases, keep them, report. PROTOCOL.md says how it goes together."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Annotated, Final

from django.http import HttpRequest, HttpResponse
from ninja import Path, Query
from pydantic import Field

from scheduler.api.access import OPERATE, READ, WORK, caller_of
from scheduler.api.answers import JSON, moment, respond
from scheduler.api.fields import PROBLEMS, Problem, Text
from scheduler.api.polling import Poll, PollQuery, answer_poll
from scheduler.api.router import Router
from scheduler.api.task_schemas import ReasonIn
from scheduler.api.threads import in_pool, in_thread
from scheduler.api.worker_schemas import (
    BeatOut,
    ChargedOut,
    ChargeIn,
    CheckpointedOut,
    CompleteIn,
    FailIn,
    HeartbeatIn,
    KeptOut,
    LeaseCheckpointIn,
    LeasesOut,
    PollIn,
    RegisteredOut,
    RegisterIn,
    ReleaseIn,
    SettledOut,
    WorkersOut,
    present_worker,
)
from scheduler.engine.remote.gateway import STOPS, gateway
from scheduler.errors import Conflict, Refused
from scheduler.policy.remote import Stop
from scheduler.policy.types import LeaseId
from scheduler.protocol.limits import VERSIONS
from scheduler.protocol.messages import Report
from scheduler.reads.pools import pool_names
from scheduler.reads.tasks import ID_MAX
from scheduler.services import workers as service
from scheduler.services.changes import Author
from scheduler.services.tokens import Principal

router = Router(tags=["workers"])

Id = Annotated[int, Field(ge=0, le=ID_MAX)]
LISTED_MAX: Final = 500


@router.post("/workers", auth=WORK, operation_id="register_worker", response={201: RegisteredOut, PROBLEMS: Problem})
async def register_worker(request: HttpRequest, body: RegisterIn) -> HttpResponse:
    """Make a worker known. It takes work of the token's tenant; with a token of every tenant, of all."""
    if body.protocol not in VERSIONS:
        known = ", ".join(map(str, VERSIONS))
        raise Refused(f"Protocol {body.protocol} is not spoken here; these are: {known}.", code="unsupported_protocol")
    caller, slots = caller_of(request), body.by_pool()
    held = body.held if body.worker is not None else None
    made = await in_thread(
        lambda: service.register(
            caller, owner=body.owner, slots=slots, labels=body.labels, worker=body.worker, held=held
        )
    )
    answer = RegisteredOut(id=made.id, protocol=body.protocol, granted_slots=slots)
    if held is not None:
        # What lies here for it is handed back with the rest that it does not name.
        gateway().sit(made, socket=False, named=held)
        answer = answer.model_copy(update=dict(await _beat(held, caller)))
    return respond(201, answer)


@router.post(
    "/workers/{worker_id}/lease", auth=WORK, operation_id="lease_work", response={200: LeasesOut, PROBLEMS: Problem}
)
async def lease_work(
    request: HttpRequest, worker_id: Path[Text], wanted: Query[PollQuery], body: PollIn | None = None
) -> HttpResponse:
    """Attempts to make, as soon as there are some, or none after `wait_s` seconds.

    One that brings reports is answered soon after they are settled, with or without attempts.
    """
    text = await answer_poll(Poll(caller_of(request), worker_id, wanted, body or PollIn(held=None)))
    return HttpResponse(text, content_type=JSON)


@router.post(
    "/workers/{worker_id}/heartbeat", auth=WORK, operation_id="keep_leases", response={200: BeatOut, PROBLEMS: Problem}
)
async def keep_leases(request: HttpRequest, worker_id: Path[Text], body: HeartbeatIn) -> HttpResponse:
    """Keep all these leases."""
    return respond(200, await _beat(body.leases, caller_of(request)))


@router.post(
    "/leases/{lease_id}/heartbeat", auth=WORK, operation_id="keep_lease", response={200: KeptOut, PROBLEMS: Problem}
)
async def keep_lease(request: HttpRequest, lease_id: Path[Id]) -> HttpResponse:
    """Keep a lease, and hear whether to stop."""
    lease = LeaseId(lease_id)
    kept = (await gateway().keep([lease], caller_of(request))).get(lease)
    if kept is None:
        raise _stale(lease)
    answer = KeptOut(
        lease_id=lease,
        lease_until=moment(kept.expires_at),
        cancel=kept.stop is not Stop.NO,
        reason=STOPS.get(kept.stop),
        degraded=kept.degraded,
    )
    return respond(200, answer)


@router.post(
    "/leases/{lease_id}/complete",
    auth=WORK,
    operation_id="complete_lease",
    response={200: SettledOut, PROBLEMS: Problem},
)
async def complete_lease(request: HttpRequest, lease_id: Path[Id], body: CompleteIn) -> HttpResponse:
    """The attempt succeeded. To repeat it does no harm."""
    return await _report(request, body.said(lease_id))


@router.post(
    "/leases/{lease_id}/fail", auth=WORK, operation_id="fail_lease", response={200: SettledOut, PROBLEMS: Problem}
)
async def fail_lease(request: HttpRequest, lease_id: Path[Id], body: FailIn) -> HttpResponse:
    """The attempt failed."""
    return await _report(request, body.said(lease_id))


@router.post(
    "/leases/{lease_id}/release", auth=WORK, operation_id="release_lease", response={200: SettledOut, PROBLEMS: Problem}
)
async def release_lease(request: HttpRequest, lease_id: Path[Id], body: ReleaseIn) -> HttpResponse:
    """The attempt goes back without having counted."""
    return await _report(request, body.said(lease_id))


@router.post(
    "/leases/{lease_id}/checkpoint",
    auth=WORK,
    operation_id="checkpoint_lease",
    response={200: CheckpointedOut, PROBLEMS: Problem},
)
async def checkpoint_lease(request: HttpRequest, lease_id: Path[Id], body: LeaseCheckpointIn) -> HttpResponse:
    """Write where the run of this step can be taken up."""
    answer = await asyncio.shield(gateway().write(body.said(lease_id), caller_of(request)))
    return respond(200, CheckpointedOut(lease_id=lease_id, **answer))


@router.post(
    "/leases/{lease_id}/charge", auth=WORK, operation_id="charge_lease", response={200: ChargedOut, PROBLEMS: Problem}
)
async def charge_lease(request: HttpRequest, lease_id: Path[Id], body: ChargeIn) -> HttpResponse:
    """Charge a call that the attempt has made, however it ends. The same `call` again changes nothing."""
    answer = await asyncio.shield(gateway().write(body.said(lease_id), caller_of(request)))
    return respond(200, ChargedOut(lease_id=lease_id, **answer))


async def _beat(held: Sequence[int], caller: Principal) -> BeatOut:
    leases = [LeaseId(lease) for lease in held]
    kept = await gateway().keep(leases, caller)
    cancel = {str(lease): STOPS[each.stop] for lease, each in kept.items() if each.stop is not Stop.NO}
    lost: list[int] = [lease for lease in leases if lease not in kept]
    return BeatOut(kept=list(kept), cancel=cancel, lost=lost)


async def _report(request: HttpRequest, said: Report) -> HttpResponse:
    # Not cancelled with the request: a report that has come is settled also if its sender hangs up.
    (state,) = await asyncio.shield(gateway().report([said], caller_of(request)))
    if isinstance(state, Refused):
        raise state
    if state is None:
        raise _stale(LeaseId(said.lease))
    return respond(200, SettledOut(lease_id=said.lease, state=state))


def _stale(lease: LeaseId) -> Conflict:
    detail = f"Lease {lease} has ended or is not yours: what you send under it changes nothing. Drop the attempt."
    return Conflict(detail, code="stale_lease")


@router.get("/workers", auth=READ, operation_id="list_workers", response={200: WorkersOut, PROBLEMS: Problem})
@in_pool
def get_workers(request: HttpRequest) -> HttpResponse:
    """Remote workers that are known, newest first."""
    names = pool_names()
    rows = service.list_workers(caller_of(request), rows_max=LISTED_MAX)
    return respond(200, WorkersOut(workers=[present_worker(row, names) for row in rows]))


@router.post(
    "/workers/{worker_id}/drain", auth=OPERATE, operation_id="drain_worker", response={204: None, PROBLEMS: Problem}
)
@in_pool
def drain_worker(request: HttpRequest, worker_id: Path[Text], body: ReasonIn) -> HttpResponse:
    """Have a worker finish what it has and take nothing new."""
    caller = caller_of(request)
    service.drain(worker_id, caller.tenant_id, Author(caller.actor, "api", body.reason))
    return HttpResponse(status=204)
