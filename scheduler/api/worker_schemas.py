"""What workers send and get over HTTP: the same messages as over the websocket, as bodies and answers."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Literal

from pydantic import Field, Strict

from scheduler.api.answers import In, Out, moment
from scheduler.api.fields import Json, Name, Number, Text
from scheduler.policy.remote import WorkerLine
from scheduler.policy.usage import CALL_CHARS_MAX
from scheduler.protocol.limits import LEASES_MAX, POOLS_MAX, SLOTS_MAX
from scheduler.protocol.messages import Complete, Fail, Release
from scheduler.protocol.writes import Charge, Checkpoint
from scheduler.reads.tasks import ID_MAX

LeaseNumber = Annotated[int, Strict(), Field(ge=0, le=ID_MAX)]
Slots = Annotated[int, Strict(), Field(ge=1, le=SLOTS_MAX)]
Leases = Annotated[list[LeaseNumber], Field(max_length=LEASES_MAX)]
Wait = Annotated[Number, Field(ge=0, le=366 * 86_400.0)]
Measured = Annotated[Number, Field(ge=0, le=1e15)]
FailureName = Literal[
    "error", "throttled", "overloaded", "capacity", "timeout", "permanent", "provider_billing", "cancelled"
]


class RegisterIn(In):
    """A worker introduces itself."""

    protocol: Annotated[int, Strict()] = 1
    owner: Annotated[Text, Field(max_length=200)] = Field(description="A name for people: host and process")
    pools: Annotated[list[Name], Field(min_length=1, max_length=POOLS_MAX)]
    slots: Slots | dict[Name, Slots] = Field(1, description="Leases at once in each pool, or by pool")
    labels: dict[Name, Annotated[Text, Field(max_length=64)]] = Field(default={}, description="What tasks may ask for")
    worker: Text | None = Field(None, description="Its id, when it comes back")
    held: Leases | None = Field(
        None, description="All leases that it still works on, when it comes back; what else it was given is handed back"
    )

    def by_pool(self) -> dict[str, int]:
        """Slots by pool."""
        slots = self.slots
        return {p: slots.get(p, 1) if isinstance(slots, dict) else slots for p in self.pools}


class RegisteredOut(Out):
    """A worker that is known. `kept`, `cancel` and `lost` say what became of the leases that it named."""

    id: str
    protocol: int
    granted_slots: dict[str, int]
    kept: list[int] | None = None
    cancel: dict[str, str] | None = None
    lost: list[int] | None = None


class PollIn(In):
    """What a worker that asks for work says of what it has."""

    held: Leases | None = Field(
        None, description="All leases that it works on; those whose answer never reached it are handed back"
    )
    reports: Annotated[list[dict[str, Any]], Field(max_length=SLOTS_MAX)] = Field(
        default=[], description="What attempts came to: `complete`, `fail` and `release` as over the websocket"
    )


class LeaseOut(Out):
    """An attempt to make."""

    type: str
    lease_id: int
    task: int
    attempt: int
    kind: str
    key: str | None
    pool: str
    tenant: str
    ttl_s: float
    timeout_s: float | None
    deadline_at: float | None
    degraded: bool
    payload: Json
    upstream: dict[str, Any] | None = None
    tags: dict[str, str] | None = None
    run: int | None = None
    checkpoint: Json = None
    trace: str | None = None
    max_output_tokens: int | None = None


class TakenOut(Out):
    """What became of one report that came with a poll: the task's state, or why it changed nothing."""

    lease_id: int
    state: str | None = None
    stale: bool | None = None
    code: str | None = None
    detail: str | None = None


class LeasesOut(Out):
    """What a poll brings: attempts to make, attempts to stop and why, and whether to take no more.

    `settled` answers the reports that came with it, in their order.
    """

    leases: list[LeaseOut]
    cancel: dict[str, str]
    drain: bool
    settled: list[TakenOut] | None = None


class HeartbeatIn(In):
    """Leases to keep."""

    leases: Leases


class BeatOut(Out):
    """Leases that were kept, those to stop and why, and those that are not the worker's any more."""

    kept: list[int]
    cancel: dict[str, str]
    lost: list[int]


class KeptOut(Out):
    """A lease that was kept."""

    lease_id: int
    lease_until: datetime
    cancel: bool = Field(description="Stop, and report or release")
    reason: str | None = Field(description="Why to stop: cancelled or timeout")
    degraded: bool


class CompleteIn(In):
    """An attempt succeeded."""

    result: Json = None
    usage: dict[str, Any] | None = None
    actual: dict[Name, Measured] = Field(default={}, description="Measured amounts of the limits it drew on")

    def said(self, lease: int) -> Complete:
        """The message."""
        return Complete(lease, self.result, self.usage, self.actual)


class FailIn(In):
    """An attempt failed."""

    failure_class: FailureName = Field("error", alias="class")
    message: Text = ""
    retry_after: Wait | None = None
    usage: dict[str, Any] | None = None
    actual: dict[Name, Measured] = {}

    def said(self, lease: int) -> Fail:
        """The message."""
        return Fail(lease, self.failure_class, self.message, self.retry_after, self.usage, self.actual)


class ReleaseIn(In):
    """An attempt goes back without having counted."""

    retry_after: Wait | None = None

    def said(self, lease: int) -> Release:
        """The message."""
        return Release(lease, self.retry_after)


class LeaseCheckpointIn(In):
    """Where the run of this step can be taken up."""

    checkpoint: Json = Field(description="Any JSON, at most 1 MiB")
    version: Annotated[int, Field(ge=0)] | None = Field(
        None, description="The version that you read; 409 if it is not it"
    )

    def said(self, lease: int) -> Checkpoint:
        """The message."""
        return Checkpoint(0, lease, self.checkpoint, self.version)


class CheckpointedOut(Out):
    """The version that was written."""

    lease_id: int
    version: int


class ChargeIn(In):
    """What a call of the attempt has used, beside what is said at its end."""

    call: Annotated[Text, Field(min_length=1, max_length=CALL_CHARS_MAX)] = Field(
        description="A name within the attempt: the same one is charged once"
    )
    usage: dict[str, Any] = Field(description="As in `complete`")

    def said(self, lease: int) -> Charge:
        """The message."""
        return Charge(0, lease, self.call, self.usage)


class ChargedOut(Out):
    """A call that is charged. `added` false: one of that name was charged before."""

    lease_id: int
    added: bool


class SettledOut(Out):
    """A report was taken, and what its task came to."""

    lease_id: int
    state: str


class WorkerOut(Out):
    """A remote worker."""

    id: str
    owner: str
    tenant: str | None = Field(description="Whose work it takes; null: anybody's")
    labels: dict[str, str]
    pools: dict[str, int] = Field(description="Leases at once by pool, as it declared")
    offered: dict[str, int] = Field(description="The same as it offers at the moment")
    busy: int
    draining: bool
    started_at: datetime
    seen_at: datetime


class WorkersOut(Out):
    """Remote workers, newest first."""

    workers: list[WorkerOut]


def present_worker(row: WorkerLine, names: dict[int, str]) -> WorkerOut:
    """A worker as it is sent; `names` are the pools'."""
    return WorkerOut(
        id=row.id,
        owner=row.name,
        tenant=row.tenant,
        labels=dict(label.split("=", 1) for label in row.labels),
        pools={names.get(pool, str(pool)): count for pool, count in row.declared.items()},
        offered={names.get(pool, str(pool)): count for pool, count in row.offered.items()},
        busy=row.busy,
        draining=row.draining,
        started_at=moment(row.started_at),
        seen_at=moment(row.seen_at),
    )
