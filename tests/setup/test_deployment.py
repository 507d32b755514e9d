"""The image and the compose file: what they name exists, and every command they name works on a real PostgreSQL."""

import json
import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.support import database
from tests.support.processes import ROOT, Running, environment, free_port, running
from tests.support.waiting import wait_until

COMPOSE: dict[str, Any] = yaml.safe_load((ROOT / "docker-compose.yml").read_text(encoding="utf-8"))
DOCKERFILE = re.sub(r"\\\n\s*", "", (ROOT / "Dockerfile").read_text(encoding="utf-8"))
OURS = ("migrate", "web", "engine")
OPERATOR_SETS = {
    "POSTGRES_PASSWORD": "letters4and5digits",
    "CRONOQ_ALLOWED_HOSTS": "cq.example",
    "CRONOQ_ORIGINS": "https://cq.example",
}


def instructions(word: str) -> list[str]:
    """Return the arguments of every use of one Dockerfile instruction, in order."""
    return re.findall(rf"^{word} (.+)$", DOCKERFILE, re.MULTILINE)


def expand(text: str) -> str:
    """Fill in ``${NAME:?sentence}`` as compose does; any other form would be an insecure default."""
    filled = re.sub(r"\$\{(\w+):\?[^}]+\}", lambda match: OPERATOR_SETS[match.group(1)], text)
    assert "$" not in filled, f"{text} must insist on its variables"
    return filled


def test_the_image_runs_as_nobody_in_particular() -> None:
    assert instructions("USER")[-1] == "10001"
    assert DOCKERFILE.rindex("USER 10001") < DOCKERFILE.index("\nCMD")


def test_the_image_copies_what_exists_and_what_the_ignore_file_lets_through() -> None:
    ignored = (ROOT / ".dockerignore").read_text(encoding="utf-8").splitlines()
    sources = [source.split()[0] for source in instructions("COPY") if not source.startswith("--from")]
    assert sources
    assert [source for source in sources if not (ROOT / source).exists()] == []
    assert [source for source in sources if not {f"!{source}", f"!{source}/"} & set(ignored)] == []


def test_the_image_installs_the_lock_with_its_hashes() -> None:
    assert any("--require-hashes --no-deps -r requirements.lock" in line for line in instructions("RUN"))


def test_the_image_starts_and_checks_itself_as_compose_does() -> None:
    web = COMPOSE["services"]["web"]
    assert json.loads(instructions("CMD")[-1]) == web["command"]
    check = instructions("HEALTHCHECK")[0].partition(" CMD ")[2]
    assert ["CMD", *json.loads(check)] == web["healthcheck"]["test"]


def test_compose_is_one_migration_two_webs_two_engines_and_a_database() -> None:
    services = COMPOSE["services"]
    assert set(services) == {"postgres", *OURS}
    assert [services[name]["deploy"]["replicas"] for name in ("web", "engine")] == [2, 2]
    assert services["migrate"]["restart"] == "no"
    assert services["migrate"]["depends_on"] == {"postgres": {"condition": "service_healthy"}}
    for name in ("web", "engine"):
        assert services[name]["depends_on"] == {"migrate": {"condition": "service_completed_successfully"}}
    assert [name for name in ("postgres", "web", "engine") if "test" not in services[name]["healthcheck"]] == []


def test_compose_insists_on_every_secret_and_writes_none_down() -> None:
    for name in OURS:
        for value in COMPOSE["services"][name]["environment"].values():
            expand(value)
    assert COMPOSE["secrets"]["cronoq_secret_key"] == {"environment": "CRONOQ_SECRET_KEY"}
    for name in OURS:
        assert COMPOSE["services"][name]["secrets"] == ["cronoq_secret_key"]


def test_an_engine_gets_more_time_to_stop_than_it_takes() -> None:
    assert int(COMPOSE["services"]["engine"]["stop_grace_period"].removesuffix("s")) > 5


@pytest.fixture
def environ(tmp_path: Path, django_db_setup: str) -> Iterator[dict[str, str]]:  # the server must be up
    """What compose gives its containers, with an empty database of ours in the place of its own."""
    secret = tmp_path / "secret"
    secret.write_text("a secret of at least thirty-two characters")
    given = {name: expand(value) for name, value in COMPOSE["services"]["web"]["environment"].items()}
    assert given["CRONOQ_SECRET_KEY_FILE"] == "/run/secrets/cronoq_secret_key"
    with database.empty_database() as url:
        data_dir = str(tmp_path / "data")
        yield environment(
            **{**given, "DATABASE_URL": url, "CRONOQ_SECRET_KEY_FILE": str(secret), "CRONOQ_DATA_DIR": data_dir}
        )


def command_of(service: str, port: int, tmp_path: Path) -> list[str]:
    """Return a service's command with a free port and our own temporary directory in the place of the container's."""
    words = shlex.join(COMPOSE["services"][service]["command"])
    return shlex.split(words.replace("8000", str(port)).replace("/tmp/", f"{tmp_path}/"))  # the container's, not ours


def check_of(service: str, tmp_path: Path) -> list[str]:
    """Return a service's health check likewise."""
    kind, *words = COMPOSE["services"][service]["healthcheck"]["test"]
    assert kind == "CMD"
    return [word.replace("/tmp/", f"{tmp_path}/") for word in words]


def check(words: list[str], program: Running, output: Path, environ: dict[str, str]) -> bool:
    """Whether a health check passes; a program that ended fails the test with what it said."""
    assert program.process.poll() is None, program.text()
    with running(words, output, environ=environ) as probe:
        return probe.wait() == 0


@pytest.mark.acceptance
def test_every_command_does_its_work_on_a_real_postgresql(tmp_path: Path, environ: dict[str, str]) -> None:
    port = free_port()
    environ["PORT"] = str(port)
    with running(command_of("migrate", port, tmp_path), tmp_path / "migrate", environ=environ) as migrate:
        assert migrate.wait(60) == 0, migrate.text()
    for service in ("web", "engine"):
        words = check_of(service, tmp_path)
        with running(command_of(service, port, tmp_path), tmp_path / service, environ=environ) as program:
            said = tmp_path / f"{service}-probe"
            wait_until(lambda: check(words, program, said, environ), what=f"{service} to be well")  # noqa: B023  # called within this turn
            program.process.terminate()
            assert program.wait(20) == 0, program.text()
        with running(words, tmp_path / f"{service}-after", environ=environ) as probe:
            assert probe.wait() == 1
