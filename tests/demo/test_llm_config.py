"""A pool's configuration is parsed once, and rejected with a sentence that never repeats a secret."""

from __future__ import annotations

from pathlib import Path

import pytest

from scheduler.engine.executors.llm_config import LlmConfig, LlmConfigError
from scheduler.engine.executors.quota_gate import GATES_MAX, QuotaGates

URL = "https://api.example.com/v1"


def test_every_key_is_read() -> None:
    config = LlmConfig.parse(
        {
            "base_url": f"{URL}/",
            "api_key_env": "OPENAI_API_KEY",
            "model": "m",
            "timeout_s": 30,
            "quota_resource": "openai",
            "tokens_resource": "openai-tokens",
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
        tokens_resource="openai-tokens",
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
    ],
)
def test_what_cannot_work_is_rejected_with_a_sentence(config: dict[str, object], said: str) -> None:
    with pytest.raises(LlmConfigError, match=said) as caught:
        LlmConfig.parse(config)
    assert str(caught.value).endswith(".")
    assert "0123456789abcdef" not in str(caught.value)
    assert "secret" not in str(caught.value)


def test_the_key_is_read_from_where_the_configuration_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    key_file = tmp_path / "key"
    key_file.write_text("from-file\n")
    monkeypatch.setenv("SOME_KEY", " from-env ")
    assert LlmConfig.parse({"base_url": URL}).read_api_key() is None
    assert LlmConfig.parse({"base_url": URL, "api_key_env": "SOME_KEY"}).read_api_key() == "from-env"
    assert LlmConfig.parse({"base_url": URL, "api_key_file": str(key_file)}).read_api_key() == "from-file"


def test_a_key_that_is_not_there_is_a_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NO_SUCH_KEY", raising=False)
    with pytest.raises(LlmConfigError, match="NO_SUCH_KEY is not set"):
        LlmConfig.parse({"base_url": URL, "api_key_env": "NO_SUCH_KEY"}).read_api_key()
    with pytest.raises(LlmConfigError, match="cannot be read"):
        LlmConfig.parse({"base_url": URL, "api_key_file": str(tmp_path / "none")}).read_api_key()
    (tmp_path / "empty").write_text("\n")
    with pytest.raises(LlmConfigError, match="is empty"):
        LlmConfig.parse({"base_url": URL, "api_key_file": str(tmp_path / "empty")}).read_api_key()


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
