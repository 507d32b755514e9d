"""What a client says about a task, and what it is told. Field names and defaults are those of the SDK."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from typing import Annotated, Any, Final, Literal

import orjson
from pydantic import ConfigDict, Field, model_validator
from pydantic.config import JsonDict

from scheduler.api.answers import In, Out, at, moment
from scheduler.api.bodies import PAYLOAD_BYTES_MAX
from scheduler.api.fields import YEAR_S, Ahead, Json, Moment, Name, Number, Priority, Reason, Seconds, Text, Usd
from scheduler.api.forecast_schemas import BandOut
from scheduler.api.graph_schemas import AfterIn, AfterOut, GroupName, Join, present_after
from scheduler.api.retry_schemas import RetryIn, retry_settings
from scheduler.errors import FieldError, Refused
from scheduler.policy.admission import LABELS_MAX, Submission
from scheduler.policy.calibration import Band
from scheduler.policy.fixed_starts import OnMiss
from scheduler.policy.graph import EDGES_PER_TASK_MAX
from scheduler.policy.money import parse_usd
from scheduler.policy.payload import fault_in_json
from scheduler.policy.types import PriorityClass, RunId
from scheduler.reads.tasks import ID_MAX, AttemptRow, LeaseRow, TaskDetail, TaskRow
from scheduler.services.submit import BATCH_TASKS_MAX, Accepted

TAGS_MAX: Final = 32
EXAMPLE: Final[JsonDict] = {
    "pool": "llm",
    "kind": "chat",
    "priority": "high",
    "payload": {"messages": [{"role": "user", "content": "Say hello."}]},
    "resources": {"openai": 1, "openai-concurrency": 1},
    "deadline_in": 2,
}


class TaskIn(In):
    """A task to run."""

    model_config = ConfigDict(json_schema_extra={"examples": [EXAMPLE]})

    payload: Json = Field(description="Any JSON, at most 256 KiB, handed to the executor as it is")
    pool: Name = "default"
    kind: Name = "default"
    priority: Priority = "normal"
    key: Annotated[Text, Field(min_length=1, max_length=200)] | None = Field(
        None, description="Unique per tenant: the same key and content give the first task again"
    )
    deadline_in: Ahead | None = None
    deadline_at: Moment | None = None
    start_in: Ahead | None = None
    start_at: Moment | None = None
    tolerance: Annotated[Number, Field(ge=0, le=3_600)] | None = Field(
        None, description="Seconds that the start may be late (1 if on_miss is given): makes it a fixed start"
    )
    on_miss: OnMiss | None = Field(None, description="What happens to a fixed start that is later: run_late if unsaid")
    expires_in: Annotated[Number, Field(gt=0, le=YEAR_S)] | None = Field(
        None, description="Seconds from now after which it is missed if it has not started"
    )
    duration_hint: Seconds | None = None
    max_cost_usd: Usd | None = Field(None, description="The most that one attempt may cost")
    timeout: Seconds | None = Field(None, description="Seconds that one attempt may take")
    retry: RetryIn | None = None
    resources: dict[Name, Annotated[Number, Field(gt=0, le=1e12)]] = Field(
        default={}, description="Amounts of shared limits, all taken before the task starts"
    )
    tags: dict[Name, Annotated[Text, Field(max_length=256)]] | None = Field(None, max_length=TAGS_MAX)
    labels: dict[Name, Annotated[Text, Field(max_length=64)]] = Field(
        default={}, max_length=LABELS_MAX, description="Labels that its worker must have, all of them"
    )
    capability: Text | None = Field(None, description="Instead of a model: the route of this name chooses one")
    after: list[AfterIn] = Field(
        default=[], max_length=EDGES_PER_TASK_MAX, description="Tasks to come after; it starts once all ended as asked"
    )

    run: Annotated[int, Field(ge=1, le=ID_MAX)] | None = Field(None, description="The run that it is a step of")
    effect: Literal["read", "write"] = Field("read", description="Of a step: writing ones of a run go one at a time")

    @model_validator(mode="after")
    def _one_of_each(self) -> TaskIn:
        for one, other in (("deadline_in", "deadline_at"), ("start_in", "start_at")):
            if getattr(self, one) is not None and getattr(self, other) is not None:
                raise ValueError(f"Give {one} or {other}, not both.")
        return self

    def submission(self, place: int | None = None) -> Submission:
        """The task as the services take it; `place` is where it stands in a batch. Raises Refused."""
        return Submission(
            payload=_payload(self.payload, () if place is None else ("tasks", place)),
            pool=self.pool,
            kind=self.kind,
            priority=PriorityClass[self.priority.upper()],
            key=self.key,
            deadline_at=_unix(self.deadline_at),
            deadline_in_s=self.deadline_in,
            start_at=_unix(self.start_at),
            start_in_s=self.start_in,
            tolerance_s=self.tolerance,
            on_miss=self.on_miss,
            expires_in_s=self.expires_in,
            duration_hint_s=self.duration_hint,
            max_cost_nano=None if self.max_cost_usd is None else parse_usd(self.max_cost_usd),
            timeout_s=self.timeout,
            retry=retry_settings(self.retry),
            resources=self.resources,
            tags=self.tags,
            labels=self.labels,
            capability=self.capability,
            after=tuple(each.dependency() for each in self.after),
            run=None if self.run is None else RunId(self.run),
            writes=self.effect == "write",
        )


class SubmitIn(TaskIn):
    """A task to run, with its tenant where the token does not say it."""

    tenant: Text | None = Field(None, description="Whose task it is; needed with a token of every tenant")
    group: GroupName | None = None
    join: Join | None = Field(None, description="What the first failure does to the rest of the group")

    @model_validator(mode="after")
    def _group_of_join(self) -> SubmitIn:
        if self.join is not None and self.group is None:
            raise ValueError("Give the group that is to be joined.")
        return self

    def submission(self, place: int | None = None) -> Submission:
        """The task with its group."""
        return replace(super().submission(place), group=self.group, join=self.join)


class BatchIn(In):
    """Tasks to take in, all or none."""

    tasks: Annotated[list[TaskIn], Field(min_length=1, max_length=BATCH_TASKS_MAX)]
    tenant: Text | None = None
    join: Join | None = Field(
        None, description="fail_fast: the first failure cancels the rest; best_effort (default): it does not"
    )
    group: GroupName | None = Field(None, description="To look at and cancel them together; made up when left out")

    def submissions(self) -> list[Submission]:
        """The tasks as the services take them. Raises Refused."""
        return [replace(t.submission(n), group=self.group, join=self.join) for n, t in enumerate(self.tasks)]


class ReasonIn(In):
    """Why."""

    reason: Reason = ""


class AcceptedOut(Out):
    """A task that was taken in. `duplicate`: the key was used before, and this is that task."""

    id: int
    state: str
    key: str | None
    duplicate: bool
    degraded: bool = Field(default=False, description="The pool is overloaded: attempts are to answer only")
    overload: int = Field(0, description="The overload level of the pool, 0 to 3")
    forecast: BandOut | None = Field(None, description="How long it may wait; null while too little is known")

    @classmethod
    def of(cls, accepted: Accepted, band: Band | None = None) -> AcceptedOut:
        """From what the service answered, and how long the task may wait."""
        state = accepted.state.value
        return cls(
            id=accepted.id,
            state=state,
            key=accepted.key,
            duplicate=accepted.duplicate,
            degraded=accepted.degraded,
            overload=accepted.overload,
            forecast=None if band is None else BandOut.of(band),
        )


class BatchOut(Out):
    """The tasks of a batch, in order; `group` is the name of the one they are in."""

    tasks: list[AcceptedOut]
    group: str | None = None

    @classmethod
    def of(cls, accepted: list[Accepted], bands: list[Band | None], group: str | None) -> BatchOut:
        """From what the service answered and how long each may wait; `group` as it was asked for."""
        found = next((a.group for a in accepted if a.group is not None), group)
        tasks = [AcceptedOut.of(a, band) for a, band in zip(accepted, bands, strict=True)]
        return cls(tasks=tasks, group=found)


class AttemptOut(Out):
    """One attempt. `outcome` is null while it runs."""

    number: int
    lease_id: int
    worker: str
    started_at: datetime
    finished_at: datetime | None = None
    outcome: str | None = None
    failure_class: str | None = None
    message: str | None = None
    retry_after: float | None = None
    usage: Json = None
    degraded: bool = Field(default=False, description="It was to answer only")
    model: str | None = Field(default=None, description="The model that its route chose")
    fallback: bool = Field(default=False, description="It was not the first of its route")


class TaskOut(Out):
    """A task."""

    id: int
    tenant: str
    pool: str
    kind: str
    priority: str
    state: str
    key: str | None
    attempts: int
    max_attempts: int
    replays: int
    created_at: datetime
    ready_at: datetime | None
    due_at: datetime | None
    deadline_at: datetime | None
    finished_at: datetime | None
    resources: dict[str, float]
    tags: dict[str, str] | None
    run: int | None = Field(None, description="The run that it is a step of")
    effect: str | None = Field(None, description="Of a step: whether it reads or writes")


class TaskDetailOut(TaskOut):
    """A task with its attempts, newest first, and its result once it has succeeded."""

    group: str | None
    after: list[AfterOut]
    cancel_requested: bool
    history: list[AttemptOut]
    result: Json = None


class TaskPageOut(Out):
    """A page of tasks, newest first."""

    tasks: list[TaskOut]
    next_cursor: str | None = Field(description="Pass it as `cursor` for the next page; null at the end")


class ResultOut(Out):
    """What a succeeded task returned."""

    id: int
    state: str
    result: Json


class CancelOut(Out):
    """`requested`: the task still runs and was told to stop."""

    id: int
    state: str
    requested: bool


class ReplayOut(Out):
    """The task is ready again."""

    id: int
    state: str


def present_task(row: TaskRow) -> dict[str, Any]:
    """The fields of `TaskOut`."""
    return {
        "id": row.id,
        "tenant": row.tenant,
        "pool": row.pool,
        "kind": row.kind,
        "priority": row.priority.label,
        "state": row.state.value,
        "key": row.key,
        "attempts": row.attempts,
        "max_attempts": row.max_attempts,
        "replays": row.replays,
        "created_at": moment(row.created_at),
        "ready_at": at(row.ready_at),
        "due_at": at(row.due_at),
        "deadline_at": at(row.deadline_at),
        "finished_at": at(row.finished_at),
        "resources": dict(zip(row.resource_names, row.amounts, strict=True)),
        "tags": row.tags,
        "run": row.run,
        "effect": None if row.run is None else "write" if row.writes else "read",
    }


def present_detail(found: TaskDetail) -> TaskDetailOut:
    """The task with its attempts; the running one comes first."""
    lease = found.running
    history = [_attempt(a) for a in found.attempts]
    if lease is not None:
        history.insert(0, _running(lease))
    return TaskDetailOut(
        **present_task(found.task),
        group=found.group,
        after=[present_after(each) for each in found.after],
        cancel_requested=lease is not None and lease.cancel_requested,
        history=history,
        result=None if found.result is None else orjson.Fragment(found.result),
    )


def _running(row: LeaseRow) -> AttemptOut:
    return AttemptOut(
        number=row.attempt,
        lease_id=row.lease,
        worker=row.worker,
        started_at=moment(row.started_at),
        degraded=row.degraded,
    )


def _attempt(row: AttemptRow) -> AttemptOut:
    return AttemptOut(
        number=row.number,
        lease_id=row.lease,
        worker=row.worker,
        started_at=moment(row.started_at),
        finished_at=moment(row.finished_at),
        outcome=row.outcome,
        failure_class=row.failure_class,
        message=row.message,
        retry_after=row.retry_after_s,
        usage=None if row.usage is None else orjson.Fragment(row.usage),
        degraded=row.degraded,
        model=row.model,
        fallback=bool(row.route_choice),
    )


def _payload(value: object, where: tuple[str | int, ...]) -> str:
    fault = fault_in_json(value)
    if fault is not None:
        loc = (*where, "payload", *fault.loc)
        raise Refused(
            f"The payload cannot be kept: {fault.msg}", code="bad_payload", errors=(FieldError(loc, fault.msg),)
        )
    text = orjson.dumps(value)
    if len(text) > PAYLOAD_BYTES_MAX:
        detail = (
            f"The payload has {len(text)} bytes, more than {PAYLOAD_BYTES_MAX}; store it elsewhere and refer to it."
        )
        raise Refused(detail, code="payload_too_large", errors=(FieldError((*where, "payload"), detail),))
    return text.decode()


def _unix(moment: datetime | None) -> float | None:
    return None if moment is None else moment.timestamp()
