"""Functions as an application declares them for Django's tasks."""

from __future__ import annotations

from django_tasks import TaskContext, task


class Unready(Exception):
    """Raised by the first attempts of `fail_until`."""


@task
def add(a: int, b: int = 0) -> int:
    return a + b


@task
async def add_async(a: int, b: int) -> list[int]:
    return [a, b]


@task(takes_context=True)
def fail_until(context: TaskContext, attempt: int) -> dict[str, object]:
    if context.attempt < attempt:
        raise Unready(f"attempt {context.attempt}")
    return {"attempts": context.attempt, "id": context.task_result.id, "status": str(context.task_result.status)}


@task
def returns_what_is_no_json() -> object:
    return object()


def not_declared() -> None:
    raise AssertionError("it was called")
