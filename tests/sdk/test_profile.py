"""Which server a command speaks with."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from scheduler.sdk import SchedulerError
from scheduler.sdk.cli.profile import Profile, resolve

CONFIG = """
default = "dev"
[profiles.dev]
url = "http://dev.example"
token = "cq_dev"
[profiles.prod]
url = "https://prod.example"
token_env = "PROD_TOKEN"
[profiles.file]
url = "https://file.example"
token_file = "{file}"
"""


@pytest.fixture
def environ(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    monkeypatch.chdir(tmp_path)
    secret = tmp_path / "secret"
    secret.write_text("cq_file\n")
    config = tmp_path / "config.toml"
    config.write_text(CONFIG.format(file=secret))
    return {"CRONOQ_CONFIG": str(config)}


def test_flags_go_before_the_environment_and_that_before_profiles(environ: dict[str, str]) -> None:
    assert resolve(url=None, token=None, name=None, environ=environ) == Profile("http://dev.example", "cq_dev")
    environ |= {"CRONOQ_URL": "http://env.example", "CRONOQ_TOKEN": "cq_env"}
    assert resolve(url=None, token=None, name=None, environ=environ) == Profile("http://env.example", "cq_env")
    flagged = resolve(url="http://flag.example", token=None, name=None, environ=environ)
    assert flagged == Profile("http://flag.example", "cq_env")


def test_a_profile_names_its_token_or_where_it_is(environ: dict[str, str]) -> None:
    environ["PROD_TOKEN"] = "cq_prod"
    assert resolve(url=None, token=None, name="prod", environ=environ).token == "cq_prod"
    assert resolve(url=None, token=None, name="file", environ=environ).token == "cq_file"
    del environ["PROD_TOKEN"]
    with pytest.raises(SchedulerError, match="PROD_TOKEN, which is not set"):
        resolve(url=None, token=None, name="prod", environ=environ)


def test_what_is_missing_is_said_with_an_example(environ: dict[str, str], tmp_path: Path) -> None:
    with pytest.raises(SchedulerError, match=r"no profile 'nope'.*dev, file, prod"):
        resolve(url=None, token=None, name="nope", environ=environ)
    with pytest.raises(SchedulerError, match=r"\[profiles\.prod\]"):
        resolve(url=None, token=None, name=None, environ={"CRONOQ_CONFIG": str(tmp_path / "none.toml")})
    (tmp_path / "broken.toml").write_text("[")
    with pytest.raises(SchedulerError, match="cannot be read"):
        resolve(url=None, token=None, name=None, environ={"CRONOQ_CONFIG": str(tmp_path / "broken.toml")})


def test_without_anything_it_is_the_server_that_was_set_up_here(environ: dict[str, str], tmp_path: Path) -> None:
    (tmp_path / ".cronoq").mkdir()
    (tmp_path / ".cronoq" / "credentials.json").write_text(json.dumps({"url": "http://here/", "token": "cq_here"}))
    found = resolve(url=None, token=None, name=None, environ={"CRONOQ_CONFIG": str(tmp_path / "none.toml")})
    assert found == Profile("http://here/", "cq_here")
