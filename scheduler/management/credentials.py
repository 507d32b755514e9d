"""The file that tells a newcomer how to get in, and where the local provider simulator listens.

Decides the file's place, mode and fields. Secrets are only in this file and, hashed, in the database; it must never
print one.
"""

import json
import os
from dataclasses import asdict, dataclass
from pathlib import Path

from scheduler import conf

FILE_MODE = 0o600


@dataclass(frozen=True, slots=True, kw_only=True)
class Credentials:
    """Ways in: ``token`` acts for the demo tenant, ``admin_token`` for the whole; the user is an administrator."""

    url: str
    token: str
    admin_token: str
    username: str
    password: str
    provider_url: str


def path(config: conf.Config) -> Path:
    """Return where the credentials are."""
    return config.data_dir / "credentials.json"


def url(config: conf.Config) -> str:
    """Return where the product is served on this machine."""
    return f"http://127.0.0.1:{config.port}/"


def provider_port(config: conf.Config) -> int:
    """Return the simulator's port: the next one, so that the address stored in pools stays right between runs."""
    return config.port + 1


def provider_url(config: conf.Config) -> str:
    """Return the simulator's base URL, as an OpenAI client wants it."""
    return f"http://127.0.0.1:{provider_port(config)}/v1"


def read(config: conf.Config) -> Credentials | None:
    """Return the credentials of an earlier run, or None when there are none to be trusted."""
    try:
        return Credentials(**json.loads(path(config).read_text(encoding="utf-8")))
    except (FileNotFoundError, ValueError, TypeError):
        return None


def write(config: conf.Config, credentials: Credentials) -> Path:
    """Replace the file at once and readable by its owner only; returns where it is."""
    target = path(config)
    draft = target.with_name(f".{target.name}.{os.getpid()}")
    draft.touch(mode=FILE_MODE)
    draft.chmod(FILE_MODE)
    draft.write_text(json.dumps(asdict(credentials), indent=2) + "\n", encoding="utf-8")
    draft.replace(target)
    return target
