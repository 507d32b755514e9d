"""What either side may say when, and what each remembers."""

from __future__ import annotations

import json
from typing import Any

import pytest

from scheduler.protocol.client import ClientSession, pong
from scheduler.protocol.fields import BadMessage
from scheduler.protocol.limits import (
    FRAME_BYTES_MAX,
    HELLO_WITHIN_S,
    PING_EVERY_S,
    PONG_WITHIN_S,
    UNREAD_BYTES_MAX,
    Close,
)
from scheduler.protocol.messages import Complete, Hello, Lease, Ping, Release
from scheduler.protocol.server import FAULTS_MAX, CloseSocket, ServerSession, error_text, ready_text, settled_text


def client() -> ClientSession:
    return ClientSession(owner="me", slots={"a": 2}, token="t")


def greeted(now: float = 0.0) -> ServerSession:
    """By a worker that takes one message in a frame."""
    session = ServerSession(now=now)
    assert isinstance(hear(session, client().hello().replace('"batches":true', '"batches":false')), Hello)
    return session


def hear(session: ServerSession | ClientSession, text: str) -> object:
    """The one message of a frame; None for what is ignored."""
    heard = list(session.receive(text))
    if heard and isinstance(heard[0], BadMessage):
        raise heard[0]
    return heard[0] if heard else None


def lease(number: int, **fields: Any) -> str:
    return json.dumps({"type": "lease", "lease_id": number, "ttl_s": 30, "pool": "a"} | fields)


def closes(code: Close) -> Any:
    return pytest.raises(CloseSocket, check=lambda end: end.code == code)


class TestServer:
    def test_nothing_comes_before_hello(self) -> None:
        with closes(Close.BAD_MESSAGE):
            hear(ServerSession(now=0.0), '{"type": "heartbeat", "leases": []}')
        with closes(Close.BAD_MESSAGE):
            hear(ServerSession(now=0.0), "{}")

    def test_hello_comes_once_and_soon(self) -> None:
        session = ServerSession(now=0.0)
        assert session.tick(now=HELLO_WITHIN_S) is None
        with closes(Close.NOT_READING):
            session.tick(now=HELLO_WITHIN_S + 0.1)
        session = greeted()
        with pytest.raises(BadMessage, match="hello already"):
            hear(session, client().hello())

    def test_another_version_is_refused_and_told_which_are_spoken(self) -> None:
        hello = client().hello().replace('"protocol":1', '"protocol":2')
        with pytest.raises(CloseSocket, match="these are: 1") as end:
            hear(ServerSession(now=0.0), hello)
        assert end.value.code == Close.UNSUPPORTED

    def test_a_fault_is_told_and_too_many_end_it(self) -> None:
        session = greeted()
        for _ in range(FAULTS_MAX):
            with pytest.raises(BadMessage):
                hear(session, '{"type": "complete"}')
        with closes(Close.BAD_MESSAGE):
            hear(session, '{"type": "complete"}')

    def test_a_message_that_is_too_large_ends_it(self) -> None:
        with closes(Close.TOO_BIG):
            hear(greeted(), "x" * (FRAME_BYTES_MAX + 1))

    def test_reports_are_handed_on_and_unknown_types_ignored(self) -> None:
        session = greeted()
        assert hear(session, '{"type": "complete", "lease_id": 5}') == Complete(5)
        assert hear(session, '{"type": "sing"}') is None

    def test_who_does_not_answer_a_ping_is_not_reading(self) -> None:
        session = greeted()
        assert session.tick(now=PING_EVERY_S - 0.1) is None
        assert session.tick(now=PING_EVERY_S) == '{"type":"ping","n":1}'
        assert session.tick(now=PING_EVERY_S + PONG_WITHIN_S) is None
        hear(session, '{"type": "pong", "n": 1}')
        assert session.tick(now=2 * PING_EVERY_S + PONG_WITHIN_S) == '{"type":"ping","n":2}'
        hear(session, '{"type": "pong", "n": 1}')
        with closes(Close.NOT_READING):
            session.tick(now=2 * PING_EVERY_S + 2 * PONG_WITHIN_S + 0.1)

    def test_nothing_more_is_sent_while_too_much_is_unread(self) -> None:
        session = greeted()
        assert list(session.sent(["x" * UNREAD_BYTES_MAX])) != []
        assert session.is_full
        assert session.tick(now=0.1) == '{"type":"ping","n":1}'
        assert list(session.sent(["more", "still more"])) == ["more", "still more"]
        hear(session, '{"type": "pong", "n": 1}')
        assert not session.is_full

    def test_several_messages_come_in_one_frame_and_a_wrong_one_keeps_no_other_back(self) -> None:
        frame = '[{"type":"complete","lease_id":5},{"type":"sing"},{"type":"complete"},{"type":"release","lease_id":6}]'
        first, fault, last = greeted().receive(frame)
        assert (first, last) == (Complete(5), Release(6))
        assert isinstance(fault, BadMessage)
        with pytest.raises(BadMessage, match="not JSON"):
            hear(greeted(), "[")

    def test_several_messages_are_sent_in_one_frame_to_whoever_asked_for_it(self) -> None:
        session = ServerSession(now=0.0)
        hear(session, client().hello())
        assert list(session.sent([settled_text(1, "succeeded"), settled_text(2, "succeeded")])) == [
            f"[{settled_text(1, 'succeeded')},{settled_text(2, 'succeeded')}]"
        ]


