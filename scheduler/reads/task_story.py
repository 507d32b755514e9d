"""Everything that the page of a task shows, asked together."""

from __future__ import annotations

from dataclasses import dataclass

from scheduler.policy.types import TaskId
from scheduler.reads.tasks import TaskDetail, detailing, task_row
from scheduler.reads.why import Explanation, explaining
from scheduler.store import dead, tasks
from scheduler.store.asking import Together
from scheduler.store.dead import Letter


@dataclass(frozen=True, slots=True)
class TaskStory:
    """A task, why it is where it is, its dead letter if it is one, and its payload as JSON text (None: removed)."""

    detail: TaskDetail
    explanation: Explanation
    letter: Letter | None
    payload: str | None


def story_of_task(task: TaskId) -> TaskStory:
    """What is told of a task. Raises NotFound."""
    row, asking = task_row(task, None), Together()
    detail, explanation = detailing(row, asking), explaining(row, asking)
    letter = asking.add(dead.load_letter.question(row.id))
    payload = asking.add(tasks.load_payload.question(row.id))
    return TaskStory(detail(), explanation(), letter.value, payload.value)
