"""What both clients share: where the server is, how to speak with it, and what its answers mean. No I/O."""

from __future__ import annotations

import os
import time
from typing import Any, Final, Literal

import httpx2

from scheduler.sdk.errors import SchedulerError, TaskFailed
from scheduler.sdk.remote.answers import TaskInfo
from scheduler.sdk.remote.calls import Call
from scheduler.sdk.remote.trial import Reply, Trial

API: Final = "/api/v1"
TRY_S: Final = 30.0
"""How long one try may take, besides what it is asked to wait."""
POLL_S: Final = 25.0
WATCH_S: Final = 1.0
"""Between looks at a task that is watched."""
Join = Literal["fail_fast", "best_effort"]
OperationKind = Literal["replay", "cancel", "discard", "restore"]
NOT_SENT: Final = (httpx2.ConnectError, httpx2.ConnectTimeout, httpx2.PoolTimeout)


class Settings:
    """Where the server is and how to speak with it."""

    def __init__(self, url: str | None, token: str | None, timeout: float) -> None:
        self.url = (url or os.environ.get("CRONOQ_URL", "")).rstrip("/").removesuffix(API)
        secret = token or os.environ.get("CRONOQ_TOKEN", "")
        if not self.url.startswith(("http://", "https://")):
            raise SchedulerError("Say where the server is: url='https://…', or CRONOQ_URL in the environment.")
        if not secret:
            raise SchedulerError("A token is needed: token='cq_…', or CRONOQ_TOKEN in the environment.")
        self.connection: Final[dict[str, Any]] = {
            "base_url": self.url + API,
            "headers": {"Authorization": f"Bearer {secret}", "User-Agent": "cronoq-sdk"},
            # Reading the authorities' certificates takes longer than a call; without TLS there is nothing to verify.
            "verify": self.url.startswith("https://"),
        }
        self.timeout_s = timeout

    def request(self, call: Call[Any], left_s: float) -> dict[str, Any]:
        """The arguments of one try."""
        arguments: dict[str, Any] = {"params": dict(call.params)} if call.params else {}
        if call.body is not None:
            arguments["json"] = call.body
        if call.method == "POST":
            arguments["headers"] = {"Idempotency-Key": call.key}
        arguments["timeout"] = min(TRY_S, max(1.0, left_s)) + call.patience_s
        return arguments

    def trial(self, call: Call[Any]) -> Trial:
        """The tries of a call."""
        return Trial(call.method, now=time.monotonic(), total_s=self.timeout_s + call.patience_s)


def reply_of(response: httpx2.Response) -> Reply:
    """The answer as the tries of a call take it."""
    try:
        body = response.json() if response.content else None
    except ValueError:
        body = None
    after = response.headers.get("Retry-After", "")
    return Reply(response.status_code, body, float(after) if after.isdecimal() else None)


def result_of(found: TaskInfo) -> Any:
    """What a task that has ended returned. Raises TaskFailed."""
    if found.state != "succeeded":
        raise TaskFailed(found.state, found.message, task=found.id)
    return found.result


def said(error: Exception) -> str:
    """What an exception says, or at least what it is."""
    return str(error) or type(error).__name__