class TestClient:
    def test_it_introduces_itself_and_says_what_it_holds_when_it_comes_back(self) -> None:
        session = client()
        assert json.loads(session.hello()) == {
            "type": "hello", "protocol": 1, "token": "t", "owner": "me", "pools": ["a"], "slots": {"a": 2},
            "labels": {}, "held": [], "batches": True,
        }  # fmt: skip
        hear(session, ready_text("w", {"a": 2}))
        hear(session, lease(3))
        again = json.loads(session.hello())
        assert (again["worker"], again["held"]) == ("w", [3])

    def test_a_lease_comes_once_and_is_held_until_it_is_acknowledged(self) -> None:
        session = client()
        assert session.heartbeat() is None
        assert session.ttl_s() is None
        assert isinstance(hear(session, lease(3)), Lease)
        assert hear(session, lease(3)) is None
        assert (session.held, session.is_held(3), session.free("a"), session.free("b")) == ((3,), True, 1, 0)
        assert (session.ttl_s(), session.heartbeat()) == (30.0, '{"type":"heartbeat","leases":[3]}')
        said = session.report("complete", 3, result=1)
        assert said == '{"type":"complete","lease_id":3,"result":1}'
        assert (session.unsettled, session.held) == ((said,), (3,))
        hear(session, settled_text(3, "succeeded"))
        assert (session.unsettled, session.held, session.report("fail", 3)) == ((), (), None)

    def test_what_is_stale_lost_or_refused_is_no_longer_sent(self) -> None:
        session = client()
        for number in (1, 2, 3):
            hear(session, lease(number))
            session.report("complete", number)
        hear(session, settled_text(1, None, detail="late"))
        hear(session, '{"type": "beat", "kept": [3], "cancel": {}, "lost": [2]}')
        hear(session, '{"type": "refused", "lease_id": 3, "code": "result_too_large"}')
        assert (session.held, session.unsettled) == ((3,), ())

    def test_it_hears_of_stops_drains_and_pings(self) -> None:
        session = client()
        assert hear(session, '{"type": "cancel", "lease_id": 3}') is None
        hear(session, lease(3))
        assert hear(session, '{"type": "cancel", "lease_id": 3}') is not None
        assert hear(session, '{"type": "drain"}') is not None
        assert session.draining
        said = hear(session, '{"type": "ping", "n": 4}')
        assert isinstance(said, Ping)
        assert pong(said) == '{"type":"pong","n":4}'
        assert hear(session, error_text("c", "d")) is not None
        assert hear(session, '{"type": "new"}') is None
        lost, new = session.receive(f'[{{"type": "beat", "kept": 1}}, {lease(3)}, {lease(4)}]')
        assert isinstance(lost, BadMessage)
        assert isinstance(new, Lease)
        with pytest.raises(BadMessage):
            hear(session, "nonsense")
