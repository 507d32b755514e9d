"""A pool's configuration is parsed once, and rejected with a sentence that never repeats a secret."""

from __future__ import annotations

from pathlib import Path

import pytest

from scheduler.engine.executors.llm_key import read_api_key
from scheduler.engine.executors.quota_gate import GATES_MAX, QuotaGates
from scheduler.providers.llm_config import ApiName, Endpoint, LlmConfig, LlmConfigError, ModelTerms
from scheduler.providers.token_weights import Reserve, TokenLimit, Weights

URL = "https://api.example.com/v1"
TPM = TokenLimit(Weights(cache_read=0.0, output=5.0), Reserve.MAX_OF)


def test_every_key_is_read() -> None:
    config = LlmConfig.parse(
        {
            "base_url": f"{URL}/",
            "api_key_env": "OPENAI_API_KEY",
            "model": "m",
            "timeout_s": 30,
            "quota_resource": "openai",
            "api": "messages",
            "max_output_tokens": 900,
            "degraded_max_output_tokens": 90,
            "retry_after_send": False,
            "tokens": {"tpm": {"weights": {"cache_read": 0, "output": 5}, "reserve": "max_of"}},
            "anthropic_version": "2025-01-01",
            "models": {"other": {"api": "chat"}},
            "response_bytes_max": 1000,
            "proxy": "http://proxy.example.com:3128",
        }
    )
    assert config == LlmConfig(
        base_url=URL,
        api_key_env="OPENAI_API_KEY",
        model="m",
        timeout_s=30,
        quota_resource="openai",
        api=ApiName.MESSAGES,
        max_output_tokens=900,
        degraded_max_output_tokens=90,
        retry_after_send=False,
        tokens={"tpm": TPM},
        anthropic_version="2025-01-01",
        models={
            "other": ModelTerms(
                endpoint=Endpoint(base_url=URL, api_key_env="OPENAI_API_KEY", quota_resource="openai"),
                api=ApiName.CHAT,
                max_output_tokens=900,
                tokens={"tpm": TPM},
            )
        },
        response_bytes_max=1000,
        proxy="http://proxy.example.com:3128",
    )


@pytest.mark.parametrize("url", ["https://api.example.com", "https://api.example.com/"])
def test_an_address_without_a_path_gets_the_usual_one(url: str) -> None:
    assert LlmConfig.parse({"base_url": url}).base_url == "https://api.example.com/v1"


@pytest.mark.parametrize(
    ("config", "said"),
    [
        ({}, "'base_url' is missing"),
        ({"base_url": ""}, "'base_url' must be a text"),
        ({"base_url": 5}, "'base_url' must be a text"),
        ({"base_url": "ftp://example.com"}, "http or https"),
        ({"base_url": "http://"}, "with a host"),
        ({"base_url": "http://[::1"}, "not an address"),
        ({"base_url": "http://example.com:99999"}, "not an address"),
        ({"base_url": "http://me:secret@example.com"}, "no user name"),
        ({"base_url": f"{URL}?key=1"}, "no user name"),
        ({"base_url": URL, "api_key": "sk-1"}, "Unknown key 'api_key'"),
        ({"base_url": URL, "api_key_env": "A", "api_key_file": "/b"}, "not both"),
        ({"base_url": URL, "api_key_env": "has blanks"}, "never the key itself"),
        ({"base_url": URL, "api_key_env": "sk-proj-0123456789abcdef"}, "never the key itself"),
        ({"base_url": URL, "api_key_env": "AIza0123456789abcdefXY"}, "never the key itself"),
        ({"base_url": URL, "timeout_s": 0}, "'timeout_s' must be a number"),
        ({"base_url": URL, "timeout_s": True}, "'timeout_s' must be a number"),
        ({"base_url": URL, "timeout_s": 4000}, "at most 3600"),
        ({"base_url": URL, "timeout_s": float("nan")}, "'timeout_s' must be a number"),
        ({"base_url": URL, "response_bytes_max": -1}, "'response_bytes_max' must be a number"),
        ({"base_url": URL, "api": "completions"}, "'api' must be one of chat, responses, embeddings, messages"),
        ({"base_url": URL, "max_output_tokens": 0}, "'max_output_tokens' must be a whole number"),
        ({"base_url": URL, "retry_after_send": "no"}, "'retry_after_send' must be true or false"),
        ({"base_url": URL, "tokens": []}, "'tokens' must be an object"),
        ({"base_url": URL, "tokens": {"r": {"weight": 1}}}, "'tokens.r' knows 'weights' and 'reserve' only"),
        ({"base_url": URL, "tokens": {"r": {"reserve": "all"}}}, "'tokens.r.reserve' must be one of none"),
        ({"base_url": URL, "tokens": {"r": {"weights": {"in": 1}}}}, "'tokens.r.weights' knows input"),
        ({"base_url": URL, "tokens": {"r": {"weights": {"output": -1}}}}, "'tokens.r.weights.output' must be"),
        ({"base_url": URL, "models": []}, "'models' must be an object"),
        ({"base_url": URL, "models": {"m": {"timeout_s": 1}}}, "'models.m' must be an object that knows"),
        ({"base_url": URL, "models": {"m": {"base_url": "x"}}}, "In 'models.m': 'base_url' must be an http"),
    ],
)
def test_what_cannot_work_is_rejected_with_a_sentence(config: dict[str, object], said: str) -> None:
    with pytest.raises(LlmConfigError, match=said) as caught:
        LlmConfig.parse(config)
    assert str(caught.value).endswith(".")
    assert "0123456789abcdef" not in str(caught.value)
    assert "secret" not in str(caught.value)


