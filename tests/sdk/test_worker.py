"""The SDK's worker against a server of a few words."""

from __future__ import annotations

import asyncio
import json
import queue
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, ClassVar
from urllib.parse import urlsplit

import pytest
from websockets.exceptions import ConnectionClosed
from websockets.sync.server import ServerConnection, serve

from scheduler.sdk.context import TaskContext
from scheduler.sdk.line import SILENCE_MAX_S, SILENCE_MIN_S, silence_max_s
from scheduler.sdk.worker import Worker

TTL_S = 2.0


@contextmanager
def server(heard: queue.Queue[Any]) -> Iterator[str]:
    """Greets whoever comes, hands two leases to the first, and says nothing more."""
    leases = [
        {
            "type": "lease",
            "lease_id": n,
            "task": n,
            "attempt": 1,
            "kind": "k",
            "pool": "p",
            "tenant": "acme",
            "ttl_s": TTL_S,
        }
        for n in (1, 2)
    ]

    def talk(connection: ServerConnection) -> None:
        hello = json.loads(connection.recv())
        heard.put(hello)
        ready = {"type": "ready", "protocol": 1, "worker": "w", "granted_slots": {"p": 2}, "batches": True}
        connection.send(json.dumps(ready if hello["held"] else [ready, *leases]))
        try:
            for text in connection:
                said = json.loads(text)
                if not isinstance(said, dict) or said["type"] != "heartbeat":
                    heard.put(said)
        except ConnectionClosed:
            pass

    with serve(talk, "127.0.0.1", 0) as listening:
        thread = threading.Thread(target=listening.serve_forever, daemon=True)
        thread.start()
        try:
            yield f"http://127.0.0.1:{listening.socket.getsockname()[1]}"
        finally:
            listening.shutdown()


@contextmanager
def at_work(worker: Worker) -> Iterator[None]:
    """The worker running until the block ends."""
    thread = threading.Thread(target=worker.run, daemon=True)
    thread.start()
    try:
        yield
    finally:
        worker.stop()
        thread.join(20.0)
        assert not thread.is_alive()


def test_reports_go_together_and_a_server_that_fell_silent_is_left_while_leases_last() -> None:
    heard: queue.Queue[Any] = queue.Queue()
    both = asyncio.Barrier(2)

    async def handle(ctx: TaskContext, _: Any) -> int:
        await both.wait()
        return ctx.id

    with server(heard) as url, at_work(Worker(url, "p", handle, slots=2, token="t", grace=0.1)):
        assert heard.get(timeout=10)["held"] == []
        reports = heard.get(timeout=10)
        assert sorted((each["type"], each["result"]) for each in reports) == [("complete", 1), ("complete", 2)]
        again = heard.get(timeout=10)
        assert (again["type"], again["worker"], again["held"]) == ("hello", "w", [1, 2])
        assert heard.get(timeout=10) == reports


class WithoutWebsockets(BaseHTTPRequestHandler):
    """What a proxy without websockets leaves of a server: its API. A lease for a poll that names none."""

    protocol_version = "HTTP/1.1"
    said: ClassVar[queue.Queue[tuple[str, Any]]] = queue.Queue()

    def do_GET(self) -> None:
        """No websocket here."""
        self.answer(404, {"detail": "There is nothing here."})

    def do_POST(self) -> None:
        """The four calls that a worker makes."""
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        what = urlsplit(self.path).path.removeprefix("/api/v1")
        if what == "/workers":
            self.answer(201, {"id": "w", "granted_slots": {"p": 1}, "kept": [], "cancel": {}, "lost": []})
        elif what == "/workers/w/heartbeat":
            self.answer(200, {"kept": body["leases"], "cancel": {}, "lost": []})
        else:
            lease = {
                "type": "lease",
                "lease_id": 1,
                "task": 7,
                "attempt": 1,
                "kind": "k",
                "pool": "p",
                "tenant": "acme",
            }
            reports = [{"lease_id": each["lease_id"], "state": "succeeded"} for each in body.get("reports", ())]
            leases = [] if body["held"] or reports else [{**lease, "ttl_s": TTL_S}]
            self.answer(200, {"leases": leases, "cancel": {}, "drain": False, "settled": reports})
        self.said.put((what, body))

    def answer(self, status: int, body: Any) -> None:
        """One answer."""
        data = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_: Any) -> None:
        """Say nothing."""


def test_where_no_websocket_gets_through_a_worker_polls() -> None:
    said = WithoutWebsockets.said = queue.Queue()
    with ThreadingHTTPServer(("127.0.0.1", 0), WithoutWebsockets) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        url = f"http://127.0.0.1:{server.server_port}"
        with at_work(Worker(url, "p", lambda ctx, _: ctx.id, slots=1, token="t", grace=0.1)):
            registered = said.get(timeout=10)
            assert (registered[0], registered[1]["pools"], registered[1]["held"]) == ("/workers", ["p"], [])
            reports: list[Any] = []
            while not reports:
                reports = said.get(timeout=10)[1].get("reports", [])
            assert reports == [{"type": "complete", "lease_id": 1, "result": 7}]
        server.shutdown()


@pytest.mark.parametrize(
    ("ttl_s", "silence_s"), [(None, SILENCE_MAX_S), (30.0, 15.0), (600.0, SILENCE_MAX_S), (0.5, SILENCE_MIN_S)]
)
def test_half_of_a_leases_time_is_left_for_coming_back(ttl_s: float | None, silence_s: float) -> None:
    assert silence_max_s(ttl_s) == silence_s
