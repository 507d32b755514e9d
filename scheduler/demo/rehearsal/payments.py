"""A payment service to rehearse against: refunds, counted by the key that the caller names.

Like a real one it applies the same key once and answers with the first refund again; unlike a real one it also counts
how often each key was sent, and tells. It must never forget while it runs.

``python -m scheduler.demo.rehearsal.payments FD``: serves on a socket that it inherits, until it is ended.
"""

from __future__ import annotations

import json
import socket
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


class Book:
    """What was refunded."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._refunds: dict[str, dict[str, Any]] = {}
        self._asked: dict[str, int] = {}

    def refund(self, key: str, order: object) -> dict[str, Any]:
        """The refund of this key: made now, or the one made before."""
        with self._lock:
            self._asked[key] = self._asked.get(key, 0) + 1
            return self._refunds.setdefault(key, {"refund": len(self._refunds) + 1, "key": key, "order": order})

    def told(self) -> dict[str, Any]:
        """Refunds by order, and how often keys were sent again."""
        with self._lock:
            orders: dict[str, int] = {}
            for refund in self._refunds.values():
                orders[str(refund["order"])] = orders.get(str(refund["order"]), 0) + 1
            again = sum(times - 1 for times in self._asked.values())
            return {"refunds": len(self._refunds), "orders": orders, "sent_again": again}


class Handler(BaseHTTPRequestHandler):
    """``POST /refunds`` with an ``Idempotency-Key``; ``GET /refunds`` tells."""

    protocol_version = "HTTP/1.1"
    book = Book()

    def do_POST(self) -> None:
        """Refund an order."""
        length = int(self.headers.get("Content-Length", 0))
        data = self.rfile.read(length)
        if len(data) < length:
            # Whoever asked has died in the middle: what is not known whole is not done.
            self.close_connection = True
            return
        body = json.loads(data or b"{}")
        key = self.headers.get("Idempotency-Key")
        if not key:
            self._answer(400, {"error": "A refund needs an Idempotency-Key."})
        else:
            self._answer(200, self.book.refund(key, body.get("order")))

    def do_GET(self) -> None:
        """Tell."""
        self._answer(200, self.book.told())

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - named by the base class
        """Say nothing of single requests."""

    def _answer(self, status: int, body: object) -> None:
        data = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)


def serve(listener: socket.socket) -> None:
    """Serve on a bound socket until the process is ended."""
    server = ThreadingHTTPServer(listener.getsockname(), Handler, bind_and_activate=False)
    server.socket.close()
    server.socket = listener
    server.server_activate()
    server.serve_forever()


if __name__ == "__main__":
    serve(socket.socket(fileno=int(sys.argv[1])))
