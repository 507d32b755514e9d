"""The llm executor, against the simulator over loopback and against a server that answers anything."""

from __future__ import annotations

import asyncio
import socket
import time

import pytest

from scheduler.engine.executors.base import (
    AttemptFailed,
    ExecutionResult,
    HandBack,
    Permanent,
    ProviderBilling,
    Retryable,
)
from scheduler.engine.executors.llm import LlmExecutor
from scheduler.engine.executors.quota_gate import PROCESS_GATES
from scheduler.policy.types import FailureClass
from scheduler.providers.llm_config import LlmConfig
from scheduler.providers.usage import UsageSource
from tests.demo.calls import CHAT, STREAM, Attempt, failure_of, failure_with_canned, run, run_one, value_of, with_canned
from tests.support.canned import CannedServer, event_stream
from tests.support.provider import RunningProvider, running_provider

# What comes back


def test_a_chat_returns_its_text_and_what_it_used(provider: RunningProvider) -> None:
    result = run_one(provider.url, CHAT, tokens={"tpm": {"weights": {"output": 5}}})
    value = value_of(result)
    assert value["text"].startswith("sim-small heard: Say hello.")
    assert (value["model"], value["finish_reason"]) == ("sim-small", "stop")
    assert value["provider_request_id"].startswith("req_")
    assert result.usage is not None
    assert result.usage.source is UsageSource.REPORTED
    assert value["usage"] == result.usage.as_json()
    stats = provider.stats()
    assert (stats["tokens_in"], stats["tokens_out"]) == (result.usage.input_total, result.usage.output_total)
    assert result.actual == {"tpm": result.usage.input_total + 5.0 * result.usage.output_total}


def test_a_streamed_chat_returns_the_same_as_a_whole_one(provider: RunningProvider) -> None:
    whole, streamed = value_of(run_one(provider.url, CHAT)), value_of(run_one(provider.url, STREAM))
    del whole["provider_request_id"], streamed["provider_request_id"]
    assert whole == streamed


def test_embeddings_come_in_the_order_of_their_inputs(provider: RunningProvider) -> None:
    payload = {"model": "sim-embed", "input": ["one", "two"], "dimensions": 8}
    value = value_of(run_one(provider.url, payload))
    alone = value_of(run_one(provider.url, {**payload, "input": "two"}))
    assert [len(vector) for vector in value["embeddings"]] == [8, 8]
    assert value["embeddings"][1] == alone["embeddings"][0]
    assert value["usage"]["output_visible"] == 0


def test_what_the_provider_says_is_left_comes_with_the_result_once_it_runs_low(provider: RunningProvider) -> None:
    provider.set_limits(rate=0.001, burst=4, tokens_per_minute=1_000_000)
    results = run(provider.url, *[CHAT] * 3, quota_resource="rpm", tokens={"tpm": {}})
    left = [result.left for result in results if isinstance(result, ExecutionResult)]
    assert [{name: told.amount for name, told in (each or {}).items()} for each in left] == [{}, {}, {"rpm": 2.0}]
    assert left[2] is not None
    assert 0.0 < left[2]["rpm"].age_s < 10.0


def test_the_payload_s_model_goes_before_the_pool_s(provider: RunningProvider) -> None:
    assert value_of(run_one(provider.url, {**CHAT, "model": "sim-large"}))["model"] == "sim-large"


def test_the_address_may_name_its_path(provider: RunningProvider) -> None:
    assert run_one(f"{provider.url}/v1/", CHAT).usage


# What goes wrong


@pytest.mark.parametrize(
    ("fault", "kind", "failure_class"),
    [
        ({"kind": "throttle", "retry_after_s": 0.0}, Retryable, FailureClass.THROTTLED),
        ({"kind": "slow_down"}, Retryable, FailureClass.THROTTLED),
        ({"kind": "overload"}, Retryable, FailureClass.OVERLOADED),
        ({"kind": "overload", "status": 529}, Retryable, FailureClass.OVERLOADED),
        ({"kind": "error"}, Retryable, FailureClass.OVERLOADED),
        ({"kind": "error", "status": 504}, Retryable, FailureClass.OVERLOADED),
        ({"kind": "error", "status": 409}, Retryable, FailureClass.OVERLOADED),
        ({"kind": "quota"}, ProviderBilling, None),
    ],
)
@pytest.mark.parametrize("payload", [CHAT, STREAM], ids=["whole", "streamed"])
def test_a_refusal_costs_nothing_and_names_its_class(
    provider: RunningProvider,
    payload: object,
    fault: dict[str, object],
    kind: type[AttemptFailed],
    failure_class: FailureClass | None,
) -> None:
    provider.set_faults([fault])
    failure = failure_of(provider.url, payload)
    assert type(failure) is kind
    assert failure.usage is None
    assert getattr(failure, "failure_class", None) is failure_class
    assert provider.stats()["requests"] == 1


