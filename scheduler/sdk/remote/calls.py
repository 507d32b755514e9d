"""What is asked of a server: one function for each operation, no I/O. The clients carry calls out."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, Final, Generic, TypeVar
from urllib.parse import quote

from scheduler.sdk.declarations import Dep, RetryPolicy, Task
from scheduler.sdk.errors import SubmitError
from scheduler.sdk.handle import TaskHandle
from scheduler.sdk.remote.answers import Accepted, Cancelled, Snapshot, TaskInfo, Why

PLAIN_FIELDS: Final[tuple[str, ...]] = (
    "pool",
    "kind",
    "key",
    "deadline_in",
    "deadline_at",
    "start_in",
    "start_at",
    "tolerance",
    "on_miss",
    "expires_in",
    "duration_hint",
    "timeout",
    "resources",
    "capability",
)
T = TypeVar("T")
Json = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Call(Generic[T]):
    """One request, made as often as needed: every POST carries a key by which the server knows it again.

    `patience_s` is how much longer than usual the answer may take.
    """

    method: str
    path: str
    parse: Callable[[Any], T]
    body: Json | None = None
    params: Mapping[str, str] = field(default_factory=dict)
    patience_s: float = 0.0
    key: str = field(default_factory=lambda: uuid.uuid4().hex)


def submit(task: Task) -> Call[Accepted]:
    """Take in a task."""
    return Call("POST", "/tasks", Accepted.of, described(task, with_tenant=True))


def submit_batch(tasks: Sequence[Task], *, group: str | None, join: str | None) -> Call[list[Accepted]]:
    """Take in all of these tasks or none."""
    tenants = {task.tenant for task in tasks}
    if len(tenants) > 1:
        raise SubmitError("The tasks of a batch belong to one tenant; submit one batch for each.")
    named = {"tenant": next(iter(tenants), None), "group": group, "join": join}
    body = {"tasks": [described(task) for task in tasks], **{n: v for n, v in named.items() if v is not None}}
    return Call("POST", "/tasks/batch", lambda answer: [Accepted.of(each) for each in answer["tasks"]], body)


def get(task: int) -> Call[TaskInfo]:
    """A task as it stands."""
    return Call("GET", f"/tasks/{task}", TaskInfo.of)


def find(key: str) -> Call[TaskInfo | None]:
    """The newest task of that key."""
    return Call("GET", "/tasks", _first, params={"key": key, "limit": "1"})


def wait(task: int, timeout_s: float) -> Call[TaskInfo]:
    """The task once it has ended, or as it is after so long."""
    params = {"timeout_s": f"{timeout_s:g}"}
    return Call("GET", f"/tasks/{task}/wait", TaskInfo.of, params=params, patience_s=timeout_s)


def why(task: int) -> Call[Why]:
    """Why a task is not running."""
    return Call("GET", f"/tasks/{task}/why", Why.of)


def cancel(task: int, reason: str) -> Call[Cancelled]:
    """Cancel a task."""
    return Call("POST", f"/tasks/{task}/cancel", Cancelled.of, {"reason": reason})


def replay(task: int, reason: str) -> Call[TaskInfo]:
    """Run an ended task afresh."""
    return Call("POST", f"/tasks/{task}/replay", TaskInfo.of, {"reason": reason})


def snapshot() -> Call[Snapshot]:
    """The newest picture."""
    return Call("GET", "/snapshot", Snapshot.of)


def pools() -> Call[list[Json]]:
    """All pools."""
    return Call("GET", "/pools", lambda answer: list(answer["pools"]))


def pool_why(name: str) -> Call[Json]:
    """Why a pool does not start more than it does."""
    return Call("GET", f"/pools/{quote(name, safe='')}/why", dict)


def switch_pool(name: str, word: str, reason: str) -> Call[Json]:
    """Pause or resume a pool."""
    return Call("POST", f"/pools/{quote(name, safe='')}/{word}", dict, {"reason": reason})


def resources() -> Call[list[Json]]:
    """All shared limits."""
    return Call("GET", "/resources", lambda answer: list(answer["resources"]))


def described(task: Task, *, with_tenant: bool = False) -> dict[str, Any]:
    """A task as the API takes it; what has its default is left out."""
    body = {name: _plain(getattr(task, name)) for name in PLAIN_FIELDS if getattr(task, name) is not None}
    for name in ("deadline_at", "start_at"):
        if isinstance(body.get(name), int | float):
            body[name] = datetime.fromtimestamp(body[name], UTC).isoformat()
    body |= {"payload": task.payload, "priority": str(task.priority).lower()}
    if task.retry is not None:
        body["retry"] = _retry(task.retry)
    if task.labels:
        body["labels"] = dict(task.labels)
    if task.run is not None:
        body |= {"run": task.run, "effect": task.effect}
    if task.max_cost_usd is not None:
        body["max_cost_usd"] = str(task.max_cost_usd)
    if task.tags:
        body["tags"] = _tags(task.tags)
    after = [_after(each) for given in (task.after, task.deps) if given is not None for each in _several(given)]
    if after:
        body["after"] = after
    if with_tenant and task.tenant is not None:
        body["tenant"] = task.tenant
    return body


def _first(answer: Json) -> TaskInfo | None:
    return TaskInfo.of(answer["tasks"][0]) if answer["tasks"] else None


def _plain(value: Any) -> Any:
    if isinstance(value, timedelta):
        return value.total_seconds()
    if isinstance(value, datetime):
        return value.isoformat()
    return dict(value) if isinstance(value, Mapping) else value


def _retry(policy: RetryPolicy) -> dict[str, Any]:
    names = ("max_attempts", "initial_backoff", "multiplier", "max_backoff", "jitter")
    return {name: _plain(getattr(policy, name)) for name in names}


def _tags(tags: Any) -> dict[str, str]:
    if isinstance(tags, Mapping):
        return dict(tags)
    pairs = (text.partition("=") for text in ([tags] if isinstance(tags, str) else tags))
    return {name: value for name, _, value in pairs}


def _several(given: Any) -> Iterable[Any]:
    return [given] if isinstance(given, str | int | Dep | TaskHandle | Accepted) else given


def _after(given: Any) -> dict[str, Any]:
    dep = given if isinstance(given, Dep) else Dep(given)
    target: Any = dep.target
    if isinstance(target, TaskHandle | Accepted):
        target = target.id
    return {"id" if isinstance(target, int) else "key": target, "on": dep.on}
