"""What remote workers write while an attempt goes on: checkpoints, charges, receipts. Under a current lease of theirs.

Each write is a transaction of its own, made in the order in which they came; the answer leaves after the commit. It
decides nothing: what a claim is answered, and what is kept, is the services' business.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, assert_never

import orjson

from scheduler.engine.remote.batches import Batches
from scheduler.errors import Conflict, CronoqError, FieldError, Refused
from scheduler.policy.payload import fault_in_json
from scheduler.policy.remote import Claim as Claimant
from scheduler.protocol.messages import encode
from scheduler.protocol.writes import Abandon, Charge, Checkpoint, Claim, Commit, Write
from scheduler.services import receipts
from scheduler.services import workers as service
from scheduler.services.using import charge_call

BATCH_MAX: Final = 50


class Writes:
    """The writes of one event loop."""

    def __init__(self) -> None:
        self._batches: Batches[tuple[Write, Claimant], Mapping[str, Any] | CronoqError] = Batches(
            "remote-write", _write_all, most=BATCH_MAX
        )

    async def send(self, said: Write, claimant: Claimant) -> Mapping[str, Any]:
        """Write it; what it is answered. Raises Conflict for a stale lease, and whatever the service refuses."""
        answer = await self._batches.join((said, claimant))
        if isinstance(answer, CronoqError):
            raise answer
        return answer


def _write_all(said: Sequence[tuple[Write, Claimant]]) -> list[Mapping[str, Any] | CronoqError]:
    """On the thread: one after the other; who is refused keeps no other from writing."""
    own = service.own([claimant for _, claimant in said])
    return [_answered(each, claimant) if claimant.lease in own else _stale(claimant) for each, claimant in said]


def _answered(said: Write, claimant: Claimant) -> Mapping[str, Any] | CronoqError:
    try:
        return _write(said, claimant)
    except CronoqError as error:
        return error


def _write(said: Write, claimant: Claimant) -> Mapping[str, Any]:
    lease, tenant = claimant.lease, claimant.tenant
    match said:
        case Checkpoint():
            text = _text(said.value, "checkpoint")
            return {"version": receipts.save_checkpoint(None, text, lease=lease, tenant=tenant, after=said.after)}
        case Charge():
            return {"added": charge_call(lease, said.call, said.usage, tenant=tenant)}
        case Claim():
            made = receipts.claim(None, said.step, said.fingerprint, lease=lease, tenant=tenant)
            receipt = None if made.receipt is None else orjson.loads(made.receipt)
            return {"status": made.answer.value, "idempotency_key": made.idempotency_key, "receipt": receipt}
        case Commit():
            text = _text(said.receipt, "receipt")
            stands = receipts.commit(None, said.step, text, lease=lease, tenant=tenant)
            return {"receipt": orjson.loads(stands)}
        case Abandon():
            receipts.abandon(None, said.step, lease=lease, tenant=tenant)
            return {}
        case never:
            assert_never(never)


def _text(value: object, what: str) -> str:
    fault = fault_in_json(value)
    if fault is not None:
        errors = (FieldError((what, *fault.loc), fault.msg),)
        raise Refused(f"The {what} cannot be kept: {fault.msg}", code=f"bad_{what}", errors=errors)
    return orjson.dumps(value).decode()


def _stale(claimant: Claimant) -> Conflict:
    detail = f"Lease {claimant.lease} has ended or is not yours: nothing was written. Drop the attempt."
    return Conflict(detail, code="stale_lease")


def answer_text(said: Write, body: Mapping[str, Any]) -> str:
    """The answer to a write."""
    return encode("answer", ref=said.ref, lease_id=said.lease, **body)


def refusal_text(said: Write, error: CronoqError) -> str:
    """Why nothing was written."""
    return encode("answer", ref=said.ref, lease_id=said.lease, code=error.code, detail=error.detail)