def test_an_unknown_model_is_permanent(provider: RunningProvider) -> None:
    failure = failure_of(provider.url, {**CHAT, "model": "gone"})
    assert isinstance(failure, Permanent)
    assert failure.message.startswith("model_not_found: HTTP 404: The model 'gone' does not exist")


def test_a_hanging_provider_is_a_timeout_of_unknown_cost(provider: RunningProvider) -> None:
    provider.set_faults([{"kind": "hang"}])
    failure = failure_of(provider.url, CHAT, attempt=Attempt(timeout_s=0.2))
    assert isinstance(failure, Retryable)
    assert failure.failure_class is FailureClass.TIMEOUT
    assert failure.usage is not None
    assert failure.usage.source is UsageSource.UNKNOWN
    assert failure.usage.input_total > 0


def test_the_pool_s_timeout_holds_without_one_of_the_task(provider: RunningProvider) -> None:
    provider.set_faults([{"kind": "hang"}])
    failure = failure_of(provider.url, CHAT, timeout_s=0.2)
    assert "0.2 s" in failure.message


def test_a_cut_stream_keeps_what_came(provider: RunningProvider) -> None:
    provider.set_faults([{"kind": "cut"}])
    failure = failure_of(provider.url, STREAM)
    assert isinstance(failure, Retryable)
    assert failure.failure_class is FailureClass.ERROR
    assert failure.usage is not None
    assert failure.usage.source is UsageSource.ESTIMATED
    assert 0 < failure.usage.output_visible < provider.stats()["tokens_out"]


@pytest.mark.parametrize("kind", ["cut", "reset", "malformed"])
def test_a_broken_answer_is_retryable_and_its_cost_is_not_forgotten(provider: RunningProvider, kind: str) -> None:
    provider.set_faults([{"kind": kind}])
    failure = failure_of(provider.url, CHAT)
    assert isinstance(failure, Retryable)
    assert failure.failure_class is FailureClass.ERROR
    assert failure.usage is not None
    assert failure.usage.source is UsageSource.UNKNOWN


def test_an_error_inside_a_stream_has_the_class_of_its_code(provider: RunningProvider) -> None:
    provider.set_faults([{"kind": "stream_error"}])
    failure = failure_of(provider.url, STREAM)
    assert isinstance(failure, Retryable)
    assert failure.failure_class is FailureClass.OVERLOADED
    assert failure.usage is not None
    assert failure.usage.output_visible > 0


def test_a_stream_that_ends_too_soon_is_cut_even_when_its_body_is_whole() -> None:
    reply = event_stream({"choices": [{"index": 0, "delta": {"content": "Hi"}}]})
    failure = failure_with_canned(reply, STREAM)
    assert failure.message == "the stream was cut before its end"
    assert failure.usage is not None
    assert failure.usage.output_visible == 1


def test_a_timeout_while_connecting_costs_nothing() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        failure = failure_of(f"https://127.0.0.1:{silent.getsockname()[1]}", CHAT, timeout_s=0.2)
    assert isinstance(failure, Retryable)
    assert failure.failure_class is FailureClass.TIMEOUT
    assert failure.usage is None


def test_a_stream_of_nonsense_is_an_error(provider: RunningProvider) -> None:
    provider.set_faults([{"kind": "malformed"}])
    assert isinstance(failure_of(provider.url, STREAM), Retryable)


def test_a_provider_that_is_not_there_costs_nothing() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    failure = failure_of(f"http://127.0.0.1:{port}", CHAT)
    assert isinstance(failure, Retryable)
    assert failure.failure_class is FailureClass.OVERLOADED
    assert failure.usage is None


