"""Scripted faults: what goes wrong, for whom, how often and for how long.

Decides which fault, if any, strikes a request: the first of the script that matches. Nothing ever goes wrong by itself:
without a script the provider is healthy.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from random import Random
from typing import Final

from scheduler.demo.provider_sim.limits import is_amount
from scheduler.demo.provider_sim.wire_formats import RETRY_AFTER_FORMATS

KINDS: Final[Mapping[str, str]] = {
    "throttle": "429 rate_limit_exceeded with a Retry-After",
    "slow_down": "429 slow_down: growing too fast",
    "quota": "out of money: 429 insufficient_quota or 402 billing_error, without a Retry-After",
    "error": "a 5xx (or any status) with the provider's general error",
    "overload": "503 server_is_overloaded, 529 overloaded_error",
    "hang": "no answer, until the client gives up or for_each_s has passed",
    "slow": "the answer takes extra_s longer",
    "cut": "the answer breaks off in the middle and the connection closes",
    "reset": "the connection closes without an answer",
    "malformed": "200 with a body that is not JSON",
    "stream_error": "an error event in the middle of a stream that began with 200",
    "no_usage": "the answer leaves its usage out",
}
FAULTS_MAX: Final = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """One fault. Times are seconds.

    code                the error's code, where the API has one
    after_s, for_s      strikes from so long after the script was set, for so long (null: for ever)
    count               strikes at most so often
    probability         strikes that part of the requests that match
    model, contains     strikes only this model, only prompts that contain this text
    retry_after_s       what to ask for; null: the time until the fault ends, if it does
    retry_after_format  how to spell it
    """

    kind: str
    status: int | None = None
    code: str | None = None
    retry_after_s: float | None = None
    retry_after_format: str = "both"
    probability: float = 1.0
    count: int | None = None
    after_s: float = 0.0
    for_s: float | None = None
    model: str | None = None
    contains: str | None = None
    extra_s: float = 0.0
    for_each_s: float | None = None


@dataclass(frozen=True, slots=True)
class Strike:
    """A fault that strikes one request, with the delay it asks for worked out."""

    fault: Fault
    retry_after_s: float | None


@dataclass(slots=True)
class Script:
    """The faults in force. `set_at` is seconds of the caller's monotonic clock."""

    faults: tuple[Fault, ...]
    set_at: float
    _struck: list[int] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._struck = [0] * len(self.faults)

    def strike(self, *, model: str, prompt: str, now: float, chance: Random) -> Strike | None:
        """The fault that strikes this request, counted; None when it is spared."""
        since_s = now - self.set_at
        for index, fault in enumerate(self.faults):
            if not self._concerns(index, model=model, prompt=prompt, since_s=since_s):
                continue
            if fault.probability < 1.0 and chance.random() >= fault.probability:
                continue
            self._struck[index] += 1
            delay_s = fault.retry_after_s
            if delay_s is None and fault.for_s is not None:
                delay_s = fault.after_s + fault.for_s - since_s
            return Strike(fault, delay_s)
        return None

    def as_json(self) -> list[dict[str, object]]:
        """The script with how often each fault has struck."""
        return [{**asdict(fault), "struck": struck} for fault, struck in zip(self.faults, self._struck, strict=True)]

    def _concerns(self, index: int, *, model: str, prompt: str, since_s: float) -> bool:
        fault = self.faults[index]
        return (
            since_s >= fault.after_s
            and (fault.for_s is None or since_s < fault.after_s + fault.for_s)
            and (fault.count is None or self._struck[index] < fault.count)
            and (fault.model is None or fault.model == model)
            and (fault.contains is None or fault.contains in prompt)
        )


def parse_faults(script: object) -> tuple[Fault, ...]:
    """Read a script. Raises ValueError, with a sentence, for what makes no sense."""
    if not isinstance(script, list) or len(script) > FAULTS_MAX:
        raise ValueError(f"A script is a list of at most {FAULTS_MAX} faults.")
    return tuple(map(_parse_fault, script))


def _parse_fault(entry: object) -> Fault:
    if not isinstance(entry, dict):
        raise ValueError("A fault is an object.")  # noqa: TRY004 - one kind of error for all bad scripts
    known = {each.name for each in fields(Fault)}
    unknown = sorted(set(entry) - known)
    if unknown:
        raise ValueError(f"Unknown field {unknown[0]!r}: {', '.join(sorted(known))} are known.")
    if entry.get("kind") not in KINDS:
        raise ValueError(f"kind must be one of {', '.join(KINDS)}.")
    if entry.get("retry_after_format", "both") not in RETRY_AFTER_FORMATS:
        raise ValueError(f"retry_after_format must be one of {', '.join(RETRY_AFTER_FORMATS)}.")
    status = entry.get("status")
    if status is not None and (type(status) is not int or not 400 <= status <= 599):  # noqa: PLR2004 - statuses of errors
        raise ValueError("status must be a whole number from 400 to 599.")
    for name in ("retry_after_s", "probability", "count", "after_s", "for_s", "extra_s", "for_each_s"):
        if entry.get(name) is not None and not is_amount(entry[name]):
            raise ValueError(f"{name} must be a number that is not negative.")
    for name in ("model", "contains", "code"):
        if not isinstance(entry.get(name, ""), str | None):
            raise ValueError(f"{name} must be a text.")  # noqa: TRY004 - as above
    return Fault(**{name: value for name, value in entry.items() if value is not None})
