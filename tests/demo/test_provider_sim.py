"""The provider simulator as its clients see it: a real process, over real HTTP."""

from __future__ import annotations

import base64
import json
import signal
import socket
import struct
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx2 as httpx
import pytest

from scheduler.providers.delays import retry_after_s
from scheduler.providers.ratelimits import read_rate_limits
from tests.support.provider import ROOT, RunningProvider, running_provider

CHAT: dict[str, object] = {"model": "sim-small", "messages": [{"role": "user", "content": "Say hello."}]}


@pytest.fixture(scope="module")
def shared_client(shared_provider: RunningProvider) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=shared_provider.url, trust_env=False, timeout=10.0) as client:
        yield client


@pytest.fixture
def client(shared_client: httpx.Client, provider: RunningProvider) -> httpx.Client:
    assert shared_client.base_url == provider.url
    return shared_client


def chat(client: httpx.Client, **more: object) -> httpx.Response:
    return client.post("/v1/chat/completions", json={**CHAT, **more})


def chunks_of(answer: httpx.Response) -> list[dict[str, Any]]:
    events = [event.removeprefix("data: ") for event in answer.text.split("\n\n") if event]
    assert events.pop() == "[DONE]"
    return [json.loads(event) for event in events]


def wait_until(condition: Callable[[], bool]) -> None:
    """Ask until it holds; the test's own timeout is the bound."""
    while not condition():
        pass


# The API


def test_a_chat_completion_in_the_shape_of_the_api(client: httpx.Client, provider: RunningProvider) -> None:
    answer = chat(client)
    body = answer.json()
    assert answer.status_code == 200
    assert body["object"] == "chat.completion"
    assert body["choices"][0]["message"]["role"] == "assistant"
    usage = body["usage"]
    assert usage["total_tokens"] == usage["prompt_tokens"] + usage["completion_tokens"]
    assert answer.headers["x-request-id"].startswith("req_")
    assert int(answer.headers["openai-processing-ms"]) >= 0
    stats = provider.stats()
    assert (stats["requests"], stats["by_status"]) == (1, {"200": 1})
    assert (stats["tokens_in"], stats["tokens_out"]) == (usage["prompt_tokens"], usage["completion_tokens"])
    assert [row[1:] for row in stats["arrivals"]] == [[200, "sim-small", None]]


def test_the_same_question_gets_the_same_answer_whole_or_streamed(client: httpx.Client) -> None:
    first, second = chat(client).json(), chat(client).json()
    assert first["choices"] == second["choices"]
    chunks = chunks_of(chat(client, stream=True))
    deltas = [chunk["choices"][0]["delta"].get("content", "") for chunk in chunks]
    assert "".join(deltas) == first["choices"][0]["message"]["content"]
    assert chunks[-1]["choices"][0]["finish_reason"] == "stop"
    assert all(chunk["usage"] is None for chunk in chunks)
    assert len({chunk["id"] for chunk in chunks}) == 1


def test_usage_ends_a_stream_when_asked_for(client: httpx.Client) -> None:
    whole = chat(client).json()
    *_, last = chunks_of(chat(client, stream=True, stream_options={"include_usage": True}))
    assert last["choices"] == []
    assert last["usage"] == whole["usage"]


def test_a_cap_on_the_output_is_kept(client: httpx.Client) -> None:
    for name in ("max_tokens", "max_completion_tokens"):
        body = chat(client, **{name: 5}).json()
        assert body["usage"]["completion_tokens"] == 5
        assert body["choices"][0]["finish_reason"] == "length"


def test_embeddings_as_numbers_or_packed(client: httpx.Client) -> None:
    request = {"model": "sim-embed", "input": ["one", "two"], "dimensions": 16}
    plain = client.post("/v1/embeddings", json=request).json()
    packed = client.post("/v1/embeddings", json={**request, "encoding_format": "base64"}).json()
    assert [each["index"] for each in plain["data"]] == [0, 1]
    assert plain["usage"] == {"prompt_tokens": 2, "total_tokens": 2}
    for numbers, text in zip(plain["data"], packed["data"], strict=True):
        unpacked = struct.unpack("<16f", base64.b64decode(text["embedding"]))
        assert unpacked == pytest.approx(numbers["embedding"], abs=1e-6)


