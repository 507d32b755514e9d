"""A remote worker's long polls, for where no websocket gets through: leases come with polls, and reports go with them.

Knows nothing of handlers and attempts. Any request that stays without an answer ends the connection: on the next one
the worker names what it holds, and says again what was not acknowledged.
"""

from __future__ import annotations

import json
import logging
import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from http import HTTPStatus
from typing import Any, Final, TypeVar
from urllib.parse import quote

from scheduler.protocol.fields import BadMessage, Fields
from scheduler.protocol.limits import BATCH_CHARS, MESSAGES_MAX, Close
from scheduler.protocol.messages import from_server
from scheduler.sdk.errors import WorkerRefused
from scheduler.sdk.http_line import HttpLine, Reply
from scheduler.sdk.line import SILENCE_MAX_S, Wire

logger = logging.getLogger(__name__)

T = TypeVar("T")

WAIT_S: Final = 20.0
"""How long a poll waits for work."""
ANSWER_S: Final = 10.0
"""How long an answer may take, besides what it is asked to wait."""
IDLE_S: Final = 0.5
REQUESTS_MAX: Final = 4
"""Requests beside the poll and the heartbeat."""
REPORTS: Final = frozenset({"complete", "fail", "release"})
OF_LEASES: Final = frozenset({"checkpoint", "charge"})
TRANSIENT: Final = frozenset({HTTPStatus.UNAUTHORIZED, HTTPStatus.REQUEST_TIMEOUT, HTTPStatus.TOO_MANY_REQUESTS})
"""After these, and after faults of the server, the worker comes again; coming again tells what is the matter."""
ENDS: Final = {HTTPStatus.UNAUTHORIZED: Close.UNAUTHENTICATED, HTTPStatus.FORBIDDEN: Close.FORBIDDEN}


