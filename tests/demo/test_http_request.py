"""The simulator's reader of HTTP requests: any cutting gives the same requests, and what is ambiguous is refused."""

from __future__ import annotations

from http import HTTPStatus

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scheduler.demo.provider_sim.http_request import (
    BODY_BYTES_MAX,
    CHUNK_LINE_BYTES_MAX,
    HEAD_BYTES_MAX,
    BadRequest,
    Request,
    RequestReader,
)

PLAIN = b"POST /a?b=c HTTP/1.1\r\nHost: x\r\nX-One:  1 \r\nx-one: 2\r\nContent-Length: 5\r\n\r\nhello"
CHUNKED = (
    b"POST /c HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: Chunked\r\n\r\n"
    b"3\r\nabc\r\nA;note=1\r\n0123456789\r\n0\r\nX-Trailer: 1\r\n\r\n"
)
CHUNKED_BARE = b"POST /d HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nz\r\n0\r\n\r\n"
BARE = b"\r\nGET /e HTTP/1.0\r\n\r\n"


def read(raw: bytes, cuts: list[int]) -> list[Request]:
    reader, requests, at = RequestReader(), [], 0
    for cut in [*sorted(min(cut, len(raw)) for cut in cuts), len(raw)]:
        reader.feed(raw[at:cut])
        at = cut
        while (request := reader.take()) is not None:
            requests.append(request)
    return requests


@given(
    st.lists(st.sampled_from([PLAIN, CHUNKED, CHUNKED_BARE, BARE]), max_size=5),
    st.lists(st.integers(0, 500), max_size=12),
)
def test_pipelined_requests_survive_any_cutting(raws: list[bytes], cuts: list[int]) -> None:
    found = [(request.path, request.body) for request in read(b"".join(raws), cuts)]
    bodies = {PLAIN: ("/a", b"hello"), CHUNKED: ("/c", b"abc0123456789"), CHUNKED_BARE: ("/d", b"z"), BARE: ("/e", b"")}
    assert found == [bodies[raw] for raw in raws]


def test_a_request_is_read_whole() -> None:
    (request,) = read(PLAIN, [])
    assert (request.method, request.path, request.query) == ("POST", "/a", "b=c")
    assert request.headers == {"host": "x", "x-one": "1, 2", "content-length": "5"}
    assert request.keep_alive


@pytest.mark.parametrize(
    ("head", "keeps"),
    [
        (b"GET / HTTP/1.1\r\n\r\n", True),
        (b"GET / HTTP/1.1\r\nConnection: Close\r\n\r\n", False),
        (b"GET / HTTP/1.0\r\n\r\n", False),
    ],
)
def test_a_connection_is_kept_as_the_client_wishes(head: bytes, keeps: bool) -> None:
    (request,) = read(head, [])
    assert request.keep_alive is keeps


@pytest.mark.parametrize(
    ("raw", "status"),
    [
        (b"hello\r\n\r\n", HTTPStatus.BAD_REQUEST),
        (b"GET  / HTTP/1.1\r\n\r\n", HTTPStatus.BAD_REQUEST),
        (b"GET / HTTP/2.0\r\n\r\n", HTTPStatus.BAD_REQUEST),
        (b"GET / HTTP/1.1\r\nno colon\r\n\r\n", HTTPStatus.BAD_REQUEST),
        (b"GET / HTTP/1.1\r\nA: 1\r\n folded\r\n\r\n", HTTPStatus.BAD_REQUEST),
        (b"GET / HTTP/1.1\r\nA : 1\r\n\r\n", HTTPStatus.BAD_REQUEST),
        (b"GET / HTTP/1.1\r\nA: 1\n\r\n\r\n", HTTPStatus.BAD_REQUEST),
        (b"POST / HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n", HTTPStatus.BAD_REQUEST),
        (b"POST / HTTP/1.1\r\nContent-Length: -1\r\n\r\n", HTTPStatus.BAD_REQUEST),
        (b"POST / HTTP/1.1\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n", HTTPStatus.BAD_REQUEST),
        (b"POST / HTTP/1.1\r\nTransfer-Encoding: gzip\r\n\r\n", HTTPStatus.NOT_IMPLEMENTED),
        (b"POST / HTTP/1.1\r\nContent-Length: %d\r\n\r\n" % (BODY_BYTES_MAX + 1), HTTPStatus.REQUEST_ENTITY_TOO_LARGE),
        (b"GET /" + b"a" * HEAD_BYTES_MAX, HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE),
        (b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", HTTPStatus.BAD_REQUEST),
        (b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nabc", HTTPStatus.BAD_REQUEST),
        (
            b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n" + b"1" * CHUNK_LINE_BYTES_MAX,
            HTTPStatus.BAD_REQUEST,
        ),
        (b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nffffffff\r\n", HTTPStatus.REQUEST_ENTITY_TOO_LARGE),
        (
            b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n" + b"a" * (HEAD_BYTES_MAX + 3),
            HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE,
        ),
    ],
)
def test_what_is_ambiguous_or_too_large_is_refused(raw: bytes, status: HTTPStatus) -> None:
    with pytest.raises(BadRequest) as caught:
        read(raw, [])
    assert caught.value.status is status


def test_a_client_that_waits_for_the_go_ahead_is_told_once() -> None:
    reader = RequestReader()
    reader.feed(b"POST / HTTP/1.1\r\nExpect: 100-Continue\r\nContent-Length: 2\r\n\r\n")
    assert reader.take() is None
    assert reader.wants_go_ahead()
    assert not reader.wants_go_ahead()
    reader.feed(b"hi")
    request = reader.take()
    assert request is not None
    assert request.body == b"hi"
    assert not reader.wants_go_ahead()
