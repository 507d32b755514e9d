"""What the agents of a rehearsal do besides asking a model: read things, and refund orders.

These handlers run in engines like anybody's. `refund` is the step that must not happen twice: it claims a receipt,
calls the payment service, and, where the story wants it, its whole process is killed between the payment and the
receipt.
"""

from __future__ import annotations

import asyncio
import os
import signal
from typing import Any, Final

from scheduler.demo.rehearsal.loopback import loopback_client
from scheduler.engine.executors.base import Permanent, Retryable

PAYMENTS: Final = "REHEARSAL_PAYMENTS"
TIMEOUT_S: Final = 10.0


async def tool(ctx: Any, payload: dict[str, Any]) -> dict[str, Any]:
    """Do what the payload names: `read` or `refund`."""
    return await (refund(ctx, payload) if payload["do"] == "refund" else read(payload))


async def read(payload: dict[str, Any]) -> dict[str, Any]:
    """Look something up; one that `fails` is not there, however often one asks."""
    await asyncio.sleep(float(payload["takes_s"]))
    if payload.get("fails"):
        raise Permanent(f"{payload['what']} cannot be read")
    return {"what": payload["what"], "found": True}


async def refund(ctx: Any, payload: dict[str, Any]) -> dict[str, Any]:
    """Refund an order once, whatever happens: to us, or to whoever tried before us."""
    resumed = ctx.checkpoint is not None and ctx.checkpoint.get("order") == payload["order"]
    await ctx.save_checkpoint({"stage": "paying", "order": payload["order"]})
    receipt = ctx.receipt("refund")
    answer = await receipt.claim(f"refund of {payload['order']}")
    if answer == "in_progress":
        raise Retryable("another step is at this refund", retry_after=1.0)
    if receipt.is_done:
        return {"refund": receipt.value, "resumed": resumed, "repeated": True}
    # `new`, or `unknown` because whoever claimed it died: the same key makes the same refund, so asking again is safe.
    paid = await _pay(receipt.key, payload["order"])
    # Not by the attempt's number: the first one may have fallen with another's engine, before its checkpoint.
    if payload.get("dies") and not resumed:
        os.kill(os.getpid(), signal.SIGKILL)
    await receipt.commit(paid)
    return {"refund": paid, "resumed": resumed, "repeated": False}


async def _pay(key: str, order: object) -> Any:
    async with loopback_client(TIMEOUT_S) as http:
        answer = await http.post(
            f"{os.environ[PAYMENTS]}/refunds", json={"order": order}, headers={"Idempotency-Key": key}
        )
        answer.raise_for_status()
        return answer.json()
