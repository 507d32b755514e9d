"""A database as full as the console has to stand: millions of dead letters, a million waiting, hundreds of tenants."""

from __future__ import annotations

import uuid
from datetime import UTC, datetime, timedelta
from typing import Final

from scheduler.bench.world import progress
from scheduler.models import Budget, Operation, Pool, Resource, Run, RunIntake, RunUse, Schedule, Tenant, Worker
from scheduler.policy.types import ResourceKind
from scheduler.services.dead import fold_dead
from scheduler.store import bench as store
from scheduler.store import overview
from scheduler.store import resources as resource_store

SIZES: Final = {
    "dead": 3_000_000,
    "waiting": 1_000_000,
    "done": 500_000,
    "tenants": 300,
    "groups": 2_000,
    "pools": 12,
    "runs": 20_000,
    "schedules": 5_000,
    "workers": 500,
    "operations": 2_000,
    "predictions": 50_000,
    "audit": 200_000,
}
"""How much there is of everything, unless told otherwise."""
CHUNK: Final = 100_000
_ZONES: Final = ("UTC", "Asia/Seoul", "America/Los_Angeles")
_BUDGET_NANO: Final = 10**12


def fill_database(sizes: dict[str, int]) -> None:
    """Fill an empty database. Ten minutes at full size where nothing else is done."""
    store.empty_tables()
    Pool.objects.all().delete()
    Resource.objects.all().delete()
    tenants = _add_tenants(sizes["tenants"])
    _add_pools(sizes["pools"])
    tasks = sizes["dead"] + sizes["done"] + sizes["waiting"]
    for first in range(1, tasks + 1, CHUNK):
        last = min(tasks, first + CHUNK - 1)
        store.add_crowd_tasks(sizes, first=first, last=last)
        progress("tasks", last, tasks)
    _add_runs(tenants, sizes["runs"])
    _add_schedules(tenants, sizes["schedules"])
    _add_workers_and_operations(sizes)
    store.add_crowd_records(sizes, last_task=tasks)
    overview.fold_counts()
    while fold_dead():
        pass
    store.refresh_statistics()


def _add_tenants(number: int) -> list[Tenant]:
    tenants = Tenant.objects.bulk_create(
        Tenant(
            slug=f"crowd-{n:04}",
            name=f"Tenant {n}",
            weight=1.0 + n % 3,
            time_zone=_ZONES[n % 3],
            monthly_budget_nano=_BUDGET_NANO,
        )
        for n in range(number)
    )
    starts = datetime.now(UTC).replace(day=1, hour=0, minute=0, second=0, microsecond=0)
    Budget.objects.bulk_create(
        Budget(
            scope="tenant",
            scope_id=tenant.pk,
            period_start=starts,
            period_end=(starts + timedelta(days=32)).replace(day=1),
            limit_nano=_BUDGET_NANO,
            spent_nano=_BUDGET_NANO * n // number,
        )
        for n, tenant in enumerate(tenants)
    )
    return tenants


def _add_pools(number: int) -> None:
    """Pools whose workers are elsewhere, and are not there: nothing starts while somebody measures."""
    for n in range(number):
        Pool.objects.create(
            name=f"crowd-{n}",
            executor="remote",
            slots=50,
            slots_max=100,
            slo={"high": 5, "normal": 60},
            max_pending=10**7,
        )
        resource_store.add(f"crowd-{n}", ResourceKind.TOKEN_BUCKET, rate=100, burst=1_000, permits=0, margin=0.02)
    store.add_demands()


def _add_runs(tenants: list[Tenant], number: int) -> None:
    now = datetime.now(UTC)
    runs = Run.objects.bulk_create(
        Run(
            tenant=tenants[n % len(tenants)],
            name=f"run {n}",
            goal={},
            state="active" if n % 20 == 0 else "succeeded",
            max_steps=100,
            max_width=10,
            finished_at=None if n % 20 == 0 else now - timedelta(minutes=n),
        )
        for n in range(number)
    )
    RunIntake.objects.bulk_create(RunIntake(run_id=run.pk, steps=10) for run in runs)
    Budget.objects.bulk_create(Budget(scope="run", scope_id=run.pk) for run in runs)
    RunUse.objects.bulk_create(RunUse(run_id=run.pk, attempts=10, tokens=10_000) for run in runs)


def _add_schedules(tenants: list[Tenant], number: int) -> None:
    next_at = datetime.now(UTC) + timedelta(days=10)
    Schedule.objects.bulk_create(
        Schedule(
            tenant=tenants[n % len(tenants)],
            name=f"schedule-{n}",
            cron="0 3 * * *",
            time_zone="UTC",
            task={"pool": "crowd-1", "kind": "report", "payload": {}},
            overlap="skip",
            catch_up="last",
            next_at=next_at,
        )
        for n in range(number)
    )


def _add_workers_and_operations(sizes: dict[str, int]) -> None:
    now = datetime.now(UTC)
    Worker.objects.bulk_create(
        Worker(id=uuid.uuid4(), name=f"crowd-{n}", kind="remote") for n in range(sizes["workers"])
    )
    Operation.objects.bulk_create(
        Operation(
            kind="replay",
            state="done",
            filter="state:dead",
            as_of=now,
            actor="person",
            source="ui",
            reason="a try",
            rate=100.0,
            total=10,
            applied=10,
            starts_at=now,
            finished_at=now,
        )
        for _ in range(sizes["operations"])
    )
