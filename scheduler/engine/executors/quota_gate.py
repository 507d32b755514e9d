"""Holds back calls that a provider has asked not to receive yet.

Decides, in this process only, whether a call on a quota may be sent now. The planner stops new attempts on the quota
for every process; this gate stops those that had been started but not yet sent. It must never shorten a wait.
"""

from __future__ import annotations

from typing import Final

GATES_MAX: Final = 1024


class QuotaGates:
    """The earliest next call per quota, in seconds of a monotonic clock that the caller reads."""

    def __init__(self) -> None:
        self._not_before: dict[tuple[str, str], float] = {}

    def wait_s(self, quota: tuple[str, str], *, now: float) -> float:
        """Seconds until a call on the quota may be sent; 0 when it may be sent now."""
        not_before = self._not_before.get(quota)
        return 0.0 if not_before is None else max(0.0, not_before - now)

    def close(self, quota: tuple[str, str], *, for_s: float, now: float) -> None:
        """Let no call on the quota be sent for `for_s` seconds; a longer wait that is already in force stays."""
        if len(self._not_before) >= GATES_MAX:
            self._not_before = {each: until for each, until in self._not_before.items() if until > now}
        self._not_before[quota] = max(now + for_s, self._not_before.get(quota, now))


PROCESS_GATES: Final = QuotaGates()
"""Shared by every pool of this process, because several may draw on one quota."""
