"""Configuration: what the environment may say, and the sentence it gets back otherwise."""

import re
import stat
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from scheduler import conf

EXTERNAL = {
    "DATABASE_URL": "postgresql://someone@db.example/cronoq",
    "CRONOQ_SECRET_KEY": "k" * 50,
    "CRONOQ_ALLOWED_HOSTS": "cq.example",
    "CRONOQ_ORIGINS": "https://cq.example",
}


def load(tmp_path: Path, **environ: str) -> conf.Config:
    return conf.load({"CRONOQ_DATA_DIR": str(tmp_path), **environ})


def test_the_embedded_default_needs_no_variable_and_answers_on_loopback_only(tmp_path: Path) -> None:
    config = load(tmp_path)
    assert config.embedded
    assert config.allowed_hosts == ("127.0.0.1", "localhost", "[::1]")
    assert config.origins == ("http://127.0.0.1:8000", "http://localhost:8000", "http://[::1]:8000")
    assert not config.tls_only
    assert not config.debug
    assert config.demo


def test_the_documented_defaults(tmp_path: Path) -> None:
    config = load(tmp_path)
    assert (config.payload_bytes_max, config.batch_tasks_max, config.batch_bytes_max) == (262_144, 1_000, 5_242_880)
    assert (config.json_depth_max, config.plan_starts_max, config.db_pool_max) == (64, 500, 20)
    assert (config.lease_ttl_default_s, config.poll_interval_s, config.leader_ttl_s) == (30.0, 0.25, 3.0)
    assert (config.snapshot_interval_s, config.shutdown_grace_s, config.wait_timeout_max_s) == (1.0, 5.0, 60.0)


@pytest.mark.parametrize(
    ("environ", "word"),
    [
        ({}, "demo"),
        ({"DEMO": "0"}, "local"),
        (EXTERNAL, "production"),
        ({**EXTERNAL, "CRONOQ_ENVIRONMENT": " staging "}, "staging"),
    ],
)
def test_where_it_is(tmp_path: Path, environ: dict[str, str], word: str) -> None:
    assert load(tmp_path, **environ).environment == word


def test_an_environment_is_one_short_word(tmp_path: Path) -> None:
    with pytest.raises(conf.ConfigurationError, match="CRONOQ_ENVIRONMENT"):
        load(tmp_path, CRONOQ_ENVIRONMENT="x" * 21)


def test_origins_follow_the_port(tmp_path: Path) -> None:
    assert load(tmp_path, PORT="8123").origins[0] == "http://127.0.0.1:8123"


def test_the_secret_key_is_made_once_and_kept_to_its_owner(tmp_path: Path) -> None:
    first, second = load(tmp_path), load(tmp_path)
    assert first.secret_key == second.secret_key
    assert len(first.secret_key) >= 50
    assert stat.S_IMODE((tmp_path / "secret_key").stat().st_mode) == 0o600
    assert [path.name for path in tmp_path.iterdir()] == ["secret_key"]


def test_two_installations_have_different_keys(tmp_path: Path) -> None:
    assert load(tmp_path / "a").secret_key != load(tmp_path / "b").secret_key


def test_an_external_database_takes_everything_from_the_environment(tmp_path: Path) -> None:
    config = load(tmp_path, **EXTERNAL)
    assert not config.embedded
    assert config.tls_only
    assert config.direct_database_url == config.database_url
    assert not (tmp_path / "secret_key").exists()


def test_the_secret_key_may_come_from_a_file(tmp_path: Path) -> None:
    secret = tmp_path / "mounted"
    secret.write_text("s" * 40 + "\n")
    without_key = {name: value for name, value in EXTERNAL.items() if name != "CRONOQ_SECRET_KEY"}
    assert load(tmp_path, **without_key, CRONOQ_SECRET_KEY_FILE=str(secret)).secret_key == "s" * 40


