"""An HTTP endpoint in a thread, which keeps what is posted to it and answers as it is told."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Final

import orjson

Headers = dict[str, str]
EMPTY: Final = b""


@dataclass(frozen=True, slots=True)
class Posted:
    """One request: its headers by lower-case name, and its body as it came and as JSON."""

    headers: Headers
    raw: bytes
    body: Any


@dataclass(slots=True)
class Endpoint:
    """`answer` says, for what was posted, the status, the headers and the body to answer with."""

    url: str = ""
    posts: list[Posted] = field(default_factory=list)
    answer: Callable[[Posted], tuple[int, Headers, bytes]] = lambda _: (200, {}, EMPTY)


@contextmanager
def endpoint() -> Iterator[Endpoint]:
    """Run one on a free port of loopback."""
    state = Endpoint()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            raw = self.rfile.read(int(self.headers["content-length"]))
            posted = Posted({name.lower(): value for name, value in self.headers.items()}, raw, orjson.loads(raw))
            state.posts.append(posted)
            status, headers, body = state.answer(posted)
            self.send_response(status)
            for name, value in {**headers, "content-length": str(len(body))}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: Any) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    state.url = f"http://127.0.0.1:{server.server_port}/hook"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield state
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
