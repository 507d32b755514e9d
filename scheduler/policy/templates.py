"""Writes a task's description as the JSON that a client would send for it, and reads it back.

What is stored with a schedule stays readable as fields are added: fields with their default are left out, and durations
have the names of the API (`timeout` for `timeout_s`).
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import MISSING, fields
from enum import Enum
from typing import Any, Final

from scheduler.policy.admission import RetrySettings, Submission
from scheduler.policy.fixed_starts import OnMiss
from scheduler.policy.types import PriorityClass

NOT_IN_TEMPLATES: Final = ("deadline_at", "start_at", "start_in_s", "after", "group", "join", "run")
"""Fields that only make sense for one task at one time."""


def misplaced(submission: Submission) -> list[str]:
    """Names of the fields that are set and may not be in a template."""
    return [name.removesuffix("_s") for name in NOT_IN_TEMPLATES if getattr(submission, name, None)]


def written(submission: Submission) -> dict[str, Any]:
    """The description as plain values."""
    values: dict[str, Any] = {}
    for field in fields(Submission):
        value = getattr(submission, field.name)
        if field.name in NOT_IN_TEMPLATES or value is None or value == _default(field):
            continue
        values[field.name.removesuffix("_s")] = _plain(value)
    return values | {"payload": json.loads(submission.payload)}


def _default(field: Any) -> object:
    return field.default_factory() if field.default_factory is not MISSING else field.default


def _plain(value: object) -> object:
    match value:
        case PriorityClass():
            return value.label
        case Enum():
            return value.value
        case RetrySettings():
            named = {f.name.removesuffix("_s"): getattr(value, f.name) for f in fields(RetrySettings)}
            return {name: setting for name, setting in named.items() if setting is not None}
        case Mapping():
            return dict(value)
        case _:
            return value


def read(values: Mapping[str, Any]) -> Submission:
    """The description that `written` gave."""
    names = {field.name.removesuffix("_s"): field.name for field in fields(Submission)}
    known = {names[name]: value for name, value in values.items() if name in names}
    known["payload"] = json.dumps(values["payload"], ensure_ascii=False, separators=(",", ":"))
    if "priority" in known:
        known["priority"] = PriorityClass[known["priority"].upper()]
    if "on_miss" in known:
        known["on_miss"] = OnMiss(known["on_miss"])
    if "retry" in known:
        settings = {field.name.removesuffix("_s"): field.name for field in fields(RetrySettings)}
        known["retry"] = RetrySettings(**{settings[name]: value for name, value in known["retry"].items()})
    return Submission(**known)
