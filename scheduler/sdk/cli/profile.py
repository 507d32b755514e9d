"""Decides which server a command speaks with.

What flags say, else the environment, else a profile, else the server that was set up in this directory. It reads files
and never writes any; a token is never shown.
"""

from __future__ import annotations

import json
import os
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from scheduler.sdk.errors import SchedulerError

EXAMPLE: Final = '[profiles.prod]\nurl = "https://cronoq.example"\ntoken_env = "CRONOQ_PROD_TOKEN"'


@dataclass(frozen=True, slots=True)
class Profile:
    """A server and a token for it."""

    url: str
    token: str


def config_path(environ: Mapping[str, str]) -> Path:
    """Where profiles are: `CRONOQ_CONFIG`, or `cronoq/config.toml` among the user's configuration."""
    given = environ.get("CRONOQ_CONFIG")
    if given:
        return Path(given).expanduser()
    home = environ.get("XDG_CONFIG_HOME")
    return (Path(home) if home else Path.home() / ".config") / "cronoq" / "config.toml"


def resolve(*, url: str | None, token: str | None, name: str | None, environ: Mapping[str, str]) -> Profile:
    """The server to speak with. Raises SchedulerError with what to set."""
    url = url or environ.get("CRONOQ_URL")
    token = token or environ.get("CRONOQ_TOKEN")
    if url and token:
        return Profile(url, token)
    wanted = name or environ.get("CRONOQ_PROFILE")
    found = _profile(wanted, environ) or ({} if wanted else _of_this_directory(environ))
    url, token = url or found.get("url"), token or found.get("token")
    if url and token:
        return Profile(url, token)
    missing = "url" if not url else "token"
    raise SchedulerError(
        f"No {missing} of a server is known. Use --url and --token, CRONOQ_URL and CRONOQ_TOKEN, or a profile in "
        f"{config_path(environ)}:\n\n{EXAMPLE}"
    )


def _profile(wanted: str | None, environ: Mapping[str, str]) -> dict[str, str]:
    path = config_path(environ)
    try:
        config = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        if wanted:
            raise SchedulerError(f"There is no profile {wanted!r}: {path} does not exist.") from None
        return {}
    except (OSError, ValueError) as error:
        raise SchedulerError(f"{path} cannot be read: {error}.") from error
    profiles: dict[str, dict[str, Any]] = config.get("profiles", {})
    name = wanted or config.get("default")
    if name is None:
        return {}
    if name not in profiles:
        raise SchedulerError(f"There is no profile {name!r} in {path}; there are: {', '.join(sorted(profiles))}.")
    return _with_token(profiles[name], name, environ)


def _with_token(profile: Mapping[str, Any], name: str, environ: Mapping[str, str]) -> dict[str, str]:
    """The profile with its token, wherever it says that it is."""
    found = {key: str(value) for key, value in profile.items()}
    if "token_env" in found:
        found["token"] = environ.get(found["token_env"], "")
        if not found["token"]:
            raise SchedulerError(f"The profile {name!r} takes its token from {found['token_env']}, which is not set.")
    elif "token_file" in found:
        try:
            found["token"] = Path(found["token_file"]).expanduser().read_text(encoding="utf-8").strip()
        except OSError as error:
            raise SchedulerError(f"The token of the profile {name!r} cannot be read: {error}.") from error
    return found


def _of_this_directory(environ: Mapping[str, str]) -> dict[str, str]:
    """The server that `make run` set up here, if it did."""
    path = Path(environ.get("CRONOQ_DATA_DIR") or ".cronoq") / "credentials.json"
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return {"url": found.get("url", ""), "token": found.get("token", "")}


def of_process(url: str | None, token: str | None, name: str | None) -> Profile:
    """The server that this process is told of."""
    return resolve(url=url, token=token, name=name, environ=os.environ)