def test_an_address_of_its_own_does_not_get_the_pool_s_key() -> None:
    config = LlmConfig.parse(
        {
            "base_url": URL,
            "api_key_env": "POOL_KEY",
            "quota_resource": "pool",
            "models": {
                "near": {"max_output_tokens": 5},
                "far": {"base_url": "https://far.example.com", "api": "messages"},
                "paid-apart": {"api_key_file": "/keys/apart"},
            },
        }
    )
    assert config.terms_of("near").endpoint == config.terms_of("unlisted").endpoint == config.endpoint
    assert config.terms_of("far").endpoint == Endpoint(base_url="https://far.example.com/v1")
    assert config.terms_of("paid-apart").endpoint == Endpoint(
        base_url=URL, api_key_file="/keys/apart", quota_resource="pool"
    )


def test_the_key_is_read_from_where_the_configuration_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    key_file = tmp_path / "key"
    key_file.write_text("from-file\n")
    monkeypatch.setenv("SOME_KEY", " from-env ")
    assert read_api_key(LlmConfig.parse({"base_url": URL}).endpoint) is None
    assert read_api_key(LlmConfig.parse({"base_url": URL, "api_key_env": "SOME_KEY"}).endpoint) == "from-env"
    assert read_api_key(LlmConfig.parse({"base_url": URL, "api_key_file": str(key_file)}).endpoint) == "from-file"


def test_a_key_that_is_not_there_is_a_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NO_SUCH_KEY", raising=False)
    with pytest.raises(LlmConfigError, match="NO_SUCH_KEY is not set"):
        read_api_key(LlmConfig.parse({"base_url": URL, "api_key_env": "NO_SUCH_KEY"}).endpoint)
    with pytest.raises(LlmConfigError, match="cannot be read"):
        read_api_key(LlmConfig.parse({"base_url": URL, "api_key_file": str(tmp_path / "none")}).endpoint)
    (tmp_path / "empty").write_text("\n")
    with pytest.raises(LlmConfigError, match="is empty"):
        read_api_key(LlmConfig.parse({"base_url": URL, "api_key_file": str(tmp_path / "empty")}).endpoint)


def test_a_gate_never_shortens_a_wait() -> None:
    gates, quota = QuotaGates(), ("provider", "quota")
    assert gates.wait_s(quota, now=100.0) == 0.0
    gates.close(quota, for_s=10.0, now=100.0)
    gates.close(quota, for_s=2.0, now=101.0)
    assert gates.wait_s(quota, now=101.0) == 9.0
    assert gates.wait_s(quota, now=110.0) == 0.0


def test_gates_that_are_open_again_are_forgotten() -> None:
    gates = QuotaGates()
    for number in range(3 * GATES_MAX):
        gates.close(("provider", str(number)), for_s=1.0, now=float(number))
    assert gates.wait_s(("provider", str(3 * GATES_MAX - 1)), now=3.0 * GATES_MAX - 1) == 1.0
    assert gates.wait_s(("provider", "0"), now=0.0) == 0.0