class PollLine:
    """A worker's connections by long polls, one after the other. `_bell` guards what the threads share."""

    def __init__(self, wire: Wire) -> None:
        self._wire = wire
        self._bell = threading.Condition()
        self._riding: list[str] = []
        self._waiting = False
        self._draining = False
        self._polls = HttpLine(wire.url, wire.token)
        self._others = threading.local()
        self._pool = ThreadPoolExecutor(REQUESTS_MAX, thread_name_prefix="request")
        self.is_up = False

    # The connection

    def serve(self) -> bool:
        """One connection, from the registration to the first request without an answer.

        Raises OSError when there is no server, and WorkerRefused.
        """
        self._polls = HttpLine(self._wire.url, self._wire.token)
        try:
            self._introduce()
            with self._bell:
                self._riding.clear()
                self.is_up = True
            self._wire.greeted()
            self._work()
        finally:
            self.is_up = False
            self._polls.close()
        return True

    def _introduce(self) -> None:
        with self._wire.lock:
            said = self._wire.session.introduction()
        answer = self._polls.post("/workers", said, timeout_s=ANSWER_S)
        if answer.status in ENDS:
            raise WorkerRefused(answer.detail, ENDS[HTTPStatus(answer.status)])
        if answer.status == HTTPStatus.UNPROCESSABLE_ENTITY:
            unspoken = answer.code == "unsupported_protocol"
            raise WorkerRefused(answer.detail, Close.UNSUPPORTED if unspoken else Close.BAD_MESSAGE)
        if answer.status != HTTPStatus.CREATED:
            raise ConnectionError(answer.detail)
        body = answer.body
        self._hear("ready", worker=body["id"], granted_slots=body["granted_slots"])
        if body.get("kept") is not None:
            self._hear("beat", **{name: body[name] for name in ("kept", "cancel", "lost")})

    def _work(self) -> None:
        """Poll while there is room, and carry reports, until the connection breaks."""
        try:
            while not (self._wire.closing.is_set() or self._polls.broken):
                with self._bell:
                    if not self._riding and not self._free():
                        self._bell.wait(IDLE_S)
                    reports, free = self._board(), self._free()
                    self._waiting = bool(free) and not reports
                if reports and not free:
                    for text in reports:
                        self._deliver(text, self._polls)
                elif free:
                    self._poll(reports, free)
        except OSError as error:
            if not (self._draining or self._wire.closing.is_set()):
                logger.warning("the server does not answer; connecting again: %s", error)
        finally:
            self._waiting = False

    def _free(self) -> int:
        """Slots to ask for: none for a worker that takes nothing new. What is on its way as a report has ended."""
        if self._draining:
            return 0
        with self._wire.lock:
            session = self._wire.session
            return sum(session.slots.values()) - len(session.held) + session.ended

    def _board(self) -> list[str]:
        """The reports that go along with the next poll."""
        chars = count = 0
        for text in self._riding[:MESSAGES_MAX]:
            chars += len(text)
            if count and chars > BATCH_CHARS:
                break
            count += 1
        boarded, self._riding = self._riding[:count], self._riding[count:]
        return boarded

    def _poll(self, texts: Sequence[str], free: int) -> None:
        reports = [json.loads(text) for text in texts]
        ended = {each["lease_id"] for each in reports}
        with self._wire.lock:
            worker = self._wire.session.worker
            held = [lease for lease in self._wire.session.held if lease not in ended]
        body = {"held": held, "reports": reports} if reports else {"held": held}
        path = f"/workers/{worker}/lease?max={free}&wait_s={WAIT_S:g}"
        answer = self._polls.post(path, body, timeout_s=WAIT_S + ANSWER_S)
        if answer.status in {HTTPStatus.UNPROCESSABLE_ENTITY, HTTPStatus.REQUEST_ENTITY_TOO_LARGE} and reports:
            # One of them is no good: each is told so by itself.
            for text in texts:
                self._deliver(text, self._polls)
            return
        if answer.status != HTTPStatus.OK:
            raise ConnectionError(answer.detail)
        news = answer.body
        for each in news.get("settled") or ():
            is_settled = each.get("state") or each.get("stale")
            self._hear("settled" if is_settled else "refused", **each)
        for each in news["leases"]:
            self._hear(**each)
        for lease, reason in news["cancel"].items():
            self._hear("cancel", lease_id=int(lease), reason=reason)
        if news["drain"] and not self._draining:
            self._hear("drain")

    def _hear(self, type: str, **fields: Any) -> None:  # noqa: A002 - the message's own name for it
        try:
            with self._wire.lock:
                said = self._wire.session.take(from_server(Fields({"type": type, **fields})))
        except BadMessage as fault:
            logger.warning("a message of the server was not understood: %s", fault.detail)
        else:
            if said is not None:
                self._wire.heed(said)

    # What the worker says

    def send(self, texts: Sequence[str]) -> None:
        """Say these. On a connection that is gone they are lost. Heartbeats are answered before it returns."""
        for text in texts if self.is_up else ():
            said = json.loads(text)
            match said["type"]:
                case "heartbeat":
                    self._beat(said)
                case "drain":
                    self._drain()
                case kind if kind in REPORTS:
                    self._report(text)
                case kind if kind != "pong":
                    self._later(self._write, said)

    def close(self) -> None:
        """End `serve`. Safe from any thread."""
        self._break_off()
        self._pool.shutdown(wait=False, cancel_futures=True)

    def _break_off(self) -> None:
        self._polls.break_off()
        with self._bell:
            self._bell.notify_all()

    def _drain(self) -> None:
        """Take nothing new. What an open poll may still bring is given back by the next introduction."""
        if not self._draining:
            self._draining = True
            self._break_off()

    def _report(self, text: str) -> None:
        """Send it with the next poll, or by itself while one waits for work."""
        with self._bell:
            if not self._waiting:
                self._riding.append(text)
                self._bell.notify_all()
                return
        self._later(self._deliver, text)

    def _deliver(self, text: str, line: HttpLine | None = None) -> None:
        """One report by itself. Without an answer the connection is broken off."""
        said = json.loads(text)
        lease, kind = said.pop("lease_id"), said.pop("type")
        answer = self._ask(f"/leases/{lease}/{kind}", said, line=line)
        if answer is None:
            return
        if answer.status in {HTTPStatus.OK, HTTPStatus.CONFLICT}:
            stale = answer.status == HTTPStatus.CONFLICT
            self._hear("settled", lease_id=lease, state=answer.body.get("state"), stale=stale)
        else:
            self._hear("refused", lease_id=lease, code=answer.code, detail=answer.detail)

    def _write(self, said: Mapping[str, Any]) -> None:
        """A checkpoint, a charge, or an effect of a run."""
        kind, lease, ref = said["type"], said["lease_id"], said["ref"]
        body = {name: value for name, value in said.items() if name not in {"type", "ref", "lease_id", "step"}}
        path = f"/leases/{lease}/{kind}"
        if kind not in OF_LEASES:
            with self._wire.lock:
                run = self._wire.session.run_of(lease)
            if run is None:
                detail = "This task is no step of a run."
                self._hear("answer", ref=ref, lease_id=lease, code="not_a_step", detail=detail)
                return
            body["lease_id"] = lease
            path = f"/runs/{run}/receipts/{quote(said['step'], safe='')}/{kind}"
        answer = self._ask(path, body)
        if answer is None:
            return
        refused = answer.status >= HTTPStatus.BAD_REQUEST
        fields = {"code": answer.code, "detail": answer.detail} if refused else answer.body
        self._hear("answer", **{**fields, "ref": ref, "lease_id": lease})

    def _beat(self, said: Mapping[str, Any]) -> None:
        with self._wire.lock:
            worker = self._wire.session.worker
        body = {"leases": said["leases"]}
        answer = self._ask(f"/workers/{worker}/heartbeat", body, timeout_s=self._wire.silence_max_s())
        if answer is not None and answer.status == HTTPStatus.OK:
            self._hear("beat", **answer.body)

    def _ask(
        self, path: str, body: object, *, line: HttpLine | None = None, timeout_s: float = SILENCE_MAX_S
    ) -> Reply | None:
        """The answer, on this thread's own connection; None when there is none that counts: all is said again."""
        polls = self._polls
        try:
            answer = (line or self._own()).post(path, body, timeout_s=timeout_s)
        except OSError as error:
            if not self._wire.closing.is_set():
                logger.warning("the server does not answer: %s", error)
        else:
            if answer.status not in TRANSIENT and answer.status < HTTPStatus.INTERNAL_SERVER_ERROR:
                return answer
        # Only the connection on which it was said; there may be a newer one by now.
        if polls is self._polls:
            self._break_off()
        return None

    def _later(self, say: Callable[[T], None], what: T) -> None:
        """On a thread that may wait for the answer; nothing is said any more once the line was closed."""
        with suppress(RuntimeError):
            self._pool.submit(say, what)

    def _own(self) -> HttpLine:
        line: HttpLine | None = getattr(self._others, "line", None)
        if line is None:
            line = self._others.line = HttpLine(self._wire.url, self._wire.token)
        return line
