"""Decides what a message of either side looks like, and says of a wrong one which field is wrong and why.

Messages are JSON objects with a `type`. Fields that are not known here are ignored, so that later versions may add
some. It never decides what a message leads to.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from scheduler.protocol.fields import BadMessage, Fields
from scheduler.protocol.limits import BATCH_CHARS, LEASES_MAX, MESSAGES_MAX, POOLS_MAX, SLOTS_MAX
from scheduler.protocol.writes import WRITES, Answer, Write, answer

CLASSES: Final = (
    "error", "throttled", "overloaded", "capacity", "timeout", "permanent", "provider_billing", "cancelled",
)  # fmt: skip
"""Why an attempt failed. `cancelled` ends the task as cancelled; `permanent` and `provider_billing` end it for good."""


@dataclass(frozen=True, slots=True)
class Hello:
    """A worker introduces itself; `slots` are leases at once by pool. `worker` and `held` are for coming back.

    `batches`: it understands frames of several messages.
    """

    protocol: int
    owner: str
    slots: Mapping[str, int]
    labels: Mapping[str, str] = field(default_factory=dict)
    token: str | None = None
    worker: str | None = None
    held: tuple[int, ...] = ()
    batches: bool = False


@dataclass(frozen=True, slots=True)
class Heartbeat:
    """The worker works on these leases and wants to keep them."""

    leases: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Complete:
    """An attempt succeeded. `actual` are measured amounts of limits by name."""

    lease: int
    result: object = None
    usage: Mapping[str, Any] | None = None
    actual: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Fail:
    """An attempt failed; another follows not before `retry_after_s`, if one follows."""

    lease: int
    failure_class: str
    message: str
    retry_after_s: float | None = None
    usage: Mapping[str, Any] | None = None
    actual: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Release:
    """An attempt was not made, or is not to count: the task goes back, and starts not before `retry_after_s`."""

    lease: int
    retry_after_s: float | None = None


@dataclass(frozen=True, slots=True)
class Drain:
    """From a worker: give me nothing new. From the server: finish what you have, then go."""


@dataclass(frozen=True, slots=True)
class Ping:
    """Show that you have read everything so far."""

    n: int


@dataclass(frozen=True, slots=True)
class Pong:
    """Everything up to that ping was read."""

    n: int


Report = Complete | Fail | Release
FromWorker = Hello | Heartbeat | Report | Write | Drain | Pong


@dataclass(frozen=True, slots=True)
class Ready:
    """The worker is known under this id, with these slots. `batches`: the server takes several messages in a frame."""

    worker: str
    granted: Mapping[str, int]
    batches: bool = False


@dataclass(frozen=True, slots=True)
class Lease:
    """An attempt to make. `body` is the message as it came."""

    lease: int
    ttl_s: float
    body: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Settled:
    """A report was taken and what the task came to; `stale`: the lease had ended, and nothing was changed."""

    lease: int
    state: str | None
    stale: bool = False
    detail: str = ""


@dataclass(frozen=True, slots=True)
class Refused:
    """A report cannot be taken as it is; the lease is still the worker's."""

    lease: int
    code: str
    detail: str


@dataclass(frozen=True, slots=True)
class Beat:
    """Answer to a heartbeat: leases that were kept, those to stop and why, and those that are not the worker's."""

    kept: tuple[int, ...]
    cancel: Mapping[int, str]
    lost: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Cancel:
    """Stop this attempt: its task was `cancelled`, or its time is over (`timeout`)."""

    lease: int
    reason: str


@dataclass(frozen=True, slots=True)
class Error:
    """A message was not understood."""

    code: str
    detail: str


FromServer = Ready | Lease | Settled | Refused | Answer | Beat | Cancel | Drain | Ping | Error


