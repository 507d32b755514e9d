"""Builders of tenants, pools, limits and tasks, and a worker that does by hand what an engine does in its loops."""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from typing import Any

from scheduler.models import Pool, Task, Tenant
from scheduler.policy.admission import Submission
from scheduler.policy.retry import Failure
from scheduler.policy.types import (
    FailureClass,
    LeasedTask,
    Outcome,
    PoolId,
    PriorityClass,
    ResourceKind,
    TaskId,
    TenantId,
    WorkerId,
)
from scheduler.services import heartbeat
from scheduler.services.dispatch import Dispatched, dispatch
from scheduler.services.settle import Report, Settled, settle
from scheduler.services.submit import submit_batch
from scheduler.store import queries
from scheduler.store import resources as resource_store


def make_tenant(slug: str = "acme", **fields: Any) -> TenantId:
    """A tenant."""
    return TenantId(Tenant.objects.create(slug=slug, **fields).pk)


def make_pool(name: str = "p", *, slots: int = 10, **fields: Any) -> PoolId:
    """A pool that runs handlers in process."""
    settings = {"executor": "python", "slots": slots, "slots_max": max(slots, 1), "slots_min": 0} | fields
    return PoolId(Pool.objects.create(name=name, **settings).pk)


def make_bucket(name: str, *, rate: float, burst: float, margin: float = 0.0) -> None:
    """A token bucket, full."""
    resource_store.add(name, ResourceKind.TOKEN_BUCKET, rate=rate, burst=burst, permits=0, margin=margin)


def make_semaphore(name: str, permits: int) -> None:
    """A semaphore with all permits free."""
    resource_store.add(name, ResourceKind.SEMAPHORE, rate=0, burst=0, permits=permits, margin=0)


def submit_tasks(tenant: TenantId, count: int = 1, **fields: Any) -> list[TaskId]:
    """Tasks alike, in one batch."""
    settings: dict[str, Any] = {"payload": "{}", "pool": "p", "priority": PriorityClass.NORMAL} | fields
    return [accepted.id for accepted in submit_batch(tenant, [Submission(**settings)] * count)]


class HandWorker:
    """A registered worker whose every step a test takes itself."""

    def __init__(self, slots: Mapping[PoolId, int]) -> None:
        self.id = WorkerId(str(uuid.uuid4()))
        heartbeat.register(self.id, name="hand", kind="engine", slots=slots)

    def dispatch(self, starts_max: int = 500) -> Dispatched:
        """Plan once, as this worker, which is alive: however slow the machine, it was seen just now."""
        heartbeat.renew(self.id, [])
        return dispatch(me=self.id, starts_max=starts_max)

    def start(self) -> list[LeasedTask]:
        """Plan once; what this worker got, from this plan or from another's before."""
        own = [leased for leased in self.dispatch().leased if leased.worker == self.id]
        return heartbeat.pick_up(self.id) + own

    def succeed(self, leased: Sequence[LeasedTask]) -> Settled:
        """Report success."""
        return settle([Report(task.lease, Outcome.SUCCEEDED, result='"done"') for task in leased])

    def fail(
        self,
        leased: Sequence[LeasedTask],
        failure_class: FailureClass = FailureClass.ERROR,
        *,
        retry_after_s: float | None = None,
    ) -> Settled:
        """Report failure."""
        failure = Failure(failure_class, "it broke", retry_after_s)
        return settle([Report(task.lease, Outcome.FAILED, failure) for task in leased])


def be_patient() -> None:
    """Take back what a settlement sets for its own transaction, where a test's transaction goes on after it."""
    queries.run("SELECT set_config('idle_in_transaction_session_timeout', '0', true)")


def state_of(task: TaskId) -> str:
    """Where the task stands."""
    return Task.objects.get(pk=task).state
