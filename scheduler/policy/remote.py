"""The vocabulary of remote workers: who they are, what they are given, and who speaks for a lease."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import NamedTuple

from scheduler.policy.types import LeasedTask, LeaseId, PoolId, TenantId, WorkerId


class Stop(IntEnum):
    """Whether an attempt is to stop, and why."""

    NO = 0
    CANCELLED = 1
    TIMEOUT = 2


class RemoteWorker(NamedTuple):
    """A remote worker as it registered."""

    id: WorkerId
    tenant: TenantId | None
    declared: dict[PoolId, int]
    draining: bool
    strays: tuple[LeaseId, ...] = ()
    """Leases that were given to it before it came (back), and that it does not name: they never got there."""


class Given(NamedTuple):
    """A lease for a remote worker, with the names that its messages carry."""

    pool: str
    tenant: str
    ttl_s: float
    task: LeasedTask


class HeldLease(NamedTuple):
    """A lease at a remote worker."""

    lease: LeaseId
    worker: WorkerId
    age_s: float
    stop: Stop


class Beat(NamedTuple):
    """What a gateway learns of its workers: who is its own and whether to drain, who is at another one, and leases."""

    known: dict[WorkerId, bool]
    elsewhere: frozenset[WorkerId]
    held: list[HeldLease]


class Kept(NamedTuple):
    """A lease that was renewed until `expires_at`."""

    stop: Stop
    degraded: bool
    expires_at: float


class Claim(NamedTuple):
    """Who speaks for a lease: a tenant's worker (None: anybody's), in these pools (None: any)."""

    lease: LeaseId
    tenant: TenantId | None
    pools: frozenset[str] | None


@dataclass(frozen=True, slots=True)
class WorkerLine:
    """A remote worker as it is listed. Times in Unix seconds."""

    id: WorkerId
    name: str
    tenant: str | None
    labels: tuple[str, ...]
    declared: dict[PoolId, int]
    offered: dict[PoolId, int]
    draining: bool
    started_at: float
    seen_at: float
    busy: int
