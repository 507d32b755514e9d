"""What is asked of a server about agent runs. No I/O."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from scheduler.sdk.remote.answers import Run
from scheduler.sdk.remote.calls import Call


def create(goal: Any, *, name: str, key: str | None, caps: Mapping[str, Any] | None, tenant: str | None) -> Call[Run]:
    """Store a run."""
    optional = {"key": key, "caps": None if caps is None else dict(caps), "tenant": tenant}
    body = {"goal": goal, "name": name, **{n: v for n, v in optional.items() if v is not None}}
    return Call("POST", "/runs", Run.of, body)


def get(run: int) -> Call[Run]:
    """A run as it stands."""
    return Call("GET", f"/runs/{run}", Run.of)


def kill(run: int, reason: str) -> Call[Run]:
    """Stop a run."""
    return Call("POST", f"/runs/{run}/kill", Run.of, {"reason": reason})


def resume(run: int, caps: Mapping[str, Any] | None, reason: str) -> Call[Run]:
    """Let a run go on."""
    return Call("POST", f"/runs/{run}/resume", Run.of, {"reason": reason} | ({"caps": dict(caps)} if caps else {}))


def finish(run: int, result: Any, *, state: str, reason: str) -> Call[Run]:
    """End a run."""
    return Call("POST", f"/runs/{run}/finish", Run.of, {"state": state, "result": result, "reason": reason})
