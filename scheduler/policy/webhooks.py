"""Decides which events a webhook may ask for, when a delivery that failed is tried again, and when no more.

A webhook gets its events in order: a stretch that was not confirmed is posted again, as it was, before anything later.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from scheduler.errors import FieldError
from scheduler.policy.alerts import Alert
from scheduler.policy.destinations import Network, fault_in_url
from scheduler.policy.states import TaskState

EVENTS_PER_POST_MAX: Final = 100
RETRY_FIRST_S: Final = 5.0
RETRY_MAX_S: Final = 3600.0
GIVE_UP_AFTER_S: Final = 3 * 86_400.0
"""How long a receiver may fail before its webhook is switched off."""
DOUBLINGS_MAX: Final = 20

TRANSITION_PREFIX: Final = "task."
ALERTS: Final = "alert"
"""Stands for every event whose name begins so."""
EVENT_NAMES: Final = (*(f"{TRANSITION_PREFIX}{state}" for state in TaskState), ALERTS, *Alert)


class Standing(StrEnum):
    """Whether a webhook is posted to."""

    ACTIVE = "active"
    PAUSED = "paused"
    """By a person."""
    DISABLED = "disabled"
    """Because it failed for too long."""


@dataclass(frozen=True, slots=True)
class TryAgain:
    """After this many seconds."""

    after_s: float


@dataclass(frozen=True, slots=True)
class SwitchOff:
    """It has failed for too long, or its receiver said that it is gone."""

    why: str


def decide_after_failure(
    *, failures: int, failing_for_s: float, status: int | None, retry_after_s: float | None, draw: float
) -> TryAgain | SwitchOff:
    """What follows the failure number `failures` in a row; `draw` is uniform in [0, 1).

    The wait doubles from 5 s up to an hour, less up to half by chance, and is never shorter than the receiver asked.
    """
    if status == 410:  # noqa: PLR2004 - 410 is the one word for it
        return SwitchOff("its receiver answered 410: gone")
    if failing_for_s >= GIVE_UP_AFTER_S:
        return SwitchOff(f"it has failed for {failing_for_s / 3600.0:.0f} hours")
    most = min(RETRY_MAX_S, RETRY_FIRST_S * 2.0 ** min(failures - 1, DOUBLINGS_MAX))
    return TryAgain(max(most * (1.0 - draw / 2.0), min(retry_after_s or 0.0, RETRY_MAX_S)))


def faults_in_webhook(url: str, events: Sequence[str], allowed: Sequence[Network]) -> tuple[FieldError, ...]:
    """Everything that has to change before this webhook can be declared."""
    found: list[FieldError] = []
    fault = fault_in_url(url, allowed)
    if fault is not None:
        found.append(FieldError(("url",), fault))
    if not events:
        found.append(FieldError(("events",), f"Name at least one event of: {', '.join(EVENT_NAMES)}."))
    unknown = sorted(set(events) - set(EVENT_NAMES))
    if unknown:
        found.append(FieldError(("events",), f"There is no event {unknown[0]!r}; there are {', '.join(EVENT_NAMES)}."))
    return tuple(found)


def wants_transitions(events: Sequence[str]) -> bool:
    """Whether a webhook that asked for these gets any transition; alerts are told whoever listens."""
    return any(name.startswith(TRANSITION_PREFIX) for name in events)


def wants(events: Sequence[str], event_type: str) -> bool:
    """Whether a webhook that asked for these gets an event of this type."""
    return event_type in events or (ALERTS in events and event_type.startswith(f"{ALERTS}."))