@pytest.mark.parametrize("missing", ["CRONOQ_SECRET_KEY", "CRONOQ_ALLOWED_HOSTS", "CRONOQ_ORIGINS"])
def test_beside_an_external_database_nothing_has_an_insecure_default(tmp_path: Path, missing: str) -> None:
    environ = {name: value for name, value in EXTERNAL.items() if name != missing}
    with pytest.raises(conf.ConfigurationError, match=missing):
        load(tmp_path, **environ)


@pytest.mark.parametrize(
    ("environ", "sentence"),
    [
        ({"PORT": "http"}, "PORT must be a whole number, not 'http'."),
        ({"PORT": "0"}, "PORT must be from 1 to 65534, not 0."),
        ({"CRONOQ_DB_POOL_MAX": "1.5"}, "CRONOQ_DB_POOL_MAX must be a whole number, not '1.5'."),
        ({"CRONOQ_POLL_INTERVAL_S": "soon"}, "CRONOQ_POLL_INTERVAL_S must be a number, not 'soon'."),
        ({"CRONOQ_POLL_INTERVAL_S": "nan"}, "CRONOQ_POLL_INTERVAL_S must be from 0.01 to 10.0, not nan."),
        ({"CRONOQ_LEASE_TTL_DEFAULT_S": "inf"}, "CRONOQ_LEASE_TTL_DEFAULT_S must be from 1.0 to 3600.0, not inf."),
        ({"CRONOQ_JSON_DEPTH_MAX": "-1"}, "CRONOQ_JSON_DEPTH_MAX must be from 1 to 200, not -1."),
        ({"DEMO": "no"}, "DEMO must be 0 or 1, not 'no'."),
        ({"CRONOQ_DEBUG": "true"}, "CRONOQ_DEBUG must be 0 or 1, not 'true'."),
        ({"CRONOQ_ALLOWED_HOSTS": "*"}, "CRONOQ_ALLOWED_HOSTS must name hosts"),
        ({"CRONOQ_ORIGINS": "cq.example"}, "CRONOQ_ORIGINS holds 'cq.example'"),
        ({"CRONOQ_ORIGINS": "https://cq.example/"}, "CRONOQ_ORIGINS holds 'https://cq.example/'"),
        ({"CRONOQ_ORIGINS": "*"}, "CRONOQ_ORIGINS holds '*'"),
        ({"CRONOQ_SECRET_KEY": "short"}, "at least 32 characters"),
        ({"CRONOQ_SECRET_KEY": "k" * 50, "CRONOQ_SECRET_KEY_FILE": "x"}, "not both"),
        ({"CRONOQ_SECRET_KEY_FILE": "/nowhere/key"}, "CRONOQ_SECRET_KEY_FILE /nowhere/key cannot be read"),
        ({"CRONOQ_DATA_DIR": "/dev/null/data"}, "The data directory /dev/null/data cannot be used"),
        (
            {"CRONOQ_BATCH_BYTES_MAX": "200000"},
            "CRONOQ_PAYLOAD_BYTES_MAX (262144) must not exceed CRONOQ_BATCH_BYTES_MAX (200000)",
        ),
        (
            {"CRONOQ_LEADER_TTL_S": "0.5", "CRONOQ_POLL_INTERVAL_S": "1"},
            "CRONOQ_POLL_INTERVAL_S (1.0) must not exceed CRONOQ_LEADER_TTL_S (0.5)",
        ),
    ],
)
def test_what_makes_no_sense_is_refused_with_a_sentence(
    tmp_path: Path, environ: Mapping[str, str], sentence: str
) -> None:
    with pytest.raises(conf.ConfigurationError, match=re.escape(sentence)):
        load(tmp_path, **environ)


def test_empty_variables_count_as_absent(tmp_path: Path) -> None:
    assert load(tmp_path, PORT="", DATABASE_URL="", DEMO="", CRONOQ_ORIGINS="") == load(tmp_path)


def test_a_test_can_change_the_configuration(configure: Callable[..., conf.Config]) -> None:
    configure(payload_bytes_max=2_000)
    assert conf.current().payload_bytes_max == 2_000
