"""What the settings make of the configuration."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from django.test import Client

from tests.support.processes import ROOT, environment

EXTERNAL = {
    "DATABASE_URL": "postgresql://ann:p%40ss@db.example:6432/cronoq?sslmode=verify-full",
    "CRONOQ_SECRET_KEY": "k" * 50,
    "CRONOQ_ALLOWED_HOSTS": "cq.example",
    "CRONOQ_ORIGINS": "https://cq.example",
}
PRINT = (
    "import json; from cronoq_app import settings as s; json.dump({name: getattr(s, name) for name in "
    "('ALLOWED_HOSTS', 'CSRF_COOKIE_SECURE', 'CSRF_TRUSTED_ORIGINS', 'DATABASES', 'DEBUG', 'SESSION_COOKIE_NAME',"
    " 'SESSION_COOKIE_SECURE')}, __import__('sys').stdout, default=str)"
)


def settings_with(tmp_path: Path, **variables: str) -> dict[str, Any]:
    environ = environment(CRONOQ_DATA_DIR=str(tmp_path), **variables)
    done = subprocess.run(
        [sys.executable, "-c", PRINT], cwd=ROOT, env=environ, check=False, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    settings: dict[str, Any] = json.loads(done.stdout)
    return settings


def test_an_external_database_is_passed_on_whole(tmp_path: Path) -> None:
    database = settings_with(tmp_path, **EXTERNAL)["DATABASES"]["default"]
    assert [database[name] for name in ("USER", "PASSWORD", "HOST", "PORT", "NAME")] == [
        "ann",
        "p@ss",
        "db.example",
        "6432",
        "cronoq",
    ]
    assert database["OPTIONS"]["sslmode"] == "verify-full"
    assert database["CONN_MAX_AGE"] == 0


def test_cookies_are_secure_where_every_origin_is(tmp_path: Path) -> None:
    behind_tls = settings_with(tmp_path, **EXTERNAL)
    assert (behind_tls["SESSION_COOKIE_SECURE"], behind_tls["CSRF_COOKIE_SECURE"]) == (True, True)
    at_home = settings_with(tmp_path)
    assert (at_home["SESSION_COOKIE_SECURE"], at_home["CSRF_COOKIE_SECURE"]) == (False, False)


def test_nothing_debugs_unless_asked_to(tmp_path: Path) -> None:
    assert settings_with(tmp_path)["DEBUG"] is False
    assert settings_with(tmp_path, **EXTERNAL)["DEBUG"] is False


def test_two_instances_on_one_machine_do_not_share_cookies(tmp_path: Path) -> None:
    names = {settings_with(tmp_path, PORT=port)["SESSION_COOKIE_NAME"] for port in ("8000", "8010")}
    assert len(names) == 2


@pytest.mark.django_db
def test_every_page_forbids_what_it_does_not_need(client: Client) -> None:
    response = client.get("/admin/login/")
    policy = dict(part.split(" ", 1) for part in response["Content-Security-Policy"].split("; "))
    assert policy == {
        "default-src": "'none'",
        "script-src": "'self'",
        "style-src": "'self'",
        "img-src": "'self' data:",
        "connect-src": "'self'",
        "form-action": "'self'",
        "base-uri": "'none'",
        "frame-ancestors": "'none'",
    }
    assert response["X-Content-Type-Options"] == "nosniff"
    assert response["Referrer-Policy"] == "same-origin"
