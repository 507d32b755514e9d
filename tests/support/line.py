"""A TCP line between two parties, as it is in the world: it breaks, it stalls, and it leads elsewhere."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress


class Line:
    """A TCP line that a test cuts or stalls. It goes on to the first of `targets` that takes it, as a proxy would."""

    def __init__(self, *targets: int) -> None:
        self.targets = list(targets)
        self._open = threading.Event()
        self._open.set()
        self._pairs: list[tuple[socket.socket, socket.socket]] = []
        self._listener = socket.create_server(("127.0.0.1", 0))
        threading.Thread(target=self._accept, daemon=True).start()

    @property
    def url(self) -> str:
        """Where it begins."""
        return f"http://127.0.0.1:{self._listener.getsockname()[1]}"

    def cut(self) -> None:
        """Break every connection; new ones are let through."""
        pairs, self._pairs = self._pairs, []
        for each in (end for pair in pairs for end in pair):
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)

    @contextmanager
    def stalled(self) -> Iterator[None]:
        """Let nothing through in either direction, and no connection end."""
        self._open.clear()
        try:
            yield
        finally:
            self._open.set()

    def close(self) -> None:
        """End."""
        self._listener.close()
        self.cut()

    def _accept(self) -> None:
        while True:
            try:
                near, _ = self._listener.accept()
            except OSError:
                return
            self._open.wait()
            far = self._go_on()
            if far is None:
                near.close()
                continue
            self._pairs.append((near, far))
            for ends in ((near, far), (far, near)):
                threading.Thread(target=self._carry, args=ends, daemon=True).start()

    def _go_on(self) -> socket.socket | None:
        for target in list(self.targets):
            with suppress(OSError):
                return socket.create_connection(("127.0.0.1", target))
        return None

    def _carry(self, source: socket.socket, sink: socket.socket) -> None:
        with suppress(OSError):
            while data := source.recv(65_536):
                self._open.wait()
                sink.sendall(data)
        for each in (source, sink):
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
        source.close()
