"""The page of one task: where it stands and why, what happened to it, what it carries."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.views.decorators.http import require_safe

from scheduler.errors import NotFound
from scheduler.live.frames import Key
from scheduler.policy.types import TaskId
from scheduler.reads.tasks import task_detail, task_payload
from scheduler.reads.why import why
from scheduler.web import task_story
from scheduler.web.access import VIEW_CONSOLE, VIEW_PAYLOAD, needs
from scheduler.web.shell import missing, page


@require_safe
@needs(VIEW_CONSOLE)
def task(request: HttpRequest, task_id: int) -> HttpResponse:
    """One task. What it carries and what it returned is for those who may see payloads."""
    try:
        found = task_detail(TaskId(task_id), None)
        explanation = why(TaskId(task_id), None)
    except NotFound as fault:
        return missing(request, fault.detail)
    shown = request.user.has_perm(VIEW_PAYLOAD)
    documents = [("Payload", _payload(found.task.id)), ("Result", found.result)]
    return page(
        request,
        "ops/task.html",
        title=f"Task {task_id}",
        nav="pools",
        live=Key("task", found.task.pool),
        task=found.task,
        chip=task_story.chip_of(found.task.state),
        looked=task_story.when(explanation.as_of),
        figures=task_story.figures_of(found, explanation),
        why_title=task_story.why_title(found.task.state),
        reasons=explanation.reasons,
        events=task_story.events_of(found),
        facts=task_story.facts_of(found),
        documents=[
            task_story.document_of(title, text, shown=shown, permission=VIEW_PAYLOAD) for title, text in documents
        ],
    )


def _payload(task_id: TaskId) -> str | None:
    try:
        return task_payload(task_id, None)
    except NotFound:
        return None
