"""Decides how to tell a person what became of one task: its state in a word, its figures, its timeline, its documents.

Pure: what was read goes in, lines for the template come out. Nothing here is markup; the template escapes it all.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import inf
from typing import Final

import orjson

from scheduler.live import wording
from scheduler.policy.states import TERMINAL, TaskState
from scheduler.reads.tasks import AttemptRow, TaskDetail
from scheduler.reads.why import Explanation
from scheduler.web import times

DOCUMENT_CHARS_MAX: Final = 20_000
MESSAGE_CHARS_MAX: Final = 500
_NOT_DUE: Final = frozenset({TaskState.BLOCKED, TaskState.SCHEDULED})
_CHIPS: Final = {
    TaskState.BLOCKED: ("stale", "Waits for other tasks", "quiet"),
    TaskState.SCHEDULED: ("stale", "Scheduled", "quiet"),
    TaskState.READY: ("stale", "Waiting", "quiet"),
    TaskState.RUNNING: ("ok", "Running", "ok"),
    TaskState.RETRYING: ("warn", "Waits for another attempt", "warn"),
    TaskState.SUCCEEDED: ("ok", "Succeeded", "ok"),
    TaskState.FAILED: ("cross", "Failed", "bad"),
    TaskState.DEAD_LETTERED: ("cross", "Dead letter", "bad"),
    TaskState.CANCELLED: ("close", "Cancelled", "quiet"),
    TaskState.SKIPPED: ("close", "Skipped", "quiet"),
    TaskState.MISSED: ("cross", "Missed its start", "bad"),
    TaskState.SHED: ("cross", "Dropped under load", "bad"),
}
_TONES: Final = {"succeeded": "ok", "failed": "bad", "timed_out": "bad", "lost": "bad"}


@dataclass(frozen=True, slots=True)
class Chip:
    """A state in three ways at once: symbol, word and tone."""

    icon: str
    word: str
    tone: str


@dataclass(frozen=True, slots=True)
class When:
    """A time for people and for machines."""

    text: str
    machine: str


@dataclass(frozen=True, slots=True)
class Figure:
    """One large number with a note under it."""

    label: str
    value: str
    note: str


@dataclass(frozen=True, slots=True)
class Event:
    """One line of the timeline."""

    when: When
    says: str
    detail: str = ""
    tone: str = ""


@dataclass(frozen=True, slots=True)
class Document:
    """A JSON value as text, or why it is not shown."""

    title: str
    note: str
    text: str = ""


def when(at_s: float) -> When:
    """A time."""
    return When(times.day_and_clock(at_s), wording.machine(at_s))


def chip_of(state: TaskState) -> Chip:
    """The state as it is shown."""
    return Chip(*_CHIPS[state])


def why_title(state: TaskState) -> str:
    """The question that the reasons answer."""
    if state is TaskState.RUNNING:
        return "What it does"
    return "How it ended" if state in TERMINAL else "Why it waits"


def figures_of(found: TaskDetail, why: Explanation) -> list[Figure]:
    """The numbers at the top: of one that has ended, when and how long it ran, else where it is in the line."""
    task = found.task
    place = _ended(found, why) if task.finished_at is not None else _place(why)
    return [
        *place,
        Figure("Waited", *_waited(found, why)),
        Figure("Attempts", f"{task.attempts} / {task.max_attempts}", wording.plural(task.replays, "replay")),
        Figure("Class", task.priority.label, f"of {task.tenant}"),
        Figure("Takes about", wording.glance(task.expected_s), "as far as is known"),
    ]


def _place(why: Explanation) -> list[Figure]:
    ahead = "—" if why.position is None else wording.count(why.position)
    return [
        Figure("Ahead of it", ahead, "tasks, about" if why.position is not None else "only while it is ready"),
        Figure("Starts in", *_predicted(why)),
    ]


def _ended(found: TaskDetail, why: Explanation) -> list[Figure]:
    ended_s = found.task.finished_at or why.as_of
    ran_s = [max(0.0, each.finished_at - each.started_at) for each in found.attempts]
    return [
        Figure("Ended", wording.glance(max(0.0, why.as_of - ended_s)), f"ago, at {times.clock(ended_s)}"),
        Figure("Ran", wording.glance(ran_s[0]), "its last attempt") if ran_s else Figure("Ran", wording.NONE, "never"),
    ]


def _waited(found: TaskDetail, why: Explanation) -> tuple[str, str]:
    """How long the task was ready before it started, ended or is looked at; nothing while it was never ready."""
    task = found.task
    began_s = min((a.started_at for a in found.attempts), default=found.running.started_at if found.running else None)
    if task.ready_at is None or (began_s is None and task.state in _NOT_DUE):
        return wording.NONE, "it is not due yet" if task.state in _NOT_DUE else "it was never due"
    if task.state is TaskState.READY:
        return wording.glance(max(0.0, why.as_of - task.ready_at)), "so far"
    if began_s is not None:
        return wording.glance(max(0.0, began_s - task.ready_at)), "until it started first"
    ended_s = why.as_of if task.finished_at is None else task.finished_at
    return wording.glance(max(0.0, ended_s - task.ready_at)), "and never started"


def _predicted(why: Explanation) -> tuple[str, str]:
    """The predicted start of a ready task: the p50, and the p90 in the note."""
    if why.state is not TaskState.READY:
        return wording.NONE, "only while it is ready"
    if why.band is None:
        return wording.NONE, "insufficient data: too few recent starts"
    if why.band.p50_s == inf:
        return "> 15 min", "no start in sight"
    late = "more than 15 min" if why.band.p90_s == inf else wording.duration(why.band.p90_s)
    return wording.glance(why.band.p50_s), f"predicted; within {late} in 9 of 10 cases"


def events_of(found: TaskDetail) -> list[Event]:
    """What happened, oldest first, and what is to come."""
    return [event for _, event in sorted(_events(found), key=lambda pair: pair[0])]


def _events(found: TaskDetail) -> Iterator[tuple[float, Event]]:
    task = found.task
    yield task.created_at, Event(when(task.created_at), "Submitted")
    if task.ready_at is not None and task.ready_at - task.created_at > 1.0:
        yield task.ready_at, Event(when(task.ready_at), "Ready")
    for attempt in found.attempts:
        yield attempt.started_at, _attempt(attempt)
    if found.running is not None:
        asked = "asked to stop" if found.running.cancel_requested else ""
        says = f"Attempt {found.running.attempt} runs"
        yield found.running.started_at, Event(when(found.running.started_at), says, asked, "ok")
    if task.due_at is not None and task.state in (TaskState.SCHEDULED, TaskState.RETRYING):
        says = "To start" if task.state is TaskState.SCHEDULED else "To be tried again"
        yield task.due_at, Event(when(task.due_at), says)
    if task.deadline_at is not None:
        yield task.deadline_at, Event(when(task.deadline_at), "Deadline")
    if task.finished_at is not None:
        chip = chip_of(task.state)
        yield task.finished_at, Event(when(task.finished_at), chip.word, "", chip.tone)


def _attempt(row: AttemptRow) -> Event:
    parts = [row.failure_class, (row.message or "")[:MESSAGE_CHARS_MAX]]
    if row.retry_after_s is not None:
        parts.append(f"asked to wait {wording.duration(row.retry_after_s)}")
    took = wording.duration(max(0.0, row.finished_at - row.started_at))
    outcome = row.outcome.replace("_", " ")
    detail = " · ".join(part for part in parts if part)
    return Event(
        when(row.started_at), f"Attempt {row.number} {outcome} after {took}", detail, _TONES.get(row.outcome, "")
    )


def facts_of(found: TaskDetail) -> list[tuple[str, str]]:
    """What the task is, name by name."""
    task = found.task
    needs = ", ".join(f"{amount:g} of {name}" for name, amount in zip(task.resource_names, task.amounts, strict=True))
    tags = ", ".join(f"{name}={value}" for name, value in (task.tags or {}).items())
    facts = [
        ("Tenant", task.tenant),
        ("Kind", task.kind),
        ("Key", task.key or ""),
        ("Needs", needs or "no shared limit"),
        ("Tags", tags),
    ]
    return [(name, value) for name, value in facts if value]


def document_of(title: str, text: str | None, *, shown: bool, permission: str) -> Document:
    """A payload or a result: indented, and cut where it is too long to be looked at."""
    if text is None:
        return Document(title, "none")
    if not shown:
        return Document(title, f"needs the permission {permission}")
    pretty = orjson.dumps(orjson.loads(text), option=orjson.OPT_INDENT_2).decode()
    size = wording.plural(len(text.encode()), "byte")
    if len(pretty) <= DOCUMENT_CHARS_MAX:
        return Document(title, size, pretty)
    note = f"{size}; the first {wording.count(DOCUMENT_CHARS_MAX)} characters"
    return Document(title, note, pretty[:DOCUMENT_CHARS_MAX] + "…")
