"""A step that refunds an order by way of a payment service and dies where its payload says; and that service."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import threading
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from scheduler.engine.executors.base import Retryable
from scheduler.policy.receipts import ClaimAnswer

POINTS = ("begun", "claimed", "paid", "committed", "saved")


async def refund(ctx: Any, payload: dict[str, Any]) -> Any:
    """Refund once, whoever tries and however often."""
    here = _Deadly(payload["die"], ctx.attempt)
    here("begun")
    effect = ctx.receipt("refund")
    if await effect.claim(f"refund order {payload['order']}") is ClaimAnswer.IN_PROGRESS:
        raise Retryable("another step is at it", 0.1)
    here("claimed")
    if not effect.is_done:
        receipt = await asyncio.to_thread(_pay, payload["url"], effect.key)
        here("paid")
        await effect.commit(receipt)
        here("committed")
    if ctx.checkpoint is None:
        await ctx.save_checkpoint({"refunded": payload["order"]})
        here("saved")
    return {"receipt": effect.value, "checkpoint": ctx.checkpoint, "run": ctx.run}


class _Deadly:
    """Kills its process at one point of the first attempt."""

    def __init__(self, point: str, attempt: int) -> None:
        self._point = point if attempt == 1 else None

    def __call__(self, point: str) -> None:
        if point == self._point:
            os.kill(os.getpid(), signal.SIGKILL)


def _pay(url: str, key: str) -> Any:
    request = urllib.request.Request(url, data=b"{}", headers={"Idempotency-Key": key}, method="POST")
    with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(request, timeout=10) as answer:
        return json.load(answer)


class Payments:
    """What the payment service did: a refund for each key, however often it was asked."""

    def __init__(self) -> None:
        self.url = ""
        self.refunds: dict[str, dict[str, Any]] = {}
        self.asked = 0
        self.lock = threading.Lock()

    def refund(self, key: str) -> dict[str, Any]:
        """The refund of that key."""
        with self.lock:
            self.asked += 1
            return self.refunds.setdefault(key, {"refund": len(self.refunds) + 1})


@contextmanager
def payment_service() -> Iterator[Payments]:
    """A payment service on HTTP."""
    payments = Payments()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.dumps(payments.refund(self.headers["Idempotency-Key"])).encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        payments.url = f"http://127.0.0.1:{server.server_port}/"
        try:
            yield payments
        finally:
            server.shutdown()
            thread.join()
