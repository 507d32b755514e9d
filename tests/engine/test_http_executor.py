"""The http executor over loopback, against a server that answers anything, and what it refuses to connect to."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import hmac
import json
import socket
from collections.abc import Callable
from ipaddress import ip_network
from typing import Any

import pytest

from scheduler import conf
from scheduler.engine.executors.base import AttemptFailed, ExecutionResult, Permanent, Retryable
from scheduler.engine.executors.http import HttpExecutor
from scheduler.engine.executors.http_config import HttpConfig, HttpConfigError
from scheduler.policy.types import FailureClass
from tests.conftest import LiveDatabase
from tests.demo.calls import Attempt
from tests.engine.running import engine, result_of, wait_for_state
from tests.support.canned import CannedServer, answer, canned_server
from tests.support.endpoint import endpoint
from tests.support.work import make_pool, make_tenant, submit_tasks

SECRET = "a key for tests, long enough"
LOOPBACK = (ip_network("127.0.0.1/32"),)


@pytest.fixture(autouse=True)
def _key_and_loopback(monkeypatch: pytest.MonkeyPatch, configure: Callable[..., conf.Config]) -> None:
    monkeypatch.setenv("HOOK_KEY", SECRET)
    configure(outgoing_networks=LOOPBACK)


def posted(
    reply: bytes, payload: object = None, *, attempt: Attempt | None = None, **config: Any
) -> tuple[ExecutionResult | AttemptFailed, CannedServer]:
    """One attempt against a server that gives this reply: how it ended, and what the server saw."""
    url = config.pop("url", None)

    async def inside() -> tuple[ExecutionResult | AttemptFailed, CannedServer]:
        async with canned_server(reply) as canned:
            address = canned.url if url is None else url(canned)
            executor = HttpExecutor(HttpConfig.parse({"url": address, "secret_env": "HOOK_KEY", **config}))
            try:
                return await executor.run(attempt or Attempt(timeout_s=5.0), payload), canned
            except AttemptFailed as failure:
                return failure, canned
            finally:
                await executor.aclose()

    return asyncio.run(inside())


def header(head: str, name: str) -> str:
    return next(line[len(name) + 2 :] for line in head.split("\r\n") if line.lower().startswith(f"{name}: "))


def test_the_attempt_is_posted_signed_and_the_answer_is_its_result() -> None:
    attempt = Attempt(
        timeout_s=5.0,
        task_id=7,
        lease_id=9,
        attempt=2,
        key="k",
        upstream={"a": {"state": "succeeded", "result": 1}},
        trace="00-4bf9",
    )
    result, server = posted(answer({"sum": 3}), {"x": [1, 2]}, attempt=attempt)
    assert isinstance(result, ExecutionResult), result
    assert result.value == {"sum": 3}
    (body,), (head,) = server.bodies, server.heads
    assert body["payload"] == {"x": [1, 2]}
    assert (body["task"], body["lease"], body["attempt"], body["key"]) == (7, 9, 2, "k")
    assert body["upstream"] == {"a": {"state": "succeeded", "result": 1}}
    assert (header(head, "cronoq-attempt"), header(head, "cronoq-lease")) == ("2", "9")
    assert header(head, "traceparent") == "00-4bf9"
    assert header(head, "idempotency-key") == header(head, "webhook-id") == "cronoq-task-7"
    signed = f"cronoq-task-7.{header(head, 'webhook-timestamp')}.".encode() + server.raw[0]
    digest = base64.b64encode(hmac.new(SECRET.encode(), signed, hashlib.sha256).digest()).decode()
    assert header(head, "webhook-signature") == f"v1,{digest}"


def test_a_pool_of_an_engine_posts_its_tasks(live_database: LiveDatabase) -> None:
    with endpoint() as receiver:
        receiver.answer = lambda posted: (200, {}, json.dumps({"twice": posted.body["payload"]["n"] * 2}).encode())
        make_pool(executor="http", config={"url": receiver.url, "secret_env": "HOOK_KEY"})
        with engine():
            (task,) = submit_tasks(make_tenant(), payload='{"n": 21}')
            wait_for_state(task, "succeeded")
    assert result_of(task) == {"twice": 42}
    assert [posted.body["task"] for posted in receiver.posts] == [task]


def test_an_empty_answer_is_null() -> None:
    result, _ = posted(answer(b"", status=204))
    assert result == ExecutionResult(None)


@pytest.mark.parametrize(
    ("status", "failure_class"),
    [
        (429, FailureClass.THROTTLED),
        (503, FailureClass.OVERLOADED),
        (504, FailureClass.TIMEOUT),
        (408, FailureClass.TIMEOUT),
        (425, FailureClass.ERROR),
        (500, FailureClass.ERROR),
        (502, FailureClass.ERROR),
    ],
)
def test_what_may_pass_is_tried_again_when_the_endpoint_says(status: int, failure_class: FailureClass) -> None:
    failure, _ = posted(answer({"detail": "not now"}, status=status, headers="retry-after: 7\r\n"))
    assert isinstance(failure, Retryable)
    assert (failure.failure_class, failure.retry_after) == (failure_class, 7.0)
    assert failure.message == f"HTTP {status}: not now"


@pytest.mark.parametrize("status", [400, 401, 404, 409, 410, 422])
def test_other_refusals_are_final(status: int) -> None:
    failure, _ = posted(answer("no such thing", status=status))
    assert isinstance(failure, Permanent)
    assert failure.message == f"HTTP {status}: no such thing"


def test_a_redirect_is_not_followed() -> None:
    failure, server = posted(answer(b"", status=307, headers="location: http://127.0.0.1:1/\r\n"))
    assert isinstance(failure, Permanent)
    assert "redirects are not followed" in failure.message
    assert len(server.heads) == 1


def test_a_success_that_is_not_json_is_not_repeated() -> None:
    failure, _ = posted(answer("<html>"))
    assert isinstance(failure, Permanent)
    assert "not JSON" in failure.message


def test_more_than_the_bound_is_not_read() -> None:
    failure, _ = posted(answer("x" * 5000), response_bytes_max=1000)
    assert isinstance(failure, Permanent)
    assert "larger than 1000 bytes" in failure.message


def test_an_answer_that_does_not_end_is_a_timeout() -> None:
    # Promises more than it sends.
    reply = b"HTTP/1.1 200 OK\r\ncontent-length: 99\r\n\r\n{"
    failure, _ = posted(reply, attempt=Attempt(timeout_s=0.2))
    assert isinstance(failure, Retryable)
    assert failure.failure_class is FailureClass.TIMEOUT


def test_a_connection_that_breaks_may_be_tried_again() -> None:
    failure, _ = posted(b"nonsense\r\n\r\n")
    assert isinstance(failure, Retryable)
    assert failure.failure_class is FailureClass.ERROR


def test_nobody_there_is_an_overload() -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        port = unused.getsockname()[1]
        failure, _ = posted(b"", url=lambda _: f"http://127.0.0.1:{port}/")
    assert isinstance(failure, Retryable)
    assert failure.failure_class is FailureClass.OVERLOADED


# Where it may go


def resolving(monkeypatch: pytest.MonkeyPatch, *answers: list[str]) -> list[str]:
    """Let names resolve to these addresses, one answer after the other; the list fills with the names asked for."""
    asked: list[str] = []
    real = socket.getaddrinfo

    def look_up(host: Any, port: Any, *rest: Any, **more: Any) -> Any:
        if not str(host).endswith(".example"):
            return real(host, port, *rest, **more)
        addresses = answers[min(len(asked), len(answers) - 1)]
        asked.append(str(host))
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (each, port)) for each in addresses]

    monkeypatch.setattr(socket, "getaddrinfo", look_up)
    return asked


def named(canned: CannedServer) -> str:
    return canned.url.replace("127.0.0.1", "hook.example")


def test_a_name_that_leads_inside_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    resolving(monkeypatch, ["169.254.169.254", "10.0.0.1"])
    failure, server = posted(answer({}), url=named)
    assert isinstance(failure, Permanent)
    assert "169.254.169.254, which is not a public address" in failure.message
    assert server.connections == 0


def test_the_address_that_was_checked_is_the_one_connected_to(monkeypatch: pytest.MonkeyPatch) -> None:
    # The second answer would lead elsewhere: nobody asks again.
    asked = resolving(monkeypatch, ["127.0.0.1"], ["10.0.0.1"])
    result, server = posted(answer({}), url=named)
    assert isinstance(result, ExecutionResult), result
    assert asked == ["hook.example"]
    assert header(server.heads[0], "host").startswith("hook.example:")


def test_addresses_that_are_closed_or_dead_are_passed_over(
    monkeypatch: pytest.MonkeyPatch, configure: Callable[..., conf.Config]
) -> None:
    configure(outgoing_networks=(ip_network("127.0.0.0/8"),))
    resolving(monkeypatch, ["10.0.0.1", "127.0.0.9", "127.0.0.1"])
    result, server = posted(answer({}), url=named)
    assert isinstance(result, ExecutionResult), result
    assert server.connections == 1


def test_loopback_is_closed_unless_it_is_allowed(configure: Callable[..., conf.Config]) -> None:
    configure(outgoing_networks=())
    with pytest.raises(HttpConfigError, match="CRONOQ_OUTGOING_NETWORKS"):
        HttpConfig.parse({"url": "http://127.0.0.1:9/", "secret_env": "HOOK_KEY"})


@pytest.mark.parametrize(
    ("config", "said"),
    [
        ({}, "secret_env"),
        ({"secret_env": "HOOK_KEY"}, "'url' is missing"),
        ({"url": "https://x.example", "secret_env": "HOOK_KEY", "secret_file": "k"}, "secret_env"),
        ({"url": "https://x.example", "secret_env": SECRET}, "never the key itself"),
        ({"url": "https://x.example", "secret_env": "HOOK_KEY", "timeout_s": 0}, "'timeout_s'"),
        ({"url": "https://x.example", "secret_env": "HOOK_KEY", "retries": 3}, "Unknown key 'retries'"),
        ({"url": "", "secret_env": "HOOK_KEY"}, "not empty"),
    ],
)
def test_a_configuration_that_cannot_work_says_why(config: dict[str, object], said: str) -> None:
    with pytest.raises(HttpConfigError, match=said):
        HttpConfig.parse(config)


def test_a_pool_without_its_key_is_not_served(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOOK_KEY", "short")
    with pytest.raises(HttpConfigError, match="at least 16 characters in the environment variable HOOK_KEY"):
        HttpExecutor(HttpConfig.parse({"url": "https://x.example", "secret_env": "HOOK_KEY"}))
    with pytest.raises(HttpConfigError, match="cannot be read"):
        HttpExecutor(HttpConfig.parse({"url": "https://x.example", "secret_file": "not/there"}))
