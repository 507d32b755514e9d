"""Decides, without I/O, what follows a try of a call: its answer, an error, or another try after a pause.

What may be tried again is what the server can recognise (every POST carries a key) or what changes nothing. An edit
of a version is tried again only when it never got there. Everything ends within the time that the caller gives.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from scheduler.sdk.errors import ApiError

BACKOFF_FIRST_S: Final = 0.1
BACKOFF_MAX_S: Final = 5.0
STATUS_OK: Final = 300
RETRYABLE: Final = frozenset({408, 429, 500, 502, 503, 504})
REPEATABLE: Final = frozenset({"GET", "HEAD", "POST"})


@dataclass(frozen=True, slots=True)
class Again:
    """Try once more after so many seconds."""

    after_s: float


@dataclass(frozen=True, slots=True)
class Reply:
    """An answer of the server. `body` is its JSON, None where there is none."""

    status: int
    body: Any = None
    retry_after_s: float | None = None


class Trial:
    """The tries of one call. Times are of any one clock that only goes forward."""

    def __init__(self, method: str, *, now: float, total_s: float) -> None:
        self._method = method
        self._give_up_at = now + total_s
        self._tries = 0

    def left_s(self, now: float) -> float:
        """The seconds that the call may still take."""
        return max(0.0, self._give_up_at - now)

    def answered(self, reply: Reply, *, now: float) -> Again | None:
        """None for a success. Raises ApiError with what the server said when that is the end of it."""
        if reply.status < STATUS_OK:
            return None
        error = api_error(reply)
        if not error.retryable or self._method not in REPEATABLE:
            raise error
        return self._again(error, reply.retry_after_s, now=now)

    def lost(self, why: str, *, now: float, sent: bool) -> Again:
        """The connection failed; `sent`: the request may have arrived. Raises ApiError when that is the end of it."""
        error = ApiError(0, "unreachable", f"The server does not answer: {why}", retryable=True)
        if sent and self._method not in REPEATABLE:
            raise error
        return self._again(error, None, now=now)

    def _again(self, error: ApiError, retry_after_s: float | None, *, now: float) -> Again:
        most = min(BACKOFF_MAX_S, BACKOFF_FIRST_S * 2 ** min(self._tries, 10))
        self._tries += 1
        jitter = random.uniform(0.0, most)  # noqa: S311 - jitter
        # What the server says is the least; some of ours on top, so that not all come back together.
        pause_s = jitter if retry_after_s is None else retry_after_s + min(jitter, 0.1 * retry_after_s + 0.05)
        if now + pause_s >= self._give_up_at:
            raise error
        return Again(pause_s)


def api_error(reply: Reply) -> ApiError:
    """The server's problem document as an error; anything else is told by its status."""
    problem: Mapping[str, Any] = reply.body if isinstance(reply.body, Mapping) else {}
    return ApiError(
        reply.status,
        str(problem.get("code") or f"http_{reply.status}"),
        str(problem.get("detail") or problem.get("title") or f"The server answered with status {reply.status}."),
        retryable=reply.status in RETRYABLE,
        errors=problem.get("errors") or (),
        retry_after=reply.retry_after_s,
    )
