"""Many clients wait for tasks; one loop looks."""

import asyncio

from django.db import connections

from scheduler.engine.wait_hub import wait_hub
from scheduler.policy.states import TaskState
from scheduler.policy.types import TaskId, TenantId
from scheduler.services.cancel import cancel
from tests.conftest import LiveDatabase
from tests.support.work import make_pool, make_tenant, submit_tasks


def _cancel(tasks: list[TaskId], tenant: TenantId) -> None:
    try:
        for task in tasks:
            cancel(task, tenant, actor="test")
    finally:
        connections.close_all()


def test_everybody_learns_of_the_end_and_then_nobody_looks(live_database: LiveDatabase) -> None:
    tenant = make_tenant()
    make_pool()
    tasks = submit_tasks(tenant, 20)

    async def main() -> list[TaskState | None]:
        hub = wait_hub()
        assert wait_hub() is hub
        waiting = [asyncio.create_task(hub.wait(task, timeout_s=20.0)) for task in tasks * 5]
        await asyncio.sleep(0)
        assert hub.waited_for == 20
        await asyncio.to_thread(_cancel, tasks, tenant)
        states = await asyncio.gather(*waiting)
        assert hub.waited_for == 0
        return states

    assert asyncio.run(main()) == [TaskState.CANCELLED] * 100
    assert live_database.name


def test_patience_ends_and_leaves_nothing_behind(live_database: LiveDatabase) -> None:
    tenant = make_tenant()
    make_pool()
    (task,) = submit_tasks(tenant)

    async def main() -> None:
        hub = wait_hub()
        assert await hub.wait(task, timeout_s=0.1) is None
        leaver = asyncio.create_task(hub.wait(task, timeout_s=20.0))
        await asyncio.sleep(0)
        leaver.cancel()
        await asyncio.gather(leaver, return_exceptions=True)
        assert hub.waited_for == 0

    asyncio.run(main())
    assert live_database.name