@pytest.mark.parametrize(
    "payload",
    [
        None,
        [],
        "hello",
        {},
        {"messages": []},
        {"messages": "hello"},
        {**CHAT, "input": "both"},
        {**CHAT, "temperature": float("nan")},
        {**CHAT, "metadata": {1, 2}},
    ],
)
def test_a_payload_that_is_no_call_is_permanent_and_nothing_is_sent(provider: RunningProvider, payload: object) -> None:
    failure = failure_of(provider.url, payload)
    assert isinstance(failure, Permanent)
    assert provider.stats()["requests"] == 0


def test_no_model_anywhere_is_permanent(provider: RunningProvider) -> None:
    assert isinstance(failure_of(provider.url, CHAT, model=None), Permanent)


# Waiting when told to


def test_nothing_reaches_the_provider_before_the_time_is_up(provider: RunningProvider) -> None:
    begun_s = provider.stats()["seconds_since_start"]
    provider.set_faults([{"kind": "throttle", "for_s": 0.8}])

    async def insist() -> int:
        executor = LlmExecutor(LlmConfig.parse({"base_url": provider.url, "model": "sim-small", "quota_resource": "q"}))
        with pytest.raises(Retryable) as caught:
            await executor.run(Attempt(), CHAT)
        assert caught.value.failure_class is FailureClass.THROTTLED
        assert caught.value.retry_after is not None
        handed_back = 0
        while True:
            try:
                await executor.run(Attempt(), CHAT)
                break
            except HandBack as wait:
                handed_back += 1
                await asyncio.sleep(min(wait.retry_after, 0.05))
        await executor.aclose()
        return handed_back

    assert asyncio.run(insist()) > 0
    first, second = provider.stats()["arrivals"]
    assert (first[1], second[1]) == (429, 200)
    # The fault was set a moment after that was read, so its end was not before this.
    assert second[0] >= begun_s + 0.8


def test_a_call_that_is_still_connecting_is_handed_back_too(provider: RunningProvider) -> None:
    """The first question comes before the connection is made, the second when it stands and nothing is sent."""
    asked: list[bool] = []

    def close_the_gate_after_the_first_question() -> bool:
        if not asked:

            def close() -> None:
                PROCESS_GATES.close((provider.base_url, "late"), for_s=30.0, now=time.monotonic())

            asyncio.get_running_loop().call_soon(close)
        asked.append(True)
        return False

    attempt = Attempt(on_ask=close_the_gate_after_the_first_question)
    (result,) = run(provider.url, CHAT, attempt=attempt, quota_resource="late")
    assert isinstance(result, HandBack)
    assert len(asked) == 2
    assert provider.stats()["requests"] == 0


def test_the_head_of_a_refusal_is_enough_to_hold_others_back() -> None:
    head = b"HTTP/1.1 429 Too Many Requests\r\nretry-after: 30\r\ncontent-length: 100\r\n\r\n"

    async def use(executor: LlmExecutor, canned: CannedServer) -> None:
        first = asyncio.create_task(executor.run(Attempt(), CHAT))
        quota = (f"{canned.url}/v1", "head")
        while not PROCESS_GATES.wait_s(quota, now=time.monotonic()):  # noqa: ASYNC110 - a gate tells nobody when it closes
            await asyncio.sleep(0)
        with pytest.raises(HandBack):
            await executor.run(Attempt(), CHAT)
        assert len(canned.heads) == 1
        first.cancel()
        with pytest.raises(asyncio.CancelledError):
            await first

    with_canned(head, use, quota_resource="head")


def test_pools_of_one_quota_wait_together_and_others_do_not(provider: RunningProvider) -> None:
    provider.set_faults([{"kind": "throttle", "retry_after_s": 30.0, "count": 1}])
    assert isinstance(failure_of(provider.url, CHAT, quota_resource="shared"), Retryable)
    (held,) = run(provider.url, {**CHAT, "model": "sim-large"}, quota_resource="shared")
    assert isinstance(held, HandBack)
    assert 0 < held.retry_after <= 30.0
    assert run_one(provider.url, CHAT, quota_resource="other").usage


def test_without_a_named_quota_each_model_is_its_own() -> None:
    large = {**CHAT, "model": "sim-large"}
    with running_provider(faults=[{"kind": "throttle", "retry_after_s": 30.0, "model": "sim-large"}]) as provider:
        assert isinstance(failure_of(provider.url, large), Retryable)
        (held,) = run(provider.url, large)
        assert isinstance(held, HandBack)
        assert run_one(provider.url, CHAT).usage


