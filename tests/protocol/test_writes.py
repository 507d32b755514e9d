"""What workers write while they work: how it is said, kept until it is answered, and said again."""

from __future__ import annotations

import json
from typing import Any

import pytest

from scheduler.protocol.client import ClientSession
from scheduler.protocol.fields import BadMessage, Fields
from scheduler.protocol.messages import encode, from_server, from_worker
from scheduler.protocol.writes import Abandon, Answer, Charge, Checkpoint, Claim, Commit, Write

HEAD = {"ref": 1, "lease_id": 2}


@pytest.mark.parametrize(
    ("said", "understood"),
    [
        ({"type": "checkpoint", "checkpoint": [1], "version": 3}, Checkpoint(1, 2, [1], 3)),
        ({"type": "checkpoint"}, Checkpoint(1, 2, None)),
        ({"type": "charge", "call": "a", "usage": {"n": 1}}, Charge(1, 2, "a", {"n": 1})),
        ({"type": "claim", "step": "a", "fingerprint": "b"}, Claim(1, 2, "a", "b")),
        ({"type": "commit", "step": "a", "receipt": 5}, Commit(1, 2, "a", 5)),
        ({"type": "abandon", "step": "a"}, Abandon(1, 2, "a")),
    ],
)
def test_what_a_worker_writes(said: dict[str, Any], understood: Write) -> None:
    assert from_worker(Fields({**said, **HEAD})) == understood
    with pytest.raises(BadMessage, match="ref"):
        from_worker(Fields({**said, "lease_id": 2}))


def test_what_a_write_is_answered() -> None:
    body = {"type": "answer", **HEAD, "version": 4}
    assert from_server(Fields(body)) == Answer(1, 2, body=body)
    assert from_server(Fields({**body, "code": "c", "detail": "d"})) == Answer(1, 2, "c", "d")


def _session(*leases: int) -> ClientSession:
    session = ClientSession(owner="me", slots={"p": 9})
    for lease in leases:
        session.receive(encode("lease", lease_id=lease, pool="p"))
    return session


def test_a_write_is_kept_until_it_is_answered_and_comes_before_the_report_when_said_again() -> None:
    session = _session(2)
    report = session.report("complete", 2, result=1)
    first, second = (session.write("charge", 2, call=call, usage={}) for call in "ab")
    assert report is not None
    assert first is not None
    assert second is not None
    assert list(session.unsettled) == [first[1], second[1], report]
    said = {"type": "answer", "ref": first[0], "lease_id": 2}
    assert session.receive(json.dumps(said)) == [Answer(first[0], 2, body=said)]
    assert list(session.unsettled) == [second[1], report]


@pytest.mark.parametrize(
    "end",
    [
        encode("settled", lease_id=2, state="succeeded"),
        encode("settled", lease_id=2, stale=True),
        encode("beat", kept=[3], cancel={}, lost=[2]),
    ],
)
def test_nothing_is_written_under_a_lease_that_has_ended(end: str) -> None:
    session = _session(2, 3)
    session.write("charge", 2, call="a", usage={})
    other = session.write("charge", 3, call="a", usage={})
    assert other is not None
    session.receive(end)
    assert session.unsettled == (other[1],)
    assert session.write("charge", 2, call="b", usage={}) is None
