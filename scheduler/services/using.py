"""Charges a running attempt for a call that it has made, so that it is paid for however the attempt ends.

Only the attempt whose lease is current is charged, and a call once, by its name. What it costs is found when the lease
ends, from what was reserved for it.
"""

from __future__ import annotations

from collections.abc import Sequence

import orjson
from django.db import transaction

from scheduler.errors import Conflict, FieldError, Refused
from scheduler.policy.payload import fault_in_json, fault_in_text
from scheduler.policy.types import LeaseId, TenantId
from scheduler.policy.usage import CALL_CHARS_MAX, CHARGES_MAX, USAGE_BYTES_MAX, in_all
from scheduler.services.again import again
from scheduler.store import charges as store


@again
def charge_call(lease: LeaseId, call: str, usage: object, *, tenant: TenantId | None) -> bool:
    """Charge a call of the attempt; False when one of that name was charged before, which changes nothing.

    Raises Conflict for a lease that is not current, Refused for what cannot be kept.
    """
    text = _text(usage)
    _check(call)
    with transaction.atomic():
        count = store.hold(lease, tenant, charges_max=CHARGES_MAX)
        if count is None:
            detail = f"The lease {lease} is not current, or not yours: nothing was charged."
            raise Conflict(detail, code="stale_lease")
        added = store.add(lease, call, text)
        if added and count >= CHARGES_MAX:
            detail = f"One attempt is charged {CHARGES_MAX:,} calls at most; charge several at once."
            raise Refused(detail, code="too_many_charges", errors=(FieldError(("call",), detail),))
        return added


def sum_of(usages: Sequence[str]) -> str:
    """What several records of use (JSON text) come to."""
    return orjson.dumps(in_all([orjson.loads(usage) for usage in usages])).decode()


def _text(usage: object) -> str:
    fault = fault_in_json(usage)
    if fault is not None or not isinstance(usage, dict):
        said = "It is not an object." if fault is None else fault.msg
        where = () if fault is None else fault.loc
        raise Refused(
            f"The usage cannot be kept: {said}", code="bad_usage", errors=(FieldError(("usage", *where), said),)
        )
    text = orjson.dumps(usage).decode()
    if len(text) > USAGE_BYTES_MAX:
        detail = f"The usage has {len(text)} bytes; at most {USAGE_BYTES_MAX} are kept. Say the counts only."
        raise Refused(detail, code="bad_usage", errors=(FieldError(("usage",), detail),))
    return text


def _check(call: str) -> None:
    said = fault_in_text(call) or ("is empty" if not call else None)
    if said is None and len(call) > CALL_CHARS_MAX:
        said = f"has more than {CALL_CHARS_MAX} characters"
    if said is not None:
        raise Refused(f"The call {said}.", code="bad_call", errors=(FieldError(("call",), f"It {said}."),))
