"""What remote workers report on their leases: checked, settled in batches, answered after the commit.

A report under a lease that is not the sender's is the same as one that came too late. A repeated report gets the answer
of the first, as long as this process remembers it.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, Final

import orjson

from scheduler.engine.doorbell import DOORBELL, Bell
from scheduler.engine.outbox import settle_apart
from scheduler.engine.remote.batches import Batches
from scheduler.errors import FieldError, Refused
from scheduler.policy.payload import fault_in_json
from scheduler.policy.remote import Claim
from scheduler.policy.retry import Failure
from scheduler.policy.types import FailureClass, LeaseId, Outcome
from scheduler.protocol.limits import MESSAGE_CHARS_MAX, RESULT_BYTES_MAX
from scheduler.protocol.messages import Complete, Fail, Release
from scheduler.protocol.messages import Report as Said
from scheduler.services import workers as service
from scheduler.services.settle import Report

BATCH_MAX: Final = 500
GAP_S: Final = 0.001
"""Between two settlements, for each report in the first."""
REMEMBERED_MAX: Final = 20_000


@dataclass(frozen=True, slots=True)
class Reported:
    """A report and who sends it; `known`: the lease was handed to this sender here."""

    report: Report
    claim: Claim
    known: bool


class Reports:
    """The reports of one event loop."""

    def __init__(self) -> None:
        self._batches: Batches[Sequence[Reported], list[str | None]] = Batches(
            "remote-settle", _settle_several, most=BATCH_MAX, weigh=len, gap_s=GAP_S
        )
        self._answered: OrderedDict[tuple[LeaseId, object], str] = OrderedDict()

    async def send(self, said: Sequence[Reported]) -> list[str | None]:
        """The states of the tasks after these reports; None where the lease was not the sender's any more."""
        new = [each for each in said if _place(each) not in self._answered]
        if new:
            for each, state in zip(new, await self._batches.join(new), strict=True):
                if state is not None:
                    self._answered.setdefault(_place(each), state)
        answers = [self._answered.get(_place(each)) for each in said]
        while len(self._answered) > REMEMBERED_MAX:
            self._answered.popitem(last=False)
        return answers

    def hand_back(self, lease: LeaseId) -> asyncio.Future[list[str | None]]:
        """Nobody began this attempt."""
        return self._batches.join([Reported(Report(lease, Outcome.RELEASED), Claim(lease, None, None), known=True)])


def _place(said: Reported) -> tuple[LeaseId, object]:
    return said.report.lease, said.claim.tenant


def _settle_several(said: list[Sequence[Reported]]) -> list[list[str | None]]:
    """On the thread: what each sender's tasks came to."""
    states = iter(_settle([each for several in said for each in several]))
    return [list(islice(states, len(several))) for several in said]


def _settle(said: list[Reported]) -> list[str | None]:
    """What the tasks came to. Of several reports on a lease the first counts."""
    unknown = [each.claim for each in said if not each.known]
    own = service.own(unknown) if unknown else set()
    first: dict[LeaseId, Report] = {}
    for each in said:
        if each.known or each.report.lease in own:
            first.setdefault(each.report.lease, each.report)
    if not first:
        return [None] * len(said)
    settled = settle_apart(list(first.values()))
    DOORBELL.ring(Bell.SETTLED)
    if settled.woken:
        DOORBELL.ring(Bell.WORK)
    states = {lease: state.value for lease, state in settled.states.items()}
    return [states.get(each.report.lease) if each.known or each.report.lease in own else None for each in said]


def report_of(said: Said) -> Report:
    """A worker's words as the services take them. Raises Refused for a result that cannot be stored."""
    lease = LeaseId(said.lease)
    match said:
        case Complete():
            usage = _stored("usage", said.usage)
            return Report(lease, Outcome.SUCCEEDED, result=_result(said.result), usage=usage, actual=said.actual)
        case Fail(failure_class="cancelled"):
            return Report(lease, Outcome.CANCELLED, usage=_stored("usage", said.usage), actual=said.actual)
        case Fail():
            outcome = Outcome.TIMED_OUT if said.failure_class == "timeout" else Outcome.FAILED
            message = said.message[:MESSAGE_CHARS_MAX] or "no message"
            failure = Failure(FailureClass(said.failure_class), message, said.retry_after_s)
            return Report(lease, outcome, failure, usage=_stored("usage", said.usage), actual=said.actual)
        case Release():
            if said.retry_after_s is None:
                return Report(lease, Outcome.RELEASED)
            why = Failure(FailureClass.ERROR, "handed back by its worker", said.retry_after_s)
            return Report(lease, Outcome.RELEASED, why)


def _result(value: object) -> str:
    text = _stored("result", value)
    if text is None:
        return "null"
    if len(text) > RESULT_BYTES_MAX:
        detail = f"The result has {len(text)} bytes; at most {RESULT_BYTES_MAX} can be stored. Store it elsewhere."
        raise Refused(detail, code="result_too_large", errors=(FieldError(("result",), detail),))
    return text


def _stored(name: str, value: Mapping[str, Any] | object) -> str | None:
    if value is None:
        return None
    fault = fault_in_json(value)
    if fault is not None:
        detail = f"The {name} cannot be kept: {fault.msg}"
        raise Refused(detail, code=f"bad_{name}", errors=(FieldError((name, *fault.loc), fault.msg),))
    return orjson.dumps(value).decode()
