"""The `http` executor's part of a pool's configuration.

Decides which keys exist and rejects the rest with a sentence. It must never hold the key that requests are signed with:
a pool names where that is (an environment variable or a file), and it is read from there when the executor starts.
"""

from __future__ import annotations

import base64
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Final

from scheduler import conf
from scheduler.policy.destinations import fault_in_url

TIMEOUT_DEFAULT_S: Final = 60.0
TIMEOUT_MAX_S: Final = 3600.0
RESPONSE_BYTES_DEFAULT: Final = 2**20
RESPONSE_BYTES_MAX: Final = 2**24
SECRET_PREFIX: Final = "whsec_"  # noqa: S105 - the specification's mark, no secret
SECRET_BYTES_MIN: Final = 16
SECRET_BYTES_MAX: Final = 4096

_ENVIRONMENT_NAME = re.compile(r"[A-Z_][A-Z0-9_]{0,63}")


class HttpConfigError(ValueError):
    """A pool's configuration that cannot work; the message is a sentence for the operator."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpConfig:
    """Where attempts are posted to.

    url                where: http or https, a public address unless this installation allows its network
    secret_env         name of the environment variable that holds the key that requests are signed with
    secret_file        path of the file that holds it (one of the two)
    timeout_s          longest time for one request, from connecting to the last byte; a task's own may be shorter
    response_bytes_max the largest answer that is read
    """

    url: str
    secret_env: str | None = None
    secret_file: str | None = None
    timeout_s: float = TIMEOUT_DEFAULT_S
    response_bytes_max: int = RESPONSE_BYTES_DEFAULT

    @classmethod
    def parse(cls, config: Mapping[str, object]) -> HttpConfig:
        """Read a pool's JSON configuration. Raises HttpConfigError, with a sentence that names the key."""
        known = {each.name for each in fields(cls)}
        unknown = sorted(set(config) - known)
        if unknown:
            raise HttpConfigError(f"Unknown key {unknown[0]!r}: an http pool knows {', '.join(sorted(known))}.")
        secret_env, secret_file = _text(config, "secret_env"), _text(config, "secret_file")
        if (secret_env is None) == (secret_file is None):
            raise HttpConfigError("Say where the key is that requests are signed with: 'secret_env' or 'secret_file'.")
        if secret_env is not None and not _ENVIRONMENT_NAME.fullmatch(secret_env):
            # The value is not repeated: it may be the key itself.
            raise HttpConfigError("'secret_env' must be the name of an environment variable, never the key itself.")
        return cls(
            url=_url(config),
            secret_env=secret_env,
            secret_file=secret_file,
            timeout_s=_number(config, "timeout_s", TIMEOUT_DEFAULT_S, most=TIMEOUT_MAX_S),
            response_bytes_max=int(
                _number(config, "response_bytes_max", RESPONSE_BYTES_DEFAULT, most=RESPONSE_BYTES_MAX)
            ),
        )

    def read_secret(self) -> bytes:
        """The key, from where the configuration says it is. Raises HttpConfigError."""
        if self.secret_env is not None:
            where = f"the environment variable {self.secret_env}"
            secret = os.environ.get(self.secret_env, "").strip()
        else:
            where = "the file that secret_file names"
            try:
                secret = Path(self.secret_file or "").read_text(encoding="utf-8")[:SECRET_BYTES_MAX].strip()
            except (OSError, UnicodeDecodeError) as error:
                raise HttpConfigError("The file that secret_file names cannot be read.") from error
        if len(secret) < SECRET_BYTES_MIN:
            raise HttpConfigError(f"There must be a key of at least {SECRET_BYTES_MIN} characters in {where}.")
        return _key_bytes(secret)


def _key_bytes(secret: str) -> bytes:
    """The key itself, or what it stands for when it is written as the Standard Webhooks specification does."""
    if not secret.startswith(SECRET_PREFIX):
        return secret.encode()
    try:
        return base64.b64decode(secret.removeprefix(SECRET_PREFIX), validate=True)
    except ValueError as error:
        raise HttpConfigError("A key that begins with whsec_ goes on in base64.") from error


def _text(config: Mapping[str, object], name: str) -> str | None:
    value = config.get(name)
    if value is None:
        return None
    if isinstance(value, str) and value.strip():
        return value.strip()
    raise HttpConfigError(f"{name!r} must be a text that is not empty.")


def _number(config: Mapping[str, object], name: str, default: float, *, most: float) -> float:
    value = config.get(name, default)
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value <= most:
        raise HttpConfigError(f"{name!r} must be a number above 0 and at most {most:g}.")
    return value


def _url(config: Mapping[str, object]) -> str:
    url = _text(config, "url")
    if url is None:
        raise HttpConfigError("'url' is missing: say where attempts are posted to.")
    fault = fault_in_url(url, conf.current().outgoing_networks)
    if fault is not None:
        raise HttpConfigError(f"'url': {fault}")
    return url
