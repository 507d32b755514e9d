"""What messages look like, and what is said of wrong ones."""

from __future__ import annotations

import json
from typing import Any

import pytest

from scheduler.protocol import messages
from scheduler.protocol.fields import BadMessage, Fields
from scheduler.protocol.limits import BATCH_CHARS, MESSAGES_MAX, POOLS_MAX
from scheduler.protocol.messages import (
    Beat,
    Cancel,
    Complete,
    Drain,
    Error,
    Fail,
    Heartbeat,
    Hello,
    Lease,
    Ping,
    Pong,
    Ready,
    Refused,
    Release,
    Settled,
    beat_text,
    decode,
    encode,
    frames,
    from_server,
    from_worker,
    lease_text,
    report,
)


def only(text: str) -> Fields:
    """The fields of the one message in a frame."""
    (said,) = decode(text)
    return said


HELLO = {"type": "hello", "protocol": 1, "owner": "me", "pools": ["a", "b"], "slots": 3}


@pytest.mark.parametrize(
    ("said", "understood"),
    [
        (HELLO, Hello(1, "me", {"a": 3, "b": 3})),
        (
            HELLO
            | {
                "slots": {"a": 1, "b": 2},
                "labels": {"x": "y"},
                "token": "t",
                "worker": "w",
                "held": [4],
                "new": 1,
            },
            Hello(1, "me", {"a": 1, "b": 2}, {"x": "y"}, "t", "w", (4,)),
        ),
        ({"type": "heartbeat", "leases": [1, 2]}, Heartbeat((1, 2))),
        ({"type": "heartbeat"}, Heartbeat(())),
        ({"type": "complete", "lease_id": 1}, Complete(1)),
        (
            {"type": "complete", "lease_id": 1, "result": [1], "usage": {"model": "m"}, "actual": {"r": 2}},
            Complete(1, [1], {"model": "m"}, {"r": 2.0}),
        ),
        ({"type": "fail", "lease_id": 1, "class": "error"}, Fail(1, "error", "")),
        (
            {"type": "fail", "lease_id": 1, "class": "throttled", "message": "m", "retry_after": 2},
            Fail(1, "throttled", "m", 2.0),
        ),
        ({"type": "release", "lease_id": 1, "retry_after": 0.5}, Release(1, 0.5)),
        ({"type": "drain"}, Drain()),
        ({"type": "pong", "n": 3}, Pong(3)),
        ({"type": "dance"}, None),
    ],
)
def test_workers_are_understood(said: dict[str, Any], understood: object) -> None:
    assert from_worker(only(json.dumps(said))) == understood


@pytest.mark.parametrize(
    ("said", "understood"),
    [
        ({"type": "ready", "worker": "w", "granted_slots": {"a": 2}}, Ready("w", {"a": 2})),
        ({"type": "settled", "lease_id": 1, "state": "succeeded"}, Settled(1, "succeeded")),
        ({"type": "settled", "lease_id": 1, "stale": True, "detail": "d"}, Settled(1, None, stale=True, detail="d")),
        ({"type": "refused", "lease_id": 1, "code": "c", "detail": "d"}, Refused(1, "c", "d")),
        ({"type": "cancel", "lease_id": 1}, Cancel(1, "cancelled")),
        ({"type": "drain"}, Drain()),
        ({"type": "ping", "n": 1}, Ping(1)),
        ({"type": "error", "code": "c"}, Error("c", "")),
        ({"type": "sing"}, None),
    ],
)
def test_servers_are_understood(said: dict[str, Any], understood: object) -> None:
    assert from_server(only(json.dumps(said))) == understood


def test_what_the_server_words_is_what_a_worker_reads() -> None:
    assert from_server(only(beat_text([1, 2], {2: "timeout"}, [3]))) == Beat((1, 2), {2: "timeout"}, (3,))
    head = {"lease_id": 7, "ttl_s": 30.0, "pool": "a", "key": None}
    said = from_server(only(lease_text(head, payload='{"n": 1}', upstream='{"up": 2}', tags='{"t": "x"}')))
    assert isinstance(said, Lease)
    assert (said.lease, said.ttl_s) == (7, 30.0)
    assert (said.body["payload"], said.body["upstream"], said.body["tags"]) == ({"n": 1}, {"up": 2}, {"t": "x"})
    assert "key" not in said.body
    bare = from_server(only(lease_text({"lease_id": 7}, payload="null")))
    assert isinstance(bare, Lease)
    assert (bare.ttl_s, "upstream" in bare.body) == (0.0, False)


