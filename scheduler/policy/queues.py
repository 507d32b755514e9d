"""Keeps the lanes of virtual time in order, and shows the planner their fronts. It decides nothing.

A front is made once and kept until its lane changes: most plans touch one lane of many.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections import deque
from collections.abc import Iterator
from itertools import islice
from typing import Final

from scheduler.policy.scene import Job
from scheduler.policy.types import Lane, LaneKey, TaskId, TaskView

WIDTH: Final = 8
"""Tasks of a lane that one plan sees; a plan that needs more says so and is made again."""


def _place(job: Job) -> tuple[float, TaskId]:
    return job.ready_at, job.id


def _latest_start(job: Job) -> tuple[float, TaskId]:
    assert job.latest_start is not None  # noqa: S101 - only jobs with a deadline are kept by it
    return job.latest_start, job.id


class LaneFront:
    """The waiting jobs of one lane by (ready time, id), and those with a deadline by latest start as well."""

    __slots__ = ("_front", "jobs", "key", "urgent")

    def __init__(self, key: LaneKey) -> None:
        self.key = key
        self.jobs: deque[Job] = deque()
        self.urgent: list[Job] = []
        self._front: Lane | None = None

    def __iter__(self) -> Iterator[Job]:
        return iter(self.jobs)

    def add(self, job: Job) -> bool:
        """Let a job in; returns whether the planner may now see something else at the front."""
        jobs = self.jobs
        changes = job.latest_start is not None or not jobs
        if not jobs or _place(jobs[-1]) <= _place(job):
            jobs.append(job)
        else:
            changes = True
            jobs.insert(bisect_left(jobs, _place(job), key=_place), job)
        if job.latest_start is not None:
            insort(self.urgent, job, key=_latest_start)
        if changes or len(jobs) <= WIDTH + 1:
            self._front = None
        return changes

    def take(self, task: TaskId) -> Job:
        """Take a waiting job out, wherever it stands."""
        self._front = None
        jobs = self.jobs
        if jobs[0].id == task:
            job = jobs.popleft()
        else:
            job = next(j for j in jobs if j.id == task)
            jobs.remove(job)
        if job.latest_start is not None:
            self.urgent.remove(job)
        return job

    def replace(self, jobs: list[Job]) -> None:
        """Let these, which are in order, stand for what waits."""
        self.jobs = deque(jobs)
        self.urgent = sorted((j for j in jobs if j.latest_start is not None), key=_latest_start)
        self._front = None

    def front(self) -> Lane:
        """What the planner sees of the lane."""
        if self._front is None:
            fifo = tuple(_view(job) for job in islice(self.jobs, WIDTH))
            urgent = tuple(_view(job) for job in self.urgent[:WIDTH])
            self._front = Lane(self.key, fifo, urgent, more=len(self.jobs) > WIDTH)
        return self._front


def _view(job: Job) -> TaskView:
    return TaskView(job.id, job.ready_at, job.latest_start, job.expected_s, job.amounts)