@pytest.mark.parametrize("given", ["one", [1, 2, 3], [[1, 2], [3]]])
def test_embeddings_take_every_form_of_input(client: httpx.Client, given: object) -> None:
    assert client.post("/v1/embeddings", json={"model": "sim-embed", "input": given}).status_code == 200


def test_models_are_listed(client: httpx.Client) -> None:
    models = client.get("/v1/models").json()["data"]
    assert [model["id"] for model in models] == ["sim-small", "sim-large", "sim-embed"]
    assert client.get("/healthz").json() == {"status": "ok"}


@pytest.mark.parametrize(
    ("path", "body", "status"),
    [
        ("chat/completions", b"{", 400),
        ("chat/completions", b"[" * 100_000, 400),
        ("chat/completions", b"[]", 400),
        ("chat/completions", {"model": "sim-small"}, 400),
        ("chat/completions", {"model": "sim-small", "messages": []}, 400),
        ("chat/completions", {"model": "sim-small", "messages": ["hello"]}, 400),
        ("chat/completions", {**CHAT, "max_tokens": 0}, 400),
        ("chat/completions", {**CHAT, "max_tokens": "5"}, 400),
        ("chat/completions", {**CHAT, "n": 2}, 400),
        ("chat/completions", {"messages": [{"role": "user", "content": "x"}]}, 400),
        ("chat/completions", {**CHAT, "model": "gpt-99"}, 404),
        ("chat/completions", {**CHAT, "model": "sim-embed"}, 404),
        ("embeddings", {"model": "sim-small", "input": "x"}, 404),
        ("embeddings", {"model": "sim-embed"}, 400),
        ("embeddings", {"model": "sim-embed", "input": ""}, 400),
        ("embeddings", {"model": "sim-embed", "input": []}, 400),
        ("embeddings", {"model": "sim-embed", "input": [1.5]}, 400),
        ("embeddings", {"model": "sim-embed", "input": "x", "dimensions": 9999}, 400),
    ],
)
def test_what_the_api_would_refuse_is_refused(client: httpx.Client, path: str, body: object, status: int) -> None:
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    answer = client.post(f"/v1/{path}", content=content)
    assert answer.status_code == status
    assert answer.json()["error"]["type"] == "invalid_request_error"


def test_paths_and_methods_that_do_not_exist(client: httpx.Client, provider: RunningProvider) -> None:
    assert client.get("/v1/nothing").status_code == 404
    assert client.get("/v1/chat/completions").status_code == 405
    assert client.head("/healthz").status_code == 405
    assert client.post("/faults", content=b"nonsense").status_code == 400
    assert client.post("/limits", json={"rate": -1}).status_code == 400
    assert provider.stats()["requests"] == 0


# Limits


def test_over_the_rate_is_429_with_the_api_s_headers_and_body(client: httpx.Client, provider: RunningProvider) -> None:
    provider.set_limits(rate=0.1, burst=3)
    answers = [chat(client) for _ in range(4)]
    assert [answer.status_code for answer in answers] == [200, 200, 200, 429]
    assert [answer.headers["x-ratelimit-remaining-requests"] for answer in answers] == ["2", "1", "0", "0"]
    refused = answers[-1]
    assert refused.json()["error"]["code"] == "rate_limit_exceeded"
    limits = read_rate_limits(refused.headers, now=time.time()).requests
    assert limits.limit == 3
    assert limits.reset_s == pytest.approx(30.0, abs=1.0)
    told_s = retry_after_s(refused.headers, refused.json(), now=time.time())
    assert told_s is not None
    assert 9.5 <= told_s <= 10.0
    assert int(refused.headers["retry-after"]) >= told_s
    assert "Please try again in 9." in refused.json()["error"]["message"]
    assert provider.stats()["refused_429"] == {"requests": 1}


