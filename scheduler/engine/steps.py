"""What a step's attempt can do for its run: write where it can be taken up, and make an effect on the world once.

Every call goes to the database under the attempt's lease; one that is not current changes nothing and raises Conflict.
It decides nothing: what a claim is answered is `services.receipts`' business.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Mapping
from typing import Any, ParamSpec, TypeVar

import orjson

from scheduler.engine.db_thread import DbThread
from scheduler.engine.executors.base import Permanent
from scheduler.policy.payload import fault_in_json
from scheduler.policy.receipts import ClaimAnswer
from scheduler.policy.types import LeasedTask, RunId
from scheduler.services import receipts
from scheduler.services.using import charge_call

P = ParamSpec("P")
R = TypeVar("R")


class Desk:
    """The way of an engine's steps to the database: a thread and a connection of their own, made when first needed."""

    def __init__(self) -> None:
        self._db: DbThread | None = None

    async def call(self, service: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
        """Run a service to its end, even if the attempt is stopped meanwhile."""
        if self._db is None:
            self._db = DbThread("steps")
        return await self._db.call(service, *args, **kwargs)

    def close(self) -> None:
        """Give the connection back."""
        if self._db is not None:
            self._db.close()


class StepReceipt:
    """An effect of a step on the world outside, by its name in the run.

    `claim` before making it and `commit` after. `key` is what to pass on to whoever makes it, so that a repetition is
    recognised there; `value` is the receipt, once there is one.
    """

    def __init__(self, step: str, run: RunId, leased: LeasedTask, desk: Desk) -> None:
        self.step = step
        self.answer: ClaimAnswer | None = None
        self.key = ""
        self.value: Any = None
        self._run = run
        self._leased = leased
        self._desk = desk

    @property
    def is_done(self) -> bool:
        """Whether the effect has been made, by whichever attempt."""
        return self.answer is ClaimAnswer.DONE

    async def claim(self, fingerprint: str) -> ClaimAnswer:
        """Ask to make the effect. `fingerprint` says what exactly: another one under the same name is refused.

        `new`: make it. `done`: it is made, `value` is its receipt. `in_progress`: another step is at it. `unknown`:
        whoever claimed it died; verify, or repeat it with the same `key`.
        """
        made = await self._desk.call(receipts.claim, self._run, self.step, fingerprint, **self._held())
        self.answer, self.key = made.answer, made.idempotency_key
        self.value = None if made.receipt is None else orjson.loads(made.receipt)
        return self.answer

    async def commit(self, receipt: Any) -> Any:
        """Put down what came of the effect (JSON); returns the receipt that stands, which is the first one."""
        text = json_text(receipt, "receipt")
        self.value = orjson.loads(await self._desk.call(receipts.commit, self._run, self.step, text, **self._held()))
        self.answer = ClaimAnswer.DONE
        return self.value

    async def abandon(self) -> None:
        """Give the claim up, the effect not made: whoever claims it next makes it."""
        await self._desk.call(receipts.abandon, self._run, self.step, **self._held())
        self.answer = None

    def _held(self) -> dict[str, Any]:
        return {"lease": self._leased.lease, "tenant": self._leased.tenant}


class StepSide:
    """A run's step as its handler sees the run."""

    def __init__(self, leased: LeasedTask, desk: Desk) -> None:
        self._leased = leased
        self._desk = desk
        self._loop = asyncio.get_running_loop()
        self.checkpoint: Any = None if leased.checkpoint is None else orjson.loads(leased.checkpoint)

    def receipt(self, step: str) -> StepReceipt:
        """The effect of that name in the run. Raises Permanent outside a run."""
        return StepReceipt(step, self._of_run(), self._leased, self._desk)

    async def save_checkpoint(self, value: Any) -> int:
        """Write where the run can be taken up (JSON); the next attempt of any of its steps is handed it."""
        text = json_text(value, "checkpoint")
        leased = self._leased
        version = await self._desk.call(
            receipts.save_checkpoint, self._of_run(), text, lease=leased.lease, tenant=leased.tenant
        )
        self.checkpoint = orjson.loads(text)
        return version

    async def charge(self, usage: Mapping[str, Any], call: str) -> bool:
        """Charge a call of this attempt; False when one of that name was charged before."""
        leased = self._leased
        return await self._desk.call(charge_call, leased.lease, call, dict(usage), tenant=leased.tenant)

    def wait(self, doing: Coroutine[Any, Any, R]) -> R:
        """For handlers that are plain functions, in a thread: let this be done, and return what comes of it."""
        return asyncio.run_coroutine_threadsafe(doing, self._loop).result()

    def _of_run(self) -> RunId:
        if self._leased.run is None:
            raise Permanent("This task is no step of a run: submit it with the run's id.")
        return self._leased.run


def json_text(value: object, what: str) -> str:
    """JSON text of what a handler wants kept. Raises Permanent for what cannot be."""
    fault = fault_in_json(value)
    if fault is not None:
        where = ".".join(str(part) for part in fault.loc) or f"the {what}"
        raise Permanent(f"The {what} cannot be stored: {where}: {fault.msg}")
    return orjson.dumps(value).decode()