@pytest.mark.parametrize(
    "spelling",
    ["seconds", "fraction", "ms", "both", "http-date", "rfc3339", "go-duration", "body", "message"],
)
def test_every_spelling_of_a_delay_arrives(provider: RunningProvider, spelling: str) -> None:
    provider.set_faults([{"kind": "throttle", "retry_after_s": 20.0, "retry_after_format": spelling}])
    failure = failure_of(provider.url, CHAT, quota_resource=spelling)
    assert isinstance(failure, Retryable)
    assert failure.retry_after is not None
    assert 19.9 <= failure.retry_after <= 22.0


def test_a_provider_whose_clock_is_wrong_is_understood() -> None:
    with running_provider(clock_skew_s=300) as provider:
        provider.set_faults([{"kind": "throttle", "retry_after_s": 20.0, "retry_after_format": "http-date"}])
        failure = failure_of(provider.url, CHAT)
    assert isinstance(failure, Retryable)
    assert failure.retry_after is not None
    assert 19.9 <= failure.retry_after <= 22.0


def test_a_429_that_does_not_say_how_long_holds_nobody_back(provider: RunningProvider) -> None:
    provider.set_faults([{"kind": "throttle", "retry_after_format": "none", "count": 1}])
    failure = failure_of(provider.url, CHAT)
    assert isinstance(failure, Retryable)
    assert failure.retry_after is None
    assert run_one(provider.url, CHAT).usage


def test_a_client_that_keeps_to_the_concurrency_never_sees_a_429(provider: RunningProvider) -> None:
    provider.set_limits(concurrency=5)

    async def use() -> None:
        executor = LlmExecutor(LlmConfig.parse({"base_url": provider.url, "model": "sim-small"}))
        slots = asyncio.Semaphore(5)

        async def one(number: int) -> None:
            async with slots:
                await executor.run(Attempt(), STREAM if number % 2 else CHAT)

        await asyncio.gather(*(one(number) for number in range(120)))
        await executor.aclose()

    asyncio.run(use())
    stats = provider.stats()
    assert stats["by_status"] == {"200": 120}
    assert stats["max_in_flight"] <= 5


# Cancelling


def test_the_call_ends_before_the_engine_s_own_limit_and_tells_its_cost(provider: RunningProvider) -> None:
    provider.set_faults([{"kind": "hang"}])

    async def use() -> None:
        executor = LlmExecutor(LlmConfig.parse({"base_url": provider.url, "model": "sim-small"}))
        async with asyncio.timeout(0.4):
            with pytest.raises(Retryable) as caught:
                await executor.run(Attempt(timeout_s=0.4), CHAT)
        assert caught.value.usage is not None
        await executor.aclose()

    asyncio.run(use())


def test_cancelled_before_sending_is_handed_back(provider: RunningProvider) -> None:
    (result,) = run(provider.url, CHAT, attempt=Attempt(on_ask=lambda: True))
    assert isinstance(result, HandBack)
    assert provider.stats()["requests"] == 0


def test_cancelled_while_streaming_stops_and_keeps_what_came(provider: RunningProvider) -> None:
    asked: list[bool] = []

    def from_the_third_question() -> bool:
        asked.append(True)
        return len(asked) > 3

    provider.set_faults([{"kind": "slow", "extra_s": 0.5}])
    failure = failure_of(provider.url, STREAM, attempt=Attempt(on_ask=from_the_third_question))
    assert "cancelled" in failure.message
    assert failure.usage is not None
    assert failure.usage.source in (UsageSource.ESTIMATED, UsageSource.UNKNOWN)


def test_cancelling_the_handler_closes_the_call(provider: RunningProvider) -> None:
    provider.set_faults([{"kind": "hang"}])

    async def use() -> None:
        executor = LlmExecutor(LlmConfig.parse({"base_url": provider.url, "model": "sim-small"}))
        task = asyncio.create_task(executor.run(Attempt(), CHAT))
        while not (await asyncio.to_thread(provider.stats))["in_flight"]:
            pass
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        while (await asyncio.to_thread(provider.stats))["in_flight"]:
            pass
        await executor.aclose()

    asyncio.run(use())
    assert provider.stats()["by_status"] == {"499": 1}
