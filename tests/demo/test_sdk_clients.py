"""The official clients run unmodified against the simulator, and how they retry is pinned."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from itertools import pairwise
from typing import TYPE_CHECKING

import httpx2 as httpx
import pytest

from tests.support.lazily import lazily
from tests.support.provider import RunningProvider

if TYPE_CHECKING:
    import anthropic
    import openai
else:
    anthropic, openai = lazily("anthropic"), lazily("openai")

QUESTION = "Say hello."


@pytest.fixture
def openai_client(provider: RunningProvider) -> Iterator[openai.OpenAI]:
    with openai.OpenAI(base_url=provider.base_url, api_key="simulated") as client:
        yield client


@pytest.fixture
def anthropic_client(provider: RunningProvider) -> Iterator[anthropic.Anthropic]:
    with anthropic.Anthropic(base_url=provider.url, api_key="simulated") as client:
        yield client


def ask_openai(client: openai.OpenAI) -> str:
    answer = client.chat.completions.create(model="sim-small", messages=[{"role": "user", "content": QUESTION}])
    return answer.choices[0].message.content or ""


def ask_anthropic(client: anthropic.Anthropic) -> anthropic.types.Message:
    return client.messages.create(
        model="sim-small", max_tokens=1000, system="Be brief.", messages=[{"role": "user", "content": QUESTION}]
    )


# What they read


def test_openai_chat_whole_and_streamed(openai_client: openai.OpenAI, provider: RunningProvider) -> None:
    whole = ask_openai(openai_client)
    stream = openai_client.chat.completions.create(
        model="sim-small",
        messages=[{"role": "user", "content": QUESTION}],
        stream=True,
        stream_options={"include_usage": True},
    )
    chunks = list(stream)
    assert "".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices) == whole
    usage = chunks[-1].usage
    assert usage is not None
    assert usage.total_tokens == usage.prompt_tokens + usage.completion_tokens
    assert provider.stats()["by_api"]["chat"]["requests"] == 2


def test_openai_reasoning_is_part_of_the_completion(openai_client: openai.OpenAI) -> None:
    usage = openai_client.chat.completions.create(
        model="sim-small", messages=[{"role": "user", "content": QUESTION}], reasoning_effort="high"
    ).usage
    assert usage is not None
    assert usage.completion_tokens_details is not None
    assert usage.completion_tokens == 2 * (usage.completion_tokens_details.reasoning_tokens or 0)


def test_openai_caches_a_long_prompt_by_itself(openai_client: openai.OpenAI) -> None:
    long = "All work and no play. " * 300
    cached = []
    for question in ("First?", "Second?"):
        usage = openai_client.responses.create(model="sim-small", input=f"{long}{question}").usage
        assert usage is not None
        cached.append((usage.input_tokens_details.cached_tokens, usage.input_tokens))
    assert cached[0][0] == 0
    assert cached[1][0] % 128 == 0
    assert 1024 <= cached[1][0] <= cached[1][1]


def test_openai_responses_whole_and_streamed(openai_client: openai.OpenAI) -> None:
    whole = openai_client.responses.create(model="sim-small", input=QUESTION, instructions="Be brief.")
    assert whole.status == "completed"
    assert whole.usage is not None
    with openai_client.responses.stream(model="sim-small", input=QUESTION, instructions="Be brief.") as stream:
        events = list(stream)
        final = stream.get_final_response()
    assert final.output_text == whole.output_text
    assert final.usage == whole.usage
    assert "".join(event.delta for event in events if event.type == "response.output_text.delta") == whole.output_text
    numbers = [event.sequence_number for event in events]
    assert all(later > earlier for earlier, later in pairwise(numbers))


def test_openai_responses_tell_that_a_cap_was_reached(openai_client: openai.OpenAI) -> None:
    answer = openai_client.responses.create(model="sim-small", input=QUESTION, max_output_tokens=16)
    assert answer.incomplete_details is not None
    assert (answer.status, answer.incomplete_details.reason) == ("incomplete", "max_output_tokens")


def test_openai_embeddings(openai_client: openai.OpenAI) -> None:
    answer = openai_client.embeddings.create(model="sim-embed", input=["one", "two"], dimensions=8)
    assert [len(each.embedding) for each in answer.data] == [8, 8]


def test_anthropic_messages_whole_and_streamed(anthropic_client: anthropic.Anthropic) -> None:
    whole = ask_anthropic(anthropic_client)
    assert whole.content[0].type == "text"
    with anthropic_client.messages.stream(
        model="sim-small", max_tokens=1000, system="Be brief.", messages=[{"role": "user", "content": QUESTION}]
    ) as stream:
        text = "".join(stream.text_stream)
        final = stream.get_final_message()
    assert text == whole.content[0].text
    assert (final.stop_reason, final.usage.output_tokens) == (whole.stop_reason, whole.usage.output_tokens)
    assert final.usage.input_tokens == whole.usage.input_tokens


def test_anthropic_thinks_within_its_output(anthropic_client: anthropic.Anthropic) -> None:
    answer = anthropic_client.messages.create(
        model="sim-small",
        max_tokens=4000,
        thinking={"type": "enabled", "budget_tokens": 1024},
        messages=[{"role": "user", "content": QUESTION}],
    )
    assert [block.type for block in answer.content] == ["thinking", "text"]
    details = answer.usage.output_tokens_details
    assert details is not None
    assert 0 < details.thinking_tokens < answer.usage.output_tokens


def test_anthropic_caches_up_to_the_mark_and_counts_the_rest_beside_it(anthropic_client: anthropic.Anthropic) -> None:
    usages = [
        anthropic_client.messages.create(
            model="sim-small",
            max_tokens=100,
            system=[
                {"type": "text", "text": "a" * 4000, "cache_control": {"type": "ephemeral", "ttl": "1h"}},
                {"type": "text", "text": "b" * 2000, "cache_control": {"type": "ephemeral"}},
            ],
            messages=[{"role": "user", "content": QUESTION}],
        ).usage
        for _ in range(2)
    ]
    first, second = usages
    assert first.cache_creation is not None
    assert first.cache_read_input_tokens == second.cache_creation_input_tokens == 0
    assert (first.cache_creation.ephemeral_1h_input_tokens, first.cache_creation.ephemeral_5m_input_tokens) == (
        1000,
        501,
    )
    assert second.cache_read_input_tokens == first.cache_creation_input_tokens == 1501
    assert first.input_tokens == second.input_tokens > 0


# What they do when refused


def test_openai_waits_as_long_as_it_is_told(openai_client: openai.OpenAI, provider: RunningProvider) -> None:
    provider.set_faults([{"kind": "throttle", "retry_after_s": 0.2, "retry_after_format": "ms", "count": 1}])
    assert ask_openai(openai_client)
    first, second = provider.stats()["arrivals"]
    assert (first[1], second[1]) == (429, 200)
    # Its own first delay would be at least 0.375 s, and the header is given in milliseconds.
    assert second[0] - first[0] >= 0.2


def test_anthropic_waits_as_long_as_it_is_told(
    anthropic_client: anthropic.Anthropic, provider: RunningProvider
) -> None:
    provider.set_faults([{"kind": "throttle", "retry_after_s": 0.2, "retry_after_format": "fraction", "count": 1}])
    assert ask_anthropic(anthropic_client).content
    first, second = provider.stats()["arrivals"]
    assert (first[1], second[1]) == (429, 200)
    assert second[0] - first[0] >= 0.2


def test_openai_gives_up_after_two_retries(openai_client: openai.OpenAI, provider: RunningProvider) -> None:
    provider.set_faults([{"kind": "throttle", "retry_after_s": 0.001, "retry_after_format": "ms"}])
    with pytest.raises(openai.RateLimitError) as caught:
        ask_openai(openai_client)
    assert caught.value.code == "rate_limit_exceeded"
    assert provider.stats()["requests"] == 3


@pytest.mark.parametrize(
    ("fault", "error", "said"),
    [
        ({"kind": "overload"}, "InternalServerError", "overloaded_error"),
        ({"kind": "quota"}, "APIStatusError", "billing_error"),
        ({"kind": "quota", "status": 400}, "BadRequestError", "specified API usage limits"),
        ({"kind": "quota", "status": 429}, "RateLimitError", "enforced_spend_limit_reached"),
        ({"kind": "error", "status": 413}, "APIStatusError", "request_too_large"),
    ],
)
def test_anthropic_knows_the_errors(provider: RunningProvider, fault: dict[str, object], error: str, said: str) -> None:
    provider.set_faults([fault])
    with (
        anthropic.Anthropic(base_url=provider.url, api_key="simulated", max_retries=0) as client,
        pytest.raises(getattr(anthropic, error), match=said) as caught,
    ):
        ask_anthropic(client)
    assert isinstance(caught.value, anthropic.APIStatusError)
    assert (caught.value.request_id or "").startswith("req_")


def test_anthropic_sees_an_error_in_the_middle_of_a_stream(
    anthropic_client: anthropic.Anthropic, provider: RunningProvider
) -> None:
    provider.set_faults([{"kind": "stream_error"}])
    with (
        pytest.raises(anthropic.APIStatusError, match="overloaded_error") as caught,
        anthropic_client.messages.stream(
            model="sim-small", max_tokens=1000, messages=[{"role": "user", "content": QUESTION}]
        ) as stream,
    ):
        stream.until_done()
    assert caught.value.status_code == 200
    assert provider.stats()["requests"] == 1


# Their constants: a release that changes them should be noticed here


@pytest.mark.parametrize("package", ["openai", "anthropic"])
def test_their_defaults_add_up_to_half_an_hour(package: str) -> None:
    constants = import_module(f"{package}._constants")
    timeout = constants.DEFAULT_TIMEOUT
    assert (timeout.read, timeout.connect) == (600, 5.0)
    names = ("DEFAULT_MAX_RETRIES", "INITIAL_RETRY_DELAY", "MAX_RETRY_DELAY")
    assert [getattr(constants, name) for name in names] == [2, 0.5, 8.0]


@pytest.mark.parametrize(
    ("status", "headers", "retries"),
    [
        (408, {}, True),
        (409, {}, True),
        (429, {}, True),
        (500, {}, True),
        (529, {}, True),
        (402, {}, False),
        (403, {}, False),
        (422, {}, False),
        (429, {"x-should-retry": "false"}, False),
        (400, {"x-should-retry": "true"}, True),
    ],
)
def test_which_answers_both_retry(
    openai_client: openai.OpenAI,
    anthropic_client: anthropic.Anthropic,
    status: int,
    headers: dict[str, str],
    retries: bool,
) -> None:
    answer = httpx.Response(status, headers=headers)
    assert openai_client._should_retry(answer) is retries
    assert anthropic_client._should_retry(answer) is retries


@pytest.mark.parametrize("told_s", [59, 60, 61, 119, 120, 121, 3600])
def test_up_to_which_delay_they_wait(
    openai_client: openai.OpenAI, anthropic_client: anthropic.Anthropic, told_s: int
) -> None:
    answer = httpx.Response(429, headers={"retry-after": str(told_s)})
    wait = openai._models.FinalRequestOptions(method="post", url="/")
    assert openai_client._should_retry(answer) is (told_s <= 120)
    if told_s <= 120:
        assert openai_client._calculate_retry_timeout(2, wait, answer.headers) == told_s
    assert anthropic_client._should_retry(answer)
    options = anthropic._models.FinalRequestOptions(method="post", url="/")
    assert anthropic_client._calculate_retry_timeout(2, options, answer.headers) == told_s


def test_without_a_word_they_double_up_to_eight_seconds(
    openai_client: openai.OpenAI, anthropic_client: anthropic.Anthropic
) -> None:
    for taken, most in enumerate((0.5, 1.0, 2.0, 4.0, 8.0, 8.0)):
        options = openai._models.FinalRequestOptions(method="post", url="/", max_retries=10)
        assert 0.75 * most <= openai_client._calculate_retry_timeout(10 - taken, options) <= most
        others = anthropic._models.FinalRequestOptions(method="post", url="/", max_retries=10)
        assert 0.75 * most <= anthropic_client._calculate_retry_timeout(10 - taken, others) <= most