def test_tokens_are_charged_by_the_cap_that_was_asked_for(client: httpx.Client, provider: RunningProvider) -> None:
    provider.set_limits(tokens_per_minute=100)
    assert chat(client, max_tokens=60).status_code == 200
    refused, too_large = chat(client, max_tokens=60), chat(client, max_tokens=101)
    assert (refused.status_code, too_large.status_code) == (429, 429)
    assert refused.json()["error"]["type"] == "tokens"
    assert "Request too large" in too_large.json()["error"]["message"]
    assert "retry-after" not in too_large.headers
    assert refused.headers["x-ratelimit-limit-tokens"] == "100"
    assert provider.stats()["refused_429"] == {"tokens": 1, "too_large": 1}


def test_over_the_concurrency_is_429_until_one_leaves(client: httpx.Client, provider: RunningProvider) -> None:
    provider.set_limits(concurrency=1)
    provider.set_faults([{"kind": "hang", "count": 1}])
    with socket.create_connection(("127.0.0.1", int(provider.url.rsplit(":", 1)[1]))) as hanging:
        body = json.dumps(CHAT).encode()
        hanging.sendall(b"POST /v1/chat/completions HTTP/1.1\r\nContent-Length: %d\r\n\r\n%b" % (len(body), body))
        wait_until(lambda: provider.stats()["in_flight"] == 1)
        refused = chat(client)
        assert (refused.status_code, "retry-after-ms" in refused.headers) == (429, True)
    wait_until(lambda: provider.stats()["in_flight"] == 0)
    assert chat(client).status_code == 200
    stats = provider.stats()
    assert stats["refused_429"] == {"concurrency": 1}
    assert stats["by_status"] == {"200": 1, "429": 1, "499": 1}
    assert stats["max_in_flight"] == 1


def test_limits_may_count_each_model(client: httpx.Client, provider: RunningProvider) -> None:
    provider.set_limits(rate=0.01, burst=1, scope="model")
    assert [chat(client, model=model).status_code for model in ("sim-small", "sim-large", "sim-small")] == [
        200,
        200,
        429,
    ]
    provider.set_limits(rate=None)
    assert chat(client).status_code == 200
    assert provider.call("GET", "/limits")["scope"] == "model"


def test_a_reset_forgets_counters_faults_and_limits(client: httpx.Client, provider: RunningProvider) -> None:
    provider.set_limits(rate=0, burst=0)
    provider.set_faults([{"kind": "error"}])
    chat(client)
    provider.reset()
    assert chat(client).status_code == 200
    assert provider.stats()["by_status"] == {"200": 1}
    assert provider.call("GET", "/faults") == []


# Faults


@pytest.mark.parametrize(
    ("fault", "status", "code"),
    [
        ({"kind": "throttle", "retry_after_s": 3}, 429, "rate_limit_exceeded"),
        ({"kind": "slow_down"}, 429, "slow_down"),
        ({"kind": "quota", "retry_after_s": 3}, 429, "insufficient_quota"),
        ({"kind": "error"}, 500, None),
        ({"kind": "error", "status": 502}, 502, None),
        ({"kind": "overload"}, 503, "server_is_overloaded"),
        ({"kind": "quota", "code": "credit_balance_exhausted"}, 429, "credit_balance_exhausted"),
    ],
)
def test_faults_at_the_door(
    client: httpx.Client, provider: RunningProvider, fault: dict[str, object], status: int, code: str | None
) -> None:
    provider.set_faults([fault])
    answer = chat(client)
    assert (answer.status_code, answer.json()["error"]["code"]) == (status, code)
    assert ("retry-after" in answer.headers) is (fault["kind"] == "throttle")
    assert provider.stats()["faults"] == {fault["kind"]: 1}


def test_throttled_for_a_while_tells_the_time_that_is_left(client: httpx.Client, provider: RunningProvider) -> None:
    provider.set_faults([{"kind": "throttle", "for_s": 0.3}])
    told_s = retry_after_s((refused := chat(client)).headers, None, now=time.time())
    assert refused.status_code == 429
    assert told_s is not None
    assert 0 < told_s <= 0.3
    wait_until(lambda: chat(client).status_code == 200)
    arrivals = provider.stats()["arrivals"]
    until_s = next(row[0] for row in arrivals if row[1] == 200)
    assert until_s >= arrivals[0][0] + told_s - 0.01


