"""The short way for polls: what may take it, and that it is answered as the long way would."""

from __future__ import annotations

from typing import Any

import pytest

from scheduler.api.polling import PATH, plain_poll
from scheduler.services.tokens import authenticate, create_token
from tests.support.work import make_tenant

pytestmark = pytest.mark.usefixtures("live_database")


@pytest.fixture
def token() -> str:
    """One that may work, and is known to this process."""
    make_tenant()
    text = create_token(scopes=["work"], tenant="acme", actor="test").text
    assert authenticate(text) is not None
    assert authenticate(text) is not None
    return text


def request(token: str, **changes: Any) -> dict[str, Any]:
    """A request as the server hands it over."""
    headers = [(b"host", b"127.0.0.1"), (b"authorization", b"Bearer " + token.encode())]
    path = "/api/v1/workers/6f0c/lease"
    return {"method": "POST", "path": path, "query_string": b"max=8&wait_s=2.5", "headers": headers} | changes


def test_a_poll_that_is_as_it_should_be_takes_the_short_way(token: str) -> None:
    poll = plain_poll(request(token), b'{"held": [3], "reports": [{"type": "release", "lease_id": 3}]}')
    assert poll is not None
    assert (poll.caller.tenant_slug, poll.worker) == ("acme", "6f0c")
    assert (poll.wanted.max, poll.wanted.wait_s, poll.said.held) == (8, 2.5, [3])
    assert plain_poll(request(token, query_string=b""), b"{}") is not None


@pytest.mark.parametrize(
    ("changes", "body"),
    [
        ({"method": "GET"}, b"{}"),
        ({"path": "/api/v1/workers/6f0c/heartbeat"}, b"{}"),
        ({"path": "/api/v1/workers/a/b/lease"}, b"{}"),
        ({"query_string": b"max=0"}, b"{}"),
        ({"query_string": b"max=8&much=1"}, b"{}"),
        ({"headers": []}, b"{}"),
        ({"headers": [(b"authorization", b"Bearer cq_unknown_0123456789abcdef")]}, b"{}"),
        ({"headers": [(b"authorization", b"Basic YTpi")]}, b"{}"),
        ({}, b""),
        ({}, b"[]"),
        ({}, b"{"),
        ({}, b'{"unknown": 1}'),
        ({}, b'{"held": ["a"]}'),
    ],
)
def test_anything_else_is_left_to_the_view(token: str, changes: dict[str, Any], body: bytes) -> None:
    assert plain_poll(request(token, **changes), body) is None


def test_a_token_without_the_scope_is_left_to_the_view(token: str) -> None:
    other = create_token(scopes=["read"], tenant="acme", actor="test").text
    assert authenticate(other) is not None
    assert authenticate(other) is not None
    assert plain_poll(request(other), b"{}") is None
    assert PATH.fullmatch(request(token)["path"]) is not None