@pytest.mark.parametrize(
    ("said", "field"),
    [
        ({"type": 5}, "type"),
        ({"type": "x" * 65}, "type"),
        (HELLO | {"protocol": "1"}, "protocol"),
        (HELLO | {"protocol": True}, "protocol"),
        (HELLO | {"owner": None}, "owner"),
        (HELLO | {"owner": "x" * 201}, "owner"),
        (HELLO | {"pools": []}, "pools"),
        (HELLO | {"pools": ["p"] * (POOLS_MAX + 1)}, "pools"),
        (HELLO | {"pools": [1]}, "pools"),
        (HELLO | {"pools": "a"}, "pools"),
        (HELLO | {"slots": 0}, "slots"),
        (HELLO | {"slots": True}, "slots"),
        (HELLO | {"slots": {"a": 1}}, "slots"),
        (HELLO | {"slots": 1_001}, "slots"),
        (HELLO | {"labels": {"x": 1}}, "labels.x"),
        (HELLO | {"labels": []}, None),
        (HELLO | {"labels": [1]}, "labels"),
        (HELLO | {"held": [-1]}, "held"),
        (HELLO | {"held": [1] * 10_001}, "held"),
        ({"type": "complete"}, "lease_id"),
        ({"type": "complete", "lease_id": 2**63}, "lease_id"),
        ({"type": "complete", "lease_id": 1, "usage": []}, "usage"),
        ({"type": "complete", "lease_id": 1, "usage": [1]}, "usage"),
        ({"type": "complete", "lease_id": 1, "actual": {"r": -1}}, "actual.r"),
        ({"type": "complete", "lease_id": 1, "actual": {"r": True}}, "actual.r"),
        ({"type": "fail", "lease_id": 1, "class": "sad"}, "class"),
        ({"type": "fail", "lease_id": 1}, "class"),
        ({"type": "release", "lease_id": 1, "retry_after": "soon"}, "retry_after"),
        ({"type": "release", "lease_id": 1, "retry_after": float("nan")}, "retry_after"),
        ({"type": "release", "lease_id": 1, "retry_after": 10**400}, "retry_after"),
    ],
)
def test_a_wrong_field_is_named(said: dict[str, Any], field: str | None) -> None:
    if field is None:
        field = "labels"
    with pytest.raises(BadMessage) as fault:
        from_worker(only(json.dumps(said)))
    assert (fault.value.code, fault.value.field) == ("bad_field", field)
    assert field.split(".")[0] in fault.value.detail


@pytest.mark.parametrize(
    ("said", "field"),
    [
        ({"type": "settled", "lease_id": 1, "stale": "yes"}, "stale"),
        ({"type": "beat", "cancel": {"a": "b"}}, "cancel"),
        ({"type": "ready"}, "worker"),
    ],
)
def test_a_wrong_server_is_told_apart_too(said: dict[str, Any], field: str) -> None:
    with pytest.raises(BadMessage) as fault:
        from_server(only(json.dumps(said)))
    assert fault.value.field == field


@pytest.mark.parametrize(
    ("text", "code"),
    [("", "not_json"), ("{", "not_json"), ("[" * 100_000, "not_json"), ("[]", "not_an_object"), ("{}", "bad_field")],
    ids=["nothing", "half", "deep", "a list", "no type"],
)
def test_what_is_no_message_is_said_so(text: str, code: str) -> None:
    with pytest.raises(BadMessage) as fault:
        from_worker(only(text))
    assert fault.value.code == code


def test_nothing_that_is_not_json_is_sent() -> None:
    assert encode("ping", n=None) == '{"type":"ping"}'
    with pytest.raises(ValueError, match="not JSON compliant"):
        encode("ping", n=float("nan"))
    assert set(messages.CLASSES) >= {"error", "permanent", "cancelled"}


def test_reports_are_read_without_a_frame_of_their_own_and_nothing_else_is() -> None:
    assert report({"type": "complete", "lease_id": 7, "result": 1}) == Complete(7, 1)
    assert report({"type": "release", "lease_id": 7}) == Release(7)
    with pytest.raises(BadMessage, match="type must be one of complete, fail, release"):
        report({"type": "hello", "lease_id": 7})


def test_a_frame_holds_one_message_or_a_list_of_them() -> None:
    several = [encode("pong", n=n) for n in range(3)]
    assert list(frames([])) == []
    assert list(frames(several[:1])) == several[:1]
    (frame,) = frames(several)
    assert [from_worker(each) for each in decode(frame)] == [Pong(0), Pong(1), Pong(2)]


def test_a_frame_is_bounded_in_messages_and_in_size() -> None:
    many = [encode("pong", n=n) for n in range(MESSAGES_MAX + 1)]
    assert [len(decode(frame)) for frame in frames(many)] == [MESSAGES_MAX, 1]
    with pytest.raises(BadMessage) as fault:
        decode(f"[{','.join(many)}]")
    assert fault.value.code == "too_many"
    large = [encode("error", code="c", detail="x" * BATCH_CHARS)] * 2
    assert list(frames(large)) == large