def test_a_stream_cut_in_the_middle_has_no_end(client: httpx.Client, provider: RunningProvider) -> None:
    provider.set_faults([{"kind": "cut"}])
    pieces: list[bytes] = []

    def read_to_the_end() -> None:
        with client.stream("POST", "/v1/chat/completions", json={**CHAT, "stream": True}) as answer:
            for piece in answer.iter_bytes():
                pieces.append(piece)  # noqa: PERF402 - the iterator raises in the middle, and what came counts

    with pytest.raises(httpx.RemoteProtocolError):
        read_to_the_end()
    seen = b"".join(pieces)
    assert b"data: " in seen
    assert b"[DONE]" not in seen
    assert provider.stats()["in_flight"] == 0


@pytest.mark.parametrize("kind", ["cut", "reset"])
def test_a_broken_connection_is_one(client: httpx.Client, provider: RunningProvider, kind: str) -> None:
    provider.set_faults([{"kind": kind, "count": 1}])
    with pytest.raises(httpx.TransportError):
        chat(client)
    assert chat(client).status_code == 200


def test_a_hang_may_end_without_an_answer(client: httpx.Client, provider: RunningProvider) -> None:
    provider.set_faults([{"kind": "hang", "for_each_s": 0.05}])
    with pytest.raises(httpx.RemoteProtocolError):
        chat(client)


def test_an_error_in_the_middle_of_a_stream(client: httpx.Client, provider: RunningProvider) -> None:
    provider.set_faults([{"kind": "stream_error"}])
    answer = chat(client, stream=True)
    assert answer.status_code == 200
    last = answer.text.strip().split("\n\n")[-1].removeprefix("data: ")
    assert json.loads(last)["error"]["code"] == "server_is_overloaded"


def test_only_prompts_that_contain_the_text_are_struck(client: httpx.Client, provider: RunningProvider) -> None:
    provider.set_faults([{"kind": "error", "contains": "poison"}])
    poison = chat(client, messages=[{"role": "user", "content": "a poison pill"}])
    assert (poison.status_code, chat(client).status_code) == (500, 200)


# The connection


def talk(provider: RunningProvider, *pieces: bytes) -> bytes:
    with socket.create_connection(("127.0.0.1", int(provider.url.rsplit(":", 1)[1])), timeout=10) as connection:
        for piece in pieces:
            connection.sendall(piece)
        connection.shutdown(socket.SHUT_WR) if pieces[-1].endswith(b"bye") else None
        received = b""
        while piece := connection.recv(65536):
            received += piece
    return received


def test_pipelined_requests_are_answered_in_order(provider: RunningProvider) -> None:
    body = json.dumps(CHAT).encode()
    post = b"POST /v1/chat/completions HTTP/1.1\r\nContent-Length: %d\r\n\r\n%b" % (len(body), body)
    received = talk(provider, post + b"GET /healthz HTTP/1.1\r\nConnection: close\r\n\r\n")
    first, second = received.index(b"chat.completion"), received.index(b'{"status": "ok"}')
    assert first < second
    assert received.count(b"HTTP/1.1 200 OK") == 2


def test_nonsense_is_refused_and_the_connection_closed(provider: RunningProvider) -> None:
    assert talk(provider, b"hello\r\n\r\n").startswith(b"HTTP/1.1 400 ")


def test_an_old_client_gets_a_stream_without_chunks(provider: RunningProvider) -> None:
    body = json.dumps({**CHAT, "stream": True}).encode()
    received = talk(provider, b"POST /v1/chat/completions HTTP/1.0\r\nContent-Length: %d\r\n\r\n%b" % (len(body), body))
    assert b"transfer-encoding" not in received
    assert received.endswith(b"data: [DONE]\n\n")


