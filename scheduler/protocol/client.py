"""Decides, for a worker's side, what it holds, what it still has to report, and what it says when it comes back.

No I/O, no clock, no threads: one instance lives as long as the worker, over any number of sockets or polls.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from scheduler.protocol.fields import BadMessage, Fields
from scheduler.protocol.limits import VERSIONS
from scheduler.protocol.messages import (
    Beat,
    Cancel,
    Drain,
    FromServer,
    Lease,
    Ping,
    Ready,
    Refused,
    Settled,
    decode,
    encode,
    from_server,
)
from scheduler.protocol.writes import Answer


class ClientSession:
    """What a worker knows of its leases."""

    def __init__(
        self, *, owner: str, slots: Mapping[str, int], labels: Mapping[str, str] | None = None, token: str | None = None
    ) -> None:
        self.owner = owner
        self.slots = dict(slots)
        self.labels = dict(labels or {})
        self.worker: str | None = None
        self.draining = False
        self._token = token
        self._held: dict[int, Lease] = {}
        self._reports: dict[int, str] = {}
        self._writes: dict[int, tuple[int, str]] = {}
        self._refs = 0

    def hello(self) -> str:
        """The first message of a socket, also after a reconnect: what is held is named, what is not is handed back."""
        return encode("hello", token=self._token, batches=True, **self.introduction())

    def introduction(self) -> dict[str, Any]:
        """The fields of hello, which are also the body of a registration over HTTP."""
        said: dict[str, Any] = {
            "protocol": VERSIONS[-1],
            "owner": self.owner,
            "pools": sorted(self.slots),
            "slots": self.slots,
            "labels": self.labels,
            "held": sorted(self._held),
        }
        return said if self.worker is None else {**said, "worker": self.worker}

    # What comes in

    def receive(self, text: str) -> list[FromServer | BadMessage]:
        """What is new to the worker in one frame, and what could not be understood.

        Left out is what is not new: another copy of a lease, an unknown type, a late word.
        """
        try:
            several = decode(text)
        except BadMessage as fault:
            return [fault]
        heard = [self._hear(each) for each in several]
        return [said for said in heard if said is not None]

    def _hear(self, fields: Fields) -> FromServer | BadMessage | None:
        try:
            return self.take(from_server(fields))
        except BadMessage as fault:
            return fault

    def take(self, said: FromServer | None) -> FromServer | None:
        """One message: itself if it is new, else None."""
        match said:
            case Ready():
                self.worker = said.worker
            case Lease():
                return self._begin(said)
            case Settled():
                self._drop(said.lease)
            case Refused():
                self._reports.pop(said.lease, None)
            case Answer():
                self._writes.pop(said.ref, None)
            case Beat():
                for lease in said.lost:
                    self._drop(lease)
            case Cancel() if said.lease not in self._held:
                return None
            case Drain():
                self.draining = True
            case _:
                pass
        return said

    def _begin(self, said: Lease) -> Lease | None:
        if said.lease in self._held:
            return None
        self._held[said.lease] = said
        return said

    def _drop(self, lease: int) -> None:
        self._held.pop(lease, None)
        self._reports.pop(lease, None)
        self._writes = {ref: each for ref, each in self._writes.items() if each[0] != lease}

    # What goes out

    @property
    def held(self) -> tuple[int, ...]:
        """Leases to renew: running, or ended and not yet acknowledged."""
        return tuple(self._held)

    @property
    def unsettled(self) -> tuple[str, ...]:
        """What was not acknowledged, writes before reports: sent again after a reconnect, which does no harm."""
        return (*(text for _, text in self._writes.values()), *self._reports.values())

    def is_held(self, lease: int) -> bool:
        """Whether the lease is still this worker's, as far as it knows."""
        return lease in self._held

    @property
    def ended(self) -> int:
        """How many of them have ended and are not acknowledged yet."""
        return len(self._reports)

    def run_of(self, lease: int) -> int | None:
        """The run that a lease held is a step of."""
        held = self._held.get(lease)
        run: int | None = None if held is None else held.body.get("run")
        return run

    def ttl_s(self) -> float | None:
        """The shortest time of a lease held."""
        return min((lease.ttl_s for lease in self._held.values() if lease.ttl_s > 0), default=None)

    def free(self, pool: str) -> int:
        """Slots of a pool that nothing runs in."""
        busy = sum(1 for lease in self._held.values() if lease.body.get("pool") == pool)
        return max(0, self.slots.get(pool, 0) - busy)

    def heartbeat(self) -> str | None:
        """A heartbeat for all that is held; None when nothing is."""
        return encode("heartbeat", leases=list(self._held)) if self._held else None

    def report(self, kind: str, lease: int, **fields: object) -> str | None:
        """A `complete`, `fail` or `release`, kept until it is acknowledged; None when the lease is not held."""
        if lease not in self._held:
            return None
        text = self._reports[lease] = encode(kind, lease_id=lease, **fields)
        return text

    def write(self, kind: str, lease: int, **fields: object) -> tuple[int, str] | None:
        """A `checkpoint`, `charge`, `claim`, `commit` or `abandon` and its ref, kept until answered; None: not held."""
        if lease not in self._held:
            return None
        self._refs += 1
        text = encode(kind, ref=self._refs, lease_id=lease, **fields)
        self._writes[self._refs] = (lease, text)
        return self._refs, text


def pong(said: Ping) -> str:
    """The answer to a ping."""
    return encode("pong", n=said.n)
