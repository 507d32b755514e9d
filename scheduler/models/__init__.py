"""Tables, constraints and indexes; no behaviour.

Hot tables (`task`, `lease`, `attempt`, payload and result) carry plain ids instead of foreign keys: rows they point to
are never deleted while in use, and a key check per insert would cost as much as the insert. Everything in cold tables
is a real foreign key. Triggers in the migrations keep `task_delta` exact; see `store/sql/counts.sql`.
"""

from __future__ import annotations

from scheduler.models.attempts import Attempt, AttemptFault, Lease, LeaseCharge
from scheduler.models.audit import AuditEvent
from scheduler.models.counts import FoldedArrivals, FoldMark, TaskCount, TaskDelta, WaitingDepth
from scheduler.models.dead import DeadDelta, DeadGroup, DeadHour, DeadLetter
from scheduler.models.events import Event, EventFresh, EventListener, EventMark, Webhook, WebhookDelivery
from scheduler.models.fairness import ClassCredit, FairClock, FairCounter
from scheduler.models.forecasts import ForecastLog, ForecastState, LearnedDuration, Snapshot
from scheduler.models.graphs import TaskEdge, TaskGroup
from scheduler.models.history import HistorySample
from scheduler.models.limits import Demand, Resource, ResourceState, SetAside
from scheduler.models.money import Alert, Budget, BurnMark, LedgerEntry, Price, SpendingDay, SpendingMark, TopUp
from scheduler.models.operations import Operation, OperationItem
from scheduler.models.people import BoundAccount, SignInCount
from scheduler.models.pools import Leader, Pool, PoolScale, PoolState, Worker
from scheduler.models.routes import Route
from scheduler.models.runs import Checkpoint, KillEpoch, Receipt, Run, RunAlert, RunIntake, RunUse
from scheduler.models.saved import SavedFilter
from scheduler.models.schedules import Occurrence, Schedule
from scheduler.models.tasks import FixedStart, Task, TaskPayload, TaskResult
from scheduler.models.tenants import ApiToken, IdempotencyRecord, Tenant, TenantBudget, TenantState

__all__ = [
    "Alert",
    "ApiToken",
    "Attempt",
    "AttemptFault",
    "AuditEvent",
    "BoundAccount",
    "Budget",
    "BurnMark",
    "Checkpoint",
    "ClassCredit",
    "DeadDelta",
    "DeadGroup",
    "DeadHour",
    "DeadLetter",
    "Demand",
    "Event",
    "EventFresh",
    "EventListener",
    "EventMark",
    "FairClock",
    "FairCounter",
    "FixedStart",
    "FoldMark",
    "FoldedArrivals",
    "ForecastLog",
    "ForecastState",
    "HistorySample",
    "IdempotencyRecord",
    "KillEpoch",
    "Leader",
    "LearnedDuration",
    "Lease",
    "LeaseCharge",
    "LedgerEntry",
    "Occurrence",
    "Operation",
    "OperationItem",
    "Pool",
    "PoolScale",
    "PoolState",
    "Price",
    "Receipt",
    "Resource",
    "ResourceState",
    "Route",
    "Run",
    "RunAlert",
    "RunIntake",
    "RunUse",
    "SavedFilter",
    "Schedule",
    "SetAside",
    "SignInCount",
    "Snapshot",
    "SpendingDay",
    "SpendingMark",
    "Task",
    "TaskCount",
    "TaskDelta",
    "TaskEdge",
    "TaskGroup",
    "TaskPayload",
    "TaskResult",
    "Tenant",
    "TenantBudget",
    "TenantState",
    "TopUp",
    "WaitingDepth",
    "Webhook",
    "WebhookDelivery",
    "Worker",
]
