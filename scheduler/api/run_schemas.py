"""What a client says about a run, and what it is told."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Final, Literal

import orjson
from pydantic import ConfigDict, Field
from pydantic.config import JsonDict

from scheduler.api.answers import In, Out, at, moment
from scheduler.api.fields import Json, Number, Reason, Text, Usd, Version
from scheduler.api.money_fields import nano, usd
from scheduler.errors import FieldError, Refused
from scheduler.policy.payload import fault_in_json
from scheduler.policy.receipts import ClaimAnswer
from scheduler.policy.runs import Asked, Caps, RunState
from scheduler.reads.runs import CheckpointRow, ListedReceipt, RunDetail, RunRow
from scheduler.reads.tasks import ID_MAX
from scheduler.services.receipts import Claimed

Lease = Annotated[
    int, Field(ge=1, le=ID_MAX, description="The lease under which you work; a stale one changes nothing")
]
Step = Annotated[Text, Field(min_length=1, max_length=200)]
EXAMPLE: Final[JsonDict] = {
    "name": "refund order 1017",
    "key": "order-1017",
    "goal": {"order": 1017},
    "caps": {"max_steps": 20, "max_width": 8, "max_cost_usd": "2.00", "wall_clock_s": 3600},
}


class CapsIn(In):
    """What a run may use. Left out: what its tenant lets every run have."""

    max_steps: Annotated[int, Field(ge=1)] | None = Field(None, description="Tasks submitted as its steps (20)")
    max_width: Annotated[int, Field(ge=1)] | None = Field(None, description="Steps that run at once (8)")
    max_tokens: Annotated[int, Field(ge=1)] | None = Field(
        None, description="Tokens of all its attempts; reaching it kills"
    )
    max_cost_usd: Usd | None = Field(None, description="Dollars; reaching it kills")
    wall_clock_s: Annotated[Number, Field(gt=0)] | None = Field(None, description="Seconds from now; reaching it kills")

    def asked(self) -> Asked:
        """As the services take it."""
        return Asked(self.max_steps, self.max_width, self.max_tokens, nano(self.max_cost_usd), self.wall_clock_s)

    def changes(self) -> dict[str, Any]:
        """What was given, by the names of `Caps`."""
        asked = self.asked()
        names = {"max_cost_usd": "max_cost_nano", "wall_clock_s": "wall_s"}
        wanted = [names.get(name, name) for name in self.model_fields_set]
        needed = [name for name in wanted if name in ("max_steps", "max_width") and getattr(asked, name) is None]
        if needed:
            detail = f"A run always has a {needed[0]}; give a number."
            raise Refused(detail, code="bad_caps", errors=(FieldError(("caps", needed[0]), detail),))
        return {name: getattr(asked, name) for name in wanted}


class RunIn(In):
    """A run to create."""

    model_config = ConfigDict(json_schema_extra={"examples": [EXAMPLE]})

    goal: Json = Field(None, description="Any JSON, at most 256 KiB")
    name: Annotated[Text, Field(max_length=200)] = ""
    key: Annotated[Text, Field(min_length=1, max_length=200)] | None = Field(
        None, description="Unique per tenant: the same key and content give the first run again"
    )
    caps: CapsIn | None = Field(None, description="What it may use; left out: what its tenant lets every run have")
    tenant: Text | None = Field(None, description="Whose run it is; needed with a token of every tenant")

    def asked(self) -> Asked:
        """The caps asked for."""
        return Asked() if self.caps is None else self.caps.asked()


class RunEditIn(In):
    """Other caps for a run; what is left out stays."""

    version: Version
    caps: CapsIn
    reason: Reason = ""


class ResumeIn(In):
    """Let a run go on, with other caps where some are used up."""

    caps: CapsIn | None = None
    reason: Reason = ""


class FinishIn(In):
    """How a run ended."""

    state: Literal["succeeded", "failed"] = "succeeded"
    result: Json = None
    reason: Reason = ""


class CheckpointIn(In):
    """Where the run can be taken up."""

    lease_id: Lease
    checkpoint: Json = Field(description="Any JSON, at most 1 MiB")
    version: Annotated[int, Field(ge=0)] | None = Field(
        None, description="The version that you read; 409 if it is not it"
    )


class ClaimIn(In):
    """An effect that is about to be made."""

    lease_id: Lease
    fingerprint: Step = Field(description="What exactly will be done; the same step with another one is refused")


class CommitIn(In):
    """What came of an effect."""

    lease_id: Lease
    receipt: Json = Field(description="Any JSON, at most 64 KiB; whoever claims the step again gets it")


class AbandonIn(In):
    """An effect that was not made."""

    lease_id: Lease


class CapsOut(Out):
    """What the run may use; null: no such cap."""

    max_steps: int
    max_width: int
    max_tokens: int | None
    max_cost_usd: str | None
    wall_clock_s: float | None


class UsedOut(Out):
    """What the run has used."""

    steps: int
    tokens: int
    attempts: int
    cost_usd: str | None


class RunAlertOut(Out):
    """A cap of which the run had used so much that its owner should know."""

    cap: str
    used: float
    most: float
    at: datetime


class RunOut(Out):
    """A run. `closing`: it has ended, and its last steps are being stopped."""

    id: int
    tenant: str
    name: str
    key: str | None
    state: RunState
    reason: str
    epoch: int = Field(description="How often it was killed")
    caps: CapsOut
    used: UsedOut
    deadline_at: datetime | None
    closing: bool
    checkpoint_version: int | None
    version: int
    created_at: datetime
    finished_at: datetime | None


class RunDetailOut(RunOut):
    """A run with its goal, its result, and its steps by state."""

    goal: Json
    result: Json
    steps: dict[str, int]
    alerts: list[RunAlertOut]


class RunCreatedOut(Out):
    """A run that was stored. `duplicate`: the key was used before, and this is that run."""

    id: int
    state: RunState
    duplicate: bool


class RunPageOut(Out):
    """A page of runs, newest first."""

    runs: list[RunOut]
    next_cursor: str | None = Field(description="Pass it as `cursor` for the next page; null at the end")


class RunKilledOut(Out):
    """A killed run: for the how-manieth time, and how many running attempts were told to stop."""

    id: int
    state: RunState
    epoch: int
    told: int


class CheckpointOut(Out):
    """Where the run can be taken up; version 0 with null when nothing was written yet."""

    version: int
    checkpoint: Json
    task: int | None
    saved_at: datetime | None


class SavedOut(Out):
    """The version that was written."""

    version: int


class ClaimOut(Out):
    """`new`: make the effect. `done`: it is made, here is its receipt. `in_progress`: another step is at it.

    `unknown`: whoever claimed it died. Verify, or repeat it with the same downstream key.
    """

    status: ClaimAnswer
    idempotency_key: str = Field(description="Pass it to whoever makes the effect; the same for every try")
    receipt: Json = None

    @classmethod
    def of(cls, claimed: Claimed) -> ClaimOut:
        """From what the service answered."""
        receipt = None if claimed.receipt is None else orjson.Fragment(claimed.receipt)
        return cls(status=claimed.answer, idempotency_key=claimed.idempotency_key, receipt=receipt)


class CommitOut(Out):
    """The receipt that stands."""

    receipt: Json


class ReceiptOut(Out):
    """An effect of the run."""

    step: str
    state: str
    idempotency_key: str
    lease_id: int
    unsure: bool = Field(description="An earlier claimer died, and may have made the effect")
    receipt: Json
    claimed_at: datetime
    committed_at: datetime | None


class ReceiptsOut(Out):
    """The effects of a run, as they were claimed."""

    receipts: list[ReceiptOut]


def json_text(value: object, what: str) -> str:
    """The JSON text of a part of a body. Raises Refused for what cannot be kept."""
    fault = fault_in_json(value)
    if fault is not None:
        error = FieldError((what, *fault.loc), fault.msg)
        raise Refused(f"The {what} cannot be kept: {fault.msg}", code=f"bad_{what}", errors=(error,))
    return orjson.dumps(value).decode()


def present_run(row: RunRow) -> RunOut:
    """The run as it is sent."""
    return RunOut(**_fields(row))


def present_run_detail(found: RunDetail) -> RunDetailOut:
    """The run with what belongs to it."""
    return RunDetailOut(
        **_fields(found.run),
        goal=orjson.Fragment(found.goal),
        result=None if found.result is None else orjson.Fragment(found.result),
        steps={state.value: n for state, n in sorted(found.steps.items())},
        alerts=[RunAlertOut(cap=a.cap.value, used=a.used, most=a.most, at=moment(a.at)) for a in found.alerts],
    )


def _fields(row: RunRow) -> dict[str, Any]:
    return {
        "id": row.id,
        "tenant": row.tenant,
        "name": row.name,
        "key": row.key,
        "state": row.state,
        "reason": row.reason,
        "epoch": row.epoch,
        "caps": _caps(row.caps),
        "used": UsedOut(steps=row.steps, tokens=row.tokens, attempts=row.attempts, cost_usd=usd(row.spent_nano)),
        "deadline_at": at(row.deadline_at),
        "closing": row.closing,
        "checkpoint_version": row.checkpoint_version,
        "version": row.version,
        "created_at": moment(row.created_at),
        "finished_at": at(row.finished_at),
    }


def _caps(caps: Caps) -> CapsOut:
    return CapsOut(
        max_steps=caps.max_steps,
        max_width=caps.max_width,
        max_tokens=caps.max_tokens,
        max_cost_usd=usd(caps.max_cost_nano),
        wall_clock_s=caps.wall_s,
    )


def present_checkpoint(row: CheckpointRow | None) -> CheckpointOut:
    """The checkpoint as it is sent."""
    if row is None:
        return CheckpointOut(version=0, checkpoint=None, task=None, saved_at=None)
    checkpoint = orjson.Fragment(row.text)
    return CheckpointOut(version=row.version, checkpoint=checkpoint, task=row.task, saved_at=moment(row.saved_at))


def present_receipt(row: ListedReceipt) -> ReceiptOut:
    """An effect as it is sent."""
    return ReceiptOut(
        step=row.step,
        state=row.state.value,
        idempotency_key=row.idempotency_key,
        lease_id=row.lease,
        unsure=row.unsure,
        receipt=None if row.receipt is None else orjson.Fragment(row.receipt),
        claimed_at=moment(row.claimed_at),
        committed_at=at(row.committed_at),
    )
