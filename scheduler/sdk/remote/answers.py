"""What a server answers, as values. Fields that a newer server adds are kept in `raw` and stop nothing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any, Final, Self

ENDED: Final = frozenset({"succeeded", "failed", "dead_lettered", "cancelled", "skipped", "missed", "shed"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """An answer; `raw` is the whole of it as JSON."""

    raw: Mapping[str, Any] = field(default_factory=dict, repr=False)

    @classmethod
    def of(cls, body: Mapping[str, Any]) -> Self:
        """From JSON."""
        known = {f.name for f in fields(cls)} - {"raw"}
        return cls(raw=body, **{name: value for name, value in body.items() if name in known})


@dataclass(frozen=True, slots=True, kw_only=True)
class Accepted(Answer):
    """A task that was taken. `duplicate`: its key was used before, and this is that task.

    `forecast` is how long it may wait, `{"p50_s", "p90_s"}`, None while too little is known. `degraded`: its pool is
    overloaded, and attempts are to answer only.
    """

    id: int
    state: str
    key: str | None = None
    duplicate: bool = False
    degraded: bool = False
    overload: int = 0
    forecast: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskInfo(Answer):
    """A task as it stands. `history` holds its attempts, newest first; `result` is there once it has succeeded."""

    id: int
    state: str
    pool: str = ""
    kind: str = ""
    priority: str = ""
    tenant: str = ""
    key: str | None = None
    attempts: int = 0
    max_attempts: int = 0
    created_at: str | None = None
    finished_at: str | None = None
    history: tuple[Mapping[str, Any], ...] | list[Mapping[str, Any]] = ()
    result: Any = None

    @property
    def ended(self) -> bool:
        """Whether nothing more happens to it by itself."""
        return self.state in ENDED

    @property
    def message(self) -> str:
        """What the newest attempt that failed said."""
        return next((a["message"] for a in self.history if a.get("message")), "")


@dataclass(frozen=True, slots=True, kw_only=True)
class Why(Answer):
    """Why a task is not running: `{"code", "text", "detail"}` each, the most decisive first.

    `position`: about how many start before it. `forecast`: seconds until it starts, as far as that is known.
    """

    id: int
    state: str
    reasons: tuple[Mapping[str, Any], ...] | list[Mapping[str, Any]] = ()
    position: int | None = None
    forecast: Mapping[str, Any] | None = None
    as_of: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cancelled(Answer):
    """`requested`: the task still runs and was told to stop."""

    id: int
    state: str
    requested: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot(Answer):
    """The picture that the console shows, at most a second old: `body` holds pools, resources, workers and totals."""

    seq: int
    as_of: str
    body: Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskPage(Answer):
    """Some tasks, newest first, without their attempts; go on with `next_cursor` until there is none."""

    tasks: tuple[TaskInfo, ...] = ()
    next_cursor: str | None = None

    @classmethod
    def of(cls, body: Mapping[str, Any]) -> Self:
        """From JSON."""
        tasks = tuple(TaskInfo.of(each) for each in body["tasks"])
        return cls(raw=body, tasks=tasks, next_cursor=body.get("next_cursor"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Preview(Answer):
    """What an operation would be done to: `count` tasks as of `as_of`, some of them in `sample`.

    `filter` is how the filter was understood. Pass `as_of` and `shown=count` on when starting it, and no other tasks
    than these are done.
    """

    kind: str
    filter: str
    count: int
    sample: tuple[int, ...] | list[int] = ()
    as_of: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Operation(Answer):
    """Something that is done to many tasks: `state` is `starting`, `running`, `paused`, `aborted` or `done`.

    Of `total` tasks, `applied` were done and `skipped` were not, for the reasons in `skips`; `left` are to come.
    """

    id: int
    kind: str
    state: str
    filter: str = ""
    total: int = 0
    applied: int = 0
    skipped: int = 0
    left: int = 0
    rate: float = 0.0
    skips: Mapping[str, int] = field(default_factory=dict)
    starts_at: str | None = None
    finished_at: str | None = None

    @property
    def ended(self) -> bool:
        """Whether nothing more is done."""
        return self.state in ("done", "aborted")


@dataclass(frozen=True, slots=True, kw_only=True)
class Run(Answer):
    """An agent run. Of one that was just created only `id`, `state` and `duplicate` are known: its key was used before.

    `caps` and `used` are what it may use and has used; `steps` are its tasks by state.
    """

    id: int
    state: str
    duplicate: bool = False
    name: str = ""
    key: str | None = None
    reason: str = ""
    goal: Any = None
    result: Any = None
    caps: Mapping[str, Any] = field(default_factory=dict)
    used: Mapping[str, Any] = field(default_factory=dict)
    steps: Mapping[str, int] = field(default_factory=dict)
    checkpoint_version: int | None = None
