"""An attempt of the engine in the SDK's words: the same calls, and refusals that users of the SDK can catch."""

from __future__ import annotations

from collections.abc import Awaitable, Mapping
from typing import Any, TypeVar

from scheduler.engine.executors import base
from scheduler.errors import CronoqError
from scheduler.sdk.errors import Permanent, WriteRefused

T = TypeVar("T")


class OwnAttempt:
    """Whatever is not here is the engine's own."""

    def __init__(self, attempt: Any) -> None:
        self._attempt = attempt

    def __getattr__(self, name: str) -> Any:
        """What the engine's attempt says."""
        return getattr(self._attempt, name)

    async def save_checkpoint(self, value: Any) -> int:
        """Write where the run can be taken up."""
        self._of_run()
        return await _kept(self._attempt.save_checkpoint(value))

    async def charge(self, usage: Mapping[str, Any], call: str) -> bool:
        """Charge a call."""
        return await _kept(self._attempt.charge(usage, call))

    def receipt(self, step: str) -> OwnReceipt:
        """An effect of the run."""
        self._of_run()
        return OwnReceipt(self._attempt.receipt(step))

    def _of_run(self) -> None:
        if self._attempt.run is None:
            raise WriteRefused("This task is no step of a run: submit it with the run's id.", "not_a_step")


class OwnReceipt:
    """An effect of the run on the world outside."""

    def __init__(self, receipt: Any) -> None:
        self._receipt = receipt

    def __getattr__(self, name: str) -> Any:
        """What the engine's receipt says."""
        return getattr(self._receipt, name)

    async def claim(self, fingerprint: str) -> str:
        """Ask to make it."""
        return str(await _kept(self._receipt.claim(fingerprint)))

    async def commit(self, receipt: Any) -> Any:
        """Put down what came of it; the receipt that stands."""
        return await _kept(self._receipt.commit(receipt))

    async def abandon(self) -> None:
        """Give the claim up."""
        await _kept(self._receipt.abandon())


async def _kept(doing: Awaitable[T]) -> T:
    try:
        return await doing
    except CronoqError as error:
        raise WriteRefused(error.detail, error.code) from error
    except base.Permanent as error:
        raise Permanent(error.message) from error
