"""Decides, for the server's side of one socket, what a worker may say now and whether it still reads what it is sent.

No I/O and no clock: times are arguments, in seconds of any clock that does not go back. It never decides who gets what
work.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from scheduler.protocol.fields import BadMessage, Fields
from scheduler.protocol.limits import (
    FRAME_BYTES_MAX,
    HELLO_WITHIN_S,
    PING_EVERY_S,
    PONG_WITHIN_S,
    UNREAD_BYTES_MAX,
    VERSIONS,
    Close,
)
from scheduler.protocol.messages import FromWorker, Hello, Pong, decode, encode, frames, from_worker

FAULTS_MAX: Final = 20
"""Messages that were not understood, before the socket is closed."""


class CloseSocket(Exception):
    """The socket is to be closed with this code, after the worker was told why."""

    def __init__(self, code: Close, detail: str) -> None:
        super().__init__(detail)
        self.code = code
        self.detail = detail


class ServerSession:
    """The server's side of one socket."""

    def __init__(self, *, now: float) -> None:
        self._began_at = now
        self._greeted = False
        self._batches = False
        self._faults = 0
        self._unread = 0
        self._pings = 0
        self._ping_at = now
        self._sent_before_ping = 0
        self._pinged: int | None = None

    def receive(self, text: str) -> Iterator[FromWorker | BadMessage]:
        """What the worker said in one frame, less what is to be ignored; faults are what it is to be told about.

        Raises CloseSocket when it is to go, after what it said before that.
        """
        if len(text) > FRAME_BYTES_MAX:
            raise CloseSocket(Close.TOO_BIG, f"A message has at most {FRAME_BYTES_MAX} bytes.")
        try:
            several = decode(text)
        except BadMessage as fault:
            yield self._note(fault)
            return
        for each in several:
            try:
                said = self._hear(each)
            except BadMessage as fault:
                yield self._note(fault)
            else:
                if said is not None:
                    yield said

    def _note(self, fault: BadMessage) -> BadMessage:
        self._faults += 1
        if not self._greeted or self._faults > FAULTS_MAX:
            raise CloseSocket(Close.BAD_MESSAGE, fault.detail) from None
        return fault

    def _hear(self, fields: Fields) -> FromWorker | None:
        said = from_worker(fields)
        if isinstance(said, Pong):
            self._read(said.n)
            return None
        if isinstance(said, Hello):
            self._greet(said)
        elif not self._greeted:
            raise CloseSocket(Close.BAD_MESSAGE, "Say hello first.")
        return said

    def _greet(self, said: Hello) -> None:
        if self._greeted:
            raise BadMessage("hello_twice", "You said hello already; open another socket to change what you offer.")
        if said.protocol not in VERSIONS:
            known = ", ".join(map(str, VERSIONS))
            raise CloseSocket(Close.UNSUPPORTED, f"Protocol {said.protocol} is not spoken here; these are: {known}.")
        self._greeted = True
        self._batches = said.batches

    # What is sent

    def sent(self, texts: Sequence[str]) -> Iterator[str]:
        """Messages that are sent now, as frames: each alone, unless the worker takes several in one."""
        for frame in frames(texts) if self._batches else texts:
            self._unread += len(frame)
            yield frame

    @property
    def is_full(self) -> bool:
        """Whether so much is unread that no lease may follow."""
        return self._unread >= UNREAD_BYTES_MAX

    def _read(self, n: int) -> None:
        if n == self._pinged:
            self._pinged = None
            self._unread -= self._sent_before_ping

    def tick(self, *, now: float) -> str | None:
        """A ping, when it is time for one. Raises CloseSocket for a worker that does not speak or does not read."""
        if not self._greeted:
            if now - self._began_at > HELLO_WITHIN_S:
                raise CloseSocket(Close.NOT_READING, f"No hello came within {HELLO_WITHIN_S:g} s.")
            return None
        if self._pinged is not None:
            if now - self._ping_at > PONG_WITHIN_S:
                raise CloseSocket(Close.NOT_READING, f"A ping was not answered within {PONG_WITHIN_S:g} s.")
            return None
        if now - self._ping_at < PING_EVERY_S and not self.is_full:
            return None
        self._pings += 1
        self._pinged, self._ping_at, self._sent_before_ping = self._pings, now, self._unread
        return encode("ping", n=self._pings)


def ready_text(worker: str, granted: Mapping[str, int]) -> str:
    """The answer to hello."""
    return encode("ready", protocol=VERSIONS[-1], worker=worker, granted_slots=dict(granted), batches=True)


def error_text(code: str, detail: str) -> str:
    """What was wrong with a message."""
    return encode("error", code=code, detail=detail)


def settled_text(lease: int, state: str | None, *, detail: str = "") -> str:
    """A report was taken; `state` None: it came too late and changed nothing."""
    if state is None:
        return encode("settled", lease_id=lease, stale=True, code="stale_lease", detail=detail)
    return encode("settled", lease_id=lease, state=state)