def test_a_client_may_wait_for_the_go_ahead(provider: RunningProvider) -> None:
    body = json.dumps(CHAT).encode()
    head = (
        b"POST /v1/chat/completions HTTP/1.1\r\nExpect: 100-continue\r\nConnection: close\r\nContent-Length: %d\r\n\r\n"
    )
    with socket.create_connection(("127.0.0.1", int(provider.url.rsplit(":", 1)[1])), timeout=10) as connection:
        connection.sendall(head % len(body))
        assert connection.recv(1000) == b"HTTP/1.1 100 Continue\r\n\r\n"
        connection.sendall(body)
        assert connection.recv(1000).startswith(b"HTTP/1.1 200 OK")


# The process


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_it_at_once_even_while_a_client_waits(number: signal.Signals) -> None:
    with running_provider(faults=[{"kind": "hang"}]) as provider:
        body = json.dumps(CHAT).encode()
        with socket.create_connection(("127.0.0.1", int(provider.url.rsplit(":", 1)[1]))) as hanging:
            hanging.sendall(b"POST /v1/chat/completions HTTP/1.1\r\nContent-Length: %d\r\n\r\n%b" % (len(body), body))
            wait_until(lambda: provider.stats()["in_flight"] == 1)
            provider.process.send_signal(number)
            assert provider.process.wait(2.0) == 0


def test_it_ends_with_its_parent() -> None:
    with running_provider() as provider:
        assert provider.process.stdin is not None
        provider.process.stdin.close()
        assert provider.process.wait(2.0) == 0


def test_files_and_options_make_a_provider(tmp_path: Path) -> None:
    (tmp_path / "faults.json").write_text('[{"kind": "error", "count": 1}]')
    (tmp_path / "limits.json").write_text('{"concurrency": 7, "models": {"sim-large": {"rate": 1}}}')
    options = [f"--{name}={tmp_path / name}.json" for name in ("faults", "limits")]
    with running_provider(
        extra=[*options, f"--url-file={tmp_path / 'url'}"], rate=50, burst=100, api_key="open-sesame"
    ) as provider:
        assert (tmp_path / "url").read_text() == f"{provider.url}\n"
        limits = provider.call("GET", "/limits")
        assert (limits["rate"], limits["burst"], limits["concurrency"]) == (50, 100, 7)
        with httpx.Client(base_url=provider.url, trust_env=False) as client:
            assert chat(client).status_code == 401
            client.headers["authorization"] = "Bearer open-sesame"
            assert [chat(client).status_code for _ in range(2)] == [500, 200]
        assert sorted(path.name for path in tmp_path.iterdir()) == ["faults.json", "limits.json", "url"]


def test_it_is_a_command_of_the_product() -> None:
    process = subprocess.Popen(
        [sys.executable, "manage.py", "provider_sim", "--port=0", "--rate=5", "--exit-on-stdin-eof"],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    with process:
        assert process.stdin is not None
        assert process.stdout is not None
        provider = RunningProvider(process.stdout.readline().split()[-1], process)
        assert provider.call("GET", "/limits")["rate"] == 5
        process.stdin.close()
        assert process.wait(5.0) == 0


def test_the_command_refuses_options_that_make_no_sense() -> None:
    ended = run_to_its_end("manage.py", "provider_sim", "--rate=-5")
    assert ended.returncode == 1
    assert ended.stderr == "CommandError: rate must be a number that is not negative, or null.\n"


def run_to_its_end(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *arguments], cwd=ROOT, capture_output=True, text=True, timeout=30, check=False
    )


def test_a_port_in_use_is_a_sentence(provider: RunningProvider) -> None:
    port = provider.url.rsplit(":", 1)[1]
    ended = run_to_its_end("-m", "scheduler.demo.provider_sim", "--port", port)
    assert ended.returncode == 1
    assert ended.stderr == f"The provider simulator cannot listen on port {port}: Address already in use\n"


@pytest.mark.parametrize(
    "arguments", [["--latency-median-s=-1"], ["--rate=nan"], ["--rate=-5"], ["--faults=none.json"], ["--scope=moon"]]
)
def test_options_that_make_no_sense_are_refused(arguments: list[str]) -> None:
    ended = run_to_its_end("-m", "scheduler.demo.provider_sim", *arguments)
    assert ended.returncode == 2
    assert "error:" in ended.stderr
    assert "Traceback" not in ended.stderr
