"""The page of one task: where it stands and why, what happened to it, what it carries."""

from __future__ import annotations

from typing import Final, NamedTuple

from django.http import HttpRequest, HttpResponse
from django.views.decorators.http import require_safe

from scheduler.errors import NotFound
from scheduler.live.frames import Key
from scheduler.policy.fingerprints import write_fingerprint
from scheduler.policy.operations import DIED
from scheduler.policy.states import REPLAYABLE, TERMINAL, TaskState
from scheduler.policy.types import TaskId
from scheduler.reads.task_story import story_of_task
from scheduler.web import task_story
from scheduler.web.access import OPERATE_TASK, VIEW_CONSOLE, VIEW_PAYLOAD, may, needs
from scheduler.web.shell import missing, page


class Action(NamedTuple):
    """A button, and what it does."""

    route: str
    label: str
    says: str


DISCARDED: Final = task_story.Chip("close", "Discarded", "quiet")
_ACTIONS: Final = {
    "cancel": Action("ops:task-cancel", "Cancel", "At once while it waits; an attempt that runs is told to stop."),
    "replay": Action("ops:task-replay", "Replay", "It waits again under its own id and key, its attempts from zero."),
    "discard": Action("ops:task-discard", "Discard", "Takes it out of sight; it can be restored for 7 days."),
    "restore": Action("ops:task-restore", "Restore", "It was discarded, and is deleted 7 days after that."),
}


@require_safe
@needs(VIEW_CONSOLE)
def task(request: HttpRequest, task_id: int) -> HttpResponse:
    """One task. What it carries and what it returned is for those who may see payloads."""
    return task_page(request, task_id)


def task_page(request: HttpRequest, task_id: int, *, status: int = 200, fault: str = "") -> HttpResponse:
    """The page, as a visit or the answer to an action that changed nothing."""
    try:
        told = story_of_task(TaskId(task_id))
    except NotFound as refusal:
        return missing(request, refusal.detail)
    found, explanation, letter = told.detail, told.explanation, told.letter
    discarded = letter is not None and letter.discarded_at is not None
    shown = may(request, VIEW_PAYLOAD)
    documents = [("Payload", told.payload), ("Result", found.result)]
    return page(
        request,
        "ops/task.html",
        title=f"Task {task_id}",
        nav="tasks",
        status=status,
        live=None if found.task.state in TERMINAL else Key("task", found.task.pool),
        task=found.task,
        chip=DISCARDED if discarded else task_story.chip_of(found.task.state),
        looked=task_story.when(explanation.as_of),
        figures=task_story.figures_of(found, explanation),
        why_title=task_story.why_title(found.task.state),
        reasons=explanation.reasons,
        actions=_actions(found.task.state, discarded=discarded),
        alike="" if letter is None else write_fingerprint(letter.fingerprint),
        may_operate=may(request, OPERATE_TASK),
        fault=fault,
        events=task_story.events_of(found),
        facts=task_story.facts_of(found),
        documents=[
            task_story.document_of(title, text, shown=shown, permission=VIEW_PAYLOAD) for title, text in documents
        ],
    )


def _actions(state: TaskState, *, discarded: bool) -> list[Action]:
    """What can be done with a task that stands so."""
    if discarded:
        return [_ACTIONS["restore"]]
    names = ["cancel"] if state not in TERMINAL else []
    names += ["replay"] if state in REPLAYABLE else []
    names += ["discard"] if state in DIED else []
    return [_ACTIONS[name] for name in names]
