"""What an operator does with one task: cancel it, replay it, discard and restore a dead letter."""

from __future__ import annotations

from collections.abc import Callable

from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from django.views.decorators.http import require_POST

from scheduler.engine.doorbell import ring
from scheduler.errors import Conflict, NotFound, Refused, Unavailable
from scheduler.policy.types import TaskId
from scheduler.services.cancel import cancel as cancel_task
from scheduler.services.dead import discard as discard_task
from scheduler.services.dead import restore as restore_task
from scheduler.services.replay import replay as replay_task
from scheduler.web.access import OPERATE_TASK, needs
from scheduler.web.acting import actor_of, author_of, done, reason_of
from scheduler.web.shell import missing
from scheduler.web.task_page import task_page
from scheduler.web.toast import Toast, Undo


@require_POST
@needs(OPERATE_TASK)
def cancel(request: HttpRequest, task_id: int) -> HttpResponse:
    """Cancel it at once while it waits; tell it to stop while it runs."""

    def act() -> Toast:
        after = cancel_task(TaskId(task_id), None, actor=actor_of(request), reason=reason_of(request), source="ui")
        said = "It runs and has been told to stop." if after.requested else f"Cancelled task {task_id}."
        return Toast(said)

    return _act(request, task_id, act)


@require_POST
@needs(OPERATE_TASK)
def replay(request: HttpRequest, task_id: int) -> HttpResponse:
    """Run it afresh."""

    def act() -> Toast:
        replay_task(TaskId(task_id), None, actor=actor_of(request), reason=reason_of(request), source="ui")
        return Toast(f"Task {task_id} waits again, with its attempts from zero.")

    return _act(request, task_id, act)


@require_POST
@needs(OPERATE_TASK)
def discard(request: HttpRequest, task_id: int) -> HttpResponse:
    """Take a dead letter out of sight; it can be restored for seven days."""

    def act() -> Toast:
        discard_task(TaskId(task_id), None, author_of(request))
        return Toast(f"Discarded task {task_id}.", undo=Undo(_address("task-restore", task_id), reason="undo"))

    return _act(request, task_id, act)


@require_POST
@needs(OPERATE_TASK)
def restore(request: HttpRequest, task_id: int) -> HttpResponse:
    """Bring a discarded one back."""

    def act() -> Toast:
        restore_task(TaskId(task_id), None, author_of(request))
        return Toast(f"Restored task {task_id}.", undo=Undo(_address("task-discard", task_id), reason="undo"))

    return _act(request, task_id, act)


def _act(request: HttpRequest, task_id: int, act: Callable[[], Toast]) -> HttpResponse:
    try:
        toast = act()
    except NotFound as fault:
        return missing(request, fault.detail)
    except Refused as refusal:
        return task_page(request, task_id, status=422, fault=refusal.detail)
    except (Conflict, Unavailable) as conflict:
        return task_page(request, task_id, status=409, fault=conflict.detail)
    ring()
    return done(request, _address("task", task_id), toast)


def _address(route: str, task_id: int) -> str:
    return reverse(f"ops:{route}", kwargs={"task_id": task_id})
