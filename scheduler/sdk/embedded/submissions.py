"""What a task of the SDK means to the services, and what their refusals mean to its users. Pure translation."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from typing import Any, Final

import orjson

from scheduler.errors import CronoqError, FieldError
from scheduler.policy.admission import RetrySettings, Submission
from scheduler.policy.fixed_starts import OnMiss
from scheduler.policy.graph import Dependency, EdgeCondition, JoinPolicy
from scheduler.policy.money import parse_usd
from scheduler.policy.payload import fault_in_json, fault_in_text
from scheduler.policy.types import PriorityClass, RunId, TaskId
from scheduler.sdk.declarations import Codec, Dep, Moment, RetryPolicy, Seconds, Task
from scheduler.sdk.errors import SubmitError
from scheduler.sdk.handle import TaskHandle

PAYLOAD_BYTES_MAX: Final = 262_144
NAME_CHARS_MAX: Final = 200


def submission_of(task: Task, codec: Codec, *, group: str | None = None, join: str | None = None) -> Submission:
    """The task as the services take it. Raises SubmitError, naming the argument to change."""
    for one, other in (("deadline_in", "deadline_at"), ("start_in", "start_at")):
        if getattr(task, one) is not None and getattr(task, other) is not None:
            raise SubmitError(f"Give {one} or {other}, not both.")
    _check_texts(task)
    return Submission(
        payload=_payload(codec.encode(task.payload)),
        pool=task.pool,
        kind=task.kind,
        priority=_priority(task.priority),
        key=task.key,
        deadline_at=_moment("deadline_at", task.deadline_at),
        deadline_in_s=_seconds("deadline_in", task.deadline_in),
        start_at=_moment("start_at", task.start_at),
        start_in_s=_seconds("start_in", task.start_in),
        tolerance_s=_seconds("tolerance", task.tolerance),
        on_miss=_one_of(OnMiss, "on_miss", task.on_miss),
        expires_in_s=_seconds("expires_in", task.expires_in),
        duration_hint_s=_seconds("duration_hint", task.duration_hint, least=0.001),
        timeout_s=_seconds("timeout", task.timeout, least=0.001),
        retry=_retry(task.retry),
        resources=_amounts(task.resources or {}),
        tags=_tags(task.tags),
        labels=dict(task.labels or {}),
        run=None if task.run is None else RunId(task.run),
        writes=task.effect == "write",
        max_cost_nano=_cost(task.max_cost_usd),
        capability=task.capability,
        after=tuple(_dependencies(task)),
        group=group,
        join=_one_of(JoinPolicy, "join", join),
    )


def submit_error(error: CronoqError) -> SubmitError:
    """The refusal of a service, in the words of the SDK."""
    return SubmitError(error.detail, error.code, retry_after=error.retry_after_s)


def seconds(value: Seconds) -> float:
    """A duration as a number."""
    return value.total_seconds() if isinstance(value, timedelta) else float(value)


def _check_texts(task: Task) -> None:
    # Callers are not made to check their types; what they hand us is looked at.
    texts: tuple[tuple[str, Any], ...] = (("pool", task.pool), ("kind", task.kind), ("key", task.key))
    for name, text in texts:
        if text is None:
            continue
        if not isinstance(text, str) or not 1 <= len(text) <= NAME_CHARS_MAX:
            raise SubmitError(f"{name} is a text of 1 to {NAME_CHARS_MAX} characters, not {text!r:.80}.")
        said = fault_in_text(text)
        if said is not None:
            raise SubmitError(f"{name} {said}.")


def _payload(value: Any) -> str:
    fault = fault_in_json(value)
    if fault is not None:
        detail = f"The payload cannot be kept: {_told(fault)} A codec can turn your own types into JSON (codec=)."
        raise SubmitError(detail, "bad_payload")
    text = orjson.dumps(value)
    if len(text) > PAYLOAD_BYTES_MAX:
        detail = f"The payload has {len(text)} bytes; at most {PAYLOAD_BYTES_MAX} are taken. Store it, submit its name."
        raise SubmitError(detail, "payload_too_large")
    return text.decode()


def _told(fault: FieldError) -> str:
    where = ".".join(str(part) for part in fault.loc)
    return f"{where}: {fault.msg}" if where else fault.msg


def _priority(value: str) -> PriorityClass:
    found = PriorityClass.__members__.get(str(value).upper())
    if found is None:
        raise SubmitError(f"priority is one of {', '.join(p.label for p in PriorityClass)}, not {value!r}.")
    return found


def _one_of(kind: Any, name: str, value: str | None) -> Any:
    if value is None:
        return None
    try:
        return kind(value)
    except ValueError:
        raise SubmitError(f"{name} is one of {', '.join(kind)}, not {value!r}.") from None


def _seconds(name: str, value: Seconds | None, *, least: float = 0.0) -> float | None:
    if value is None:
        return None
    number = seconds(value)
    # Written so that NaN, which compares false with everything, is refused as well.
    if not least <= number < float("inf"):
        raise SubmitError(f"{name} is a number of seconds, at least {least:g}; {value!r} is not.")
    return number


def _moment(name: str, value: Moment | None) -> float | None:
    if isinstance(value, datetime):
        if value.tzinfo is None:
            raise SubmitError(f"{name} needs a time zone: datetime.now(UTC), or Unix seconds.")
        return value.timestamp()
    return None if value is None else _seconds(name, value)


def _retry(policy: RetryPolicy | None) -> RetrySettings | None:
    if policy is None:
        return None
    if policy.max_attempts < 1:
        raise SubmitError(f"retry.max_attempts counts the first attempt too: at least 1, not {policy.max_attempts}.")
    return RetrySettings(
        max_attempts=policy.max_attempts,
        initial_backoff_s=seconds(policy.initial_backoff),
        multiplier=policy.multiplier,
        max_backoff_s=seconds(policy.max_backoff),
        jitter=policy.jitter,
    )


def _amounts(resources: Mapping[str, float]) -> dict[str, float]:
    for name, amount in resources.items():
        if not 0.0 < amount < float("inf"):
            raise SubmitError(f"resources[{name!r}] is an amount above 0, not {amount!r}.")
    return {name: float(amount) for name, amount in resources.items()}


def _cost(usd: float | str | None) -> int | None:
    if usd is None:
        return None
    try:
        return parse_usd(str(usd))
    except ValueError as error:
        raise SubmitError(f"max_cost_usd is an amount in dollars, like '0.25', not {usd!r}: {error}") from None


def _tags(tags: Mapping[str, str] | Iterable[str] | None) -> dict[str, str] | None:
    if not tags:
        return None
    if isinstance(tags, str):
        tags = [tags]
    named = dict(tags) if isinstance(tags, Mapping) else dict(_tag(text) for text in tags)
    fault = fault_in_json(named)
    if fault is not None or not all(isinstance(value, str) for value in named.values()):
        raise SubmitError("tags are texts with names: {'customer': 'acme'}.")
    return named


def _tag(text: str) -> tuple[str, str]:
    name, _, value = text.partition("=")
    return name, value


def _dependencies(task: Task) -> Iterable[Dependency]:
    for given in (task.after, task.deps):
        if given is None:
            continue
        each = [given] if isinstance(given, str | int | Dep | TaskHandle) else given
        yield from (_dependency(one) for one in each)


def _dependency(given: Any) -> Dependency:
    dep = given if isinstance(given, Dep) else Dep(given)
    on = _one_of(EdgeCondition, "on", dep.on)
    if isinstance(dep.target, TaskHandle):
        return Dependency(id=TaskId(dep.target.id), on=on)
    if isinstance(dep.target, int):
        return Dependency(id=TaskId(dep.target), on=on)
    key: Any = dep.target
    if isinstance(key, str) and key:
        return Dependency(key=key, on=on)
    raise SubmitError(f"A task comes after a key, an id or a handle, not {dep.target!r:.80}.")