def decode(text: str) -> list[Fields]:
    """The fields of the message, or of each of the messages, in a frame. Raises BadMessage."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise BadMessage("not_json", f"The message is not JSON: {error}") from None
    several = value if isinstance(value, list) else [value]
    if len(several) > MESSAGES_MAX:
        raise BadMessage("too_many", f"A frame holds at most {MESSAGES_MAX} messages.")
    if not several or not all(isinstance(each, dict) for each in several):
        raise BadMessage("not_an_object", "A message is a JSON object with a `type`.")
    return [Fields(each) for each in several]


def frames(texts: Sequence[str]) -> Iterator[str]:
    """These messages in as few frames as may be: alone, or as lists of some."""
    batch: list[str] = []
    chars = 0
    for text in texts:
        batch.append(text)
        chars += len(text)
        if chars >= BATCH_CHARS or len(batch) == MESSAGES_MAX:
            yield _frame(batch)
            batch, chars = [], 0
    if batch:
        yield _frame(batch)


def _frame(batch: list[str]) -> str:
    return batch[0] if len(batch) == 1 else f"[{','.join(batch)}]"


def encode(kind: str, /, **fields: object) -> str:
    """A message; fields that are None are left out."""
    said = {name: value for name, value in fields.items() if value is not None}
    return json.dumps({"type": kind, **said}, separators=(",", ":"), allow_nan=False)


def from_worker(said: Fields) -> FromWorker | None:
    """What a worker said; None for a type that is not known. Raises BadMessage."""
    read = _FROM_WORKER.get(said.text("type", chars_max=64))
    return None if read is None else read(said)


def hello(said: Fields) -> Hello:
    """An introduction. `slots` is a number for each of `pools`, or a number by pool. Raises BadMessage."""
    return Hello(
        protocol=said.id("protocol"),
        owner=said.text("owner", chars_max=200),
        slots=_slots(said),
        labels=said.texts("labels"),
        token=said.optional_text("token"),
        worker=said.optional_text("worker"),
        held=said.ids("held", count_max=LEASES_MAX),
        batches=said.flag("batches"),
    )


def _slots(said: Fields) -> dict[str, int]:
    count = said.value("slots")
    slots = {}
    for pool in said.names("pools", count_max=POOLS_MAX):
        number = count.get(pool) if isinstance(count, dict) else count
        if not isinstance(number, int) or isinstance(number, bool) or not 0 < number <= SLOTS_MAX:
            raise BadMessage("bad_field", f"slots: from 1 to {SLOTS_MAX} for the pool {pool!r}.", "slots")
        slots[pool] = number
    return slots


def _complete(said: Fields) -> Complete:
    return Complete(said.id("lease_id"), said.value("result"), said.optional_object("usage"), said.numbers("actual"))


def _fail(said: Fields) -> Fail:
    return Fail(
        said.id("lease_id"),
        said.one_of("class", CLASSES),
        said.text("message", default=""),
        said.optional_seconds("retry_after"),
        said.optional_object("usage"),
        said.numbers("actual"),
    )


_REPORTS: Final[Mapping[str, Callable[[Fields], Report]]] = {
    "complete": _complete,
    "fail": _fail,
    "release": lambda said: Release(said.id("lease_id"), said.optional_seconds("retry_after")),
}

_FROM_WORKER: Final[Mapping[str, Callable[[Fields], FromWorker]]] = {
    **_REPORTS,
    **WRITES,
    "hello": hello,
    "heartbeat": lambda said: Heartbeat(said.ids("leases", count_max=LEASES_MAX)),
    "drain": lambda _: Drain(),
    "pong": lambda said: Pong(said.id("n")),
}


def report(said: Mapping[str, Any]) -> Report:
    """A report that came with others in one message. Raises BadMessage."""
    fields = Fields(said)
    return _REPORTS[fields.one_of("type", _REPORTS)](fields)


def from_server(said: Fields) -> FromServer | None:
    """What the server said; None for a type that is not known. Raises BadMessage."""
    read = _FROM_SERVER.get(said.text("type", chars_max=64))
    return None if read is None else read(said)


def _ready(said: Fields) -> Ready:
    granted = {pool: int(n) for pool, n in said.numbers("granted_slots").items()}
    return Ready(said.text("worker"), granted, said.flag("batches"))


def _settled(said: Fields) -> Settled:
    detail = said.text("detail", default="")
    return Settled(said.id("lease_id"), said.optional_text("state"), said.flag("stale"), detail)


_FROM_SERVER: Final[Mapping[str, Callable[[Fields], FromServer]]] = {
    "ready": _ready,
    "lease": lambda said: Lease(said.id("lease_id"), said.optional_seconds("ttl_s") or 0.0, said.said),
    "settled": _settled,
    "refused": lambda said: Refused(said.id("lease_id"), said.text("code"), said.text("detail", default="")),
    "answer": answer,
    "beat": lambda said: Beat(said.ids("kept"), said.texts_by_id("cancel"), said.ids("lost")),
    "cancel": lambda said: Cancel(said.id("lease_id"), said.text("reason", default="cancelled")),
    "drain": lambda _: Drain(),
    "ping": lambda said: Ping(said.id("n")),
    "error": lambda said: Error(said.text("code"), said.text("detail", default="")),
}


def lease_text(head: Mapping[str, object], *, payload: str, **texts: str | None) -> str:
    """A lease message; `payload` and `texts` are JSON text already, not parsed on their way through."""
    parts = [encode("lease", **head)[:-1], ',"payload":', payload]
    for name, text in texts.items():
        if text is not None:
            parts += [f',"{name}":', text]
    return "".join([*parts, "}"])


def beat_text(kept: Sequence[int], cancel: Mapping[int, str], lost: Sequence[int]) -> str:
    """The answer to a heartbeat."""
    stops = {str(lease): reason for lease, reason in cancel.items()}
    return encode("beat", kept=list(kept), cancel=stops, lost=list(lost))
