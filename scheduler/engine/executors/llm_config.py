"""The `llm` executor's part of a pool's configuration.

Decides which keys exist and rejects the rest with a sentence. It must never hold a credential: a pool names where the
key is (an environment variable or a file), and the key is read from there when the executor starts.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from scheduler.policy.money import parse_usd

TIMEOUT_MAX_S: Final = 3600.0
KEY_BYTES_MAX: Final = 4096

_ENVIRONMENT_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,63}")
_LOOKS_LIKE_A_KEY = re.compile(r"(sk|pk|rk|gsk|xai|csk|AIza)[-_]?[A-Za-z0-9_\-]{16,}")


class LlmConfigError(ValueError):
    """A pool's configuration that cannot work; the message is a sentence for the operator."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LlmConfig:
    """Where the model is and how to call it.

    base_url           of the OpenAI-compatible API; `/v1` is added when it names no path
    api_key_env        name of the environment variable that holds the key
    api_key_file       path of the file that holds the key (one of the two, or neither)
    model              used when a payload names none
    timeout_s          longest time for one call, from connecting to the last byte; a task's own may be shorter
    quota_resource     the resource that stands for the provider's quota: all its calls wait after a Retry-After
    tokens_resource    the resource that counts tokens: its amount is corrected to what was used
    response_bytes_max the largest answer that is read
    price_provider     whose prices apply, by its name in the catalogue; else the address or the model's name tells
    max_output_tokens  what a call may write that names no limit, where a budget needs one (4,096)
    ceiling_input_usd_per_mtok, ceiling_output_usd_per_mtok
                       the price, in dollars as text, of a model that has no other; without it such work is refused
    proxy              URL of an HTTP proxy; the environment's proxies are not used
    """

    base_url: str
    api_key_env: str | None = None
    api_key_file: str | None = None
    model: str | None = None
    timeout_s: float = 120.0
    quota_resource: str | None = None
    tokens_resource: str | None = None
    response_bytes_max: int = 10 * 2**20
    proxy: str | None = None
    price_provider: str | None = None
    max_output_tokens: int | None = None
    ceiling_input_usd_per_mtok: str | None = None
    ceiling_output_usd_per_mtok: str | None = None

    @classmethod
    def parse(cls, config: Mapping[str, object]) -> LlmConfig:
        """Read a pool's JSON configuration. Raises LlmConfigError, with a sentence that names the key."""
        known = {each.name for each in fields(cls)}
        unknown = sorted(set(config) - known)
        if unknown:
            raise LlmConfigError(f"Unknown key {unknown[0]!r}: an llm pool knows {', '.join(sorted(known))}.")
        if _text(config, "api_key_env") is not None and _text(config, "api_key_file") is not None:
            raise LlmConfigError("Give 'api_key_env' or 'api_key_file', not both.")
        ceiling_input, ceiling_output = (_usd(config, f"ceiling_{way}_usd_per_mtok") for way in ("input", "output"))
        if (ceiling_input is None) != (ceiling_output is None):
            raise LlmConfigError("Give both ceiling_input_usd_per_mtok and ceiling_output_usd_per_mtok, or neither.")
        return cls(
            base_url=_base_url(config),
            api_key_env=_environment_name(config),
            api_key_file=_text(config, "api_key_file"),
            model=_text(config, "model"),
            timeout_s=_number(config, "timeout_s", 120.0, most=TIMEOUT_MAX_S),
            quota_resource=_text(config, "quota_resource"),
            tokens_resource=_text(config, "tokens_resource"),
            response_bytes_max=int(_number(config, "response_bytes_max", 10 * 2**20, most=2**30)),
            proxy=_text(config, "proxy"),
            price_provider=_text(config, "price_provider"),
            max_output_tokens=_tokens(config, "max_output_tokens"),
            ceiling_input_usd_per_mtok=ceiling_input,
            ceiling_output_usd_per_mtok=ceiling_output,
        )

    def read_api_key(self) -> str | None:
        """The key from where the configuration says it is; None when it names no place. Raises LlmConfigError."""
        if self.api_key_env is not None:
            key = os.environ.get(self.api_key_env, "").strip()
            if not key:
                raise LlmConfigError(
                    f"The environment variable {self.api_key_env} is not set, but api_key_env names it."
                )
            return key
        if self.api_key_file is None:
            return None
        try:
            key = Path(self.api_key_file).read_text(encoding="utf-8")[:KEY_BYTES_MAX].strip()
        except (OSError, UnicodeDecodeError) as error:
            raise LlmConfigError("The file that api_key_file names cannot be read.") from error
        if not key:
            raise LlmConfigError("The file that api_key_file names is empty.")
        return key


def _text(config: Mapping[str, object], name: str) -> str | None:
    value = config.get(name)
    if value is None or (isinstance(value, str) and value.strip()):
        return value.strip() if isinstance(value, str) else None
    raise LlmConfigError(f"{name!r} must be a text that is not empty.")


def _number(config: Mapping[str, object], name: str, default: float, *, most: float) -> float:
    value = config.get(name, default)
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value <= most:
        raise LlmConfigError(f"{name!r} must be a number above 0 and at most {most:g}.")
    return value


def _tokens(config: Mapping[str, object], name: str) -> int | None:
    return None if config.get(name) is None else int(_number(config, name, 1, most=10**7))


def _usd(config: Mapping[str, object], name: str) -> str | None:
    amount = _text(config, name)
    if amount is not None:
        try:
            parse_usd(amount)
        except ValueError as error:
            raise LlmConfigError(f"{name!r}: {error}") from error
    return amount


def _base_url(config: Mapping[str, object]) -> str:
    url = _text(config, "base_url")
    if url is None:
        raise LlmConfigError("'base_url' is missing: give the address of an OpenAI-compatible API.")
    try:
        parts = urlsplit(url)
        usable = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError as error:
        raise LlmConfigError("'base_url' is not an address.") from error
    if not usable:
        raise LlmConfigError("'base_url' must be an http or https address with a host.")
    if parts.username is not None or parts.query or parts.fragment:
        raise LlmConfigError("'base_url' must hold no user name, password, query or fragment.")
    return url.rstrip("/") + ("/v1" if parts.path in ("", "/") else "")


def _environment_name(config: Mapping[str, object]) -> str | None:
    name = _text(config, "api_key_env")
    if name is not None and (not _ENVIRONMENT_NAME.fullmatch(name) or _LOOKS_LIKE_A_KEY.match(name)):
        # The value is not repeated: it may be the key itself.
        raise LlmConfigError("'api_key_env' must be the name of an environment variable, never the key itself.")
    return name
