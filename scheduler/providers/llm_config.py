"""The configuration of a pool that calls models.

Decides which keys exist, rejects the rest with a sentence, and says for each model where it is and how it is called. It
must never hold a credential: a pool names where the key is (an environment variable or a file).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from enum import StrEnum
from typing import Final
from urllib.parse import urlsplit

from scheduler.providers.token_weights import TokenLimit, parse_token_limits

TIMEOUT_MAX_S: Final = 3600.0
OUTPUT_TOKENS_MAX: Final = 10_000_000
MODELS_MAX: Final = 100
MESSAGES_OUTPUT_DEFAULT_TOKENS: Final = 4096
"""The messages API insists on a limit of the output: for payloads and pools that name none."""
ANTHROPIC_VERSION: Final = "2023-06-01"

_ENVIRONMENT_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,63}")
_USD = re.compile(r"[0-9]{1,9}(?:\.[0-9]{1,9})?")
_LOOKS_LIKE_A_KEY = re.compile(r"(sk|pk|rk|gsk|xai|csk|AIza)[-_]?[A-Za-z0-9_\-]{16,}")


class LlmConfigError(ValueError):
    """A pool's configuration that cannot work; the message is a sentence for the operator."""


class ApiName(StrEnum):
    """The APIs that are spoken."""

    CHAT = "chat"
    RESPONSES = "responses"
    EMBEDDINGS = "embeddings"
    MESSAGES = "messages"


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoint:
    """Where models are: the address, where its key is, and the resource that stands for the account's quota."""

    base_url: str
    api_key_env: str | None = None
    api_key_file: str | None = None
    quota_resource: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelTerms:
    """How one model is called. `api` None: the payload's shape tells. `tokens` are limits by resource."""

    endpoint: Endpoint
    api: ApiName | None = None
    max_output_tokens: int | None = None
    tokens: Mapping[str, TokenLimit] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class LlmConfig:
    """Where the models are and how to call them.

    base_url           of the provider's API; `/v1` is added when it names no path
    api_key_env        name of the environment variable that holds the key
    api_key_file       path of the file that holds the key (one of the two, or neither)
    model              used when a payload names none
    api                chat, responses, embeddings or messages; without it the payload's shape tells
    max_output_tokens  no call may write more, and one that names no limit gets this one (also where a budget needs one)
    degraded_max_output_tokens  the same for attempts that are to answer only
    timeout_s          longest time for one call, from connecting to the last byte; a task's own may be shorter
    retry_after_send   whether a call that was sent and whose end was not seen may be made again (default true): the
                       provider may have made it, and bills it then
    quota_resource     the resource that stands for the provider's quota: all its calls wait after a Retry-After
    tokens             limits on tokens by resource, with `weights` and `reserve`: estimated before, corrected after
    price_provider     whose prices apply, by its name in the catalogue; else the address or the model's name tells
    ceiling_input_usd_per_mtok, ceiling_output_usd_per_mtok
                       the price, in dollars as text, of a model that has no other; without it such work is refused
    models             for single models: api, max_output_tokens, tokens, base_url, api_key_env, api_key_file,
                       quota_resource, price_provider
    anthropic_version  of the messages API
    response_bytes_max the largest answer that is read
    proxy              URL of an HTTP proxy; the environment's proxies are not used
    """

    base_url: str
    api_key_env: str | None = None
    api_key_file: str | None = None
    model: str | None = None
    api: ApiName | None = None
    max_output_tokens: int | None = None
    degraded_max_output_tokens: int | None = None
    timeout_s: float = 120.0
    retry_after_send: bool = True
    quota_resource: str | None = None
    tokens: Mapping[str, TokenLimit] = field(default_factory=dict)
    price_provider: str | None = None
    ceiling_input_usd_per_mtok: str | None = None
    ceiling_output_usd_per_mtok: str | None = None
    models: Mapping[str, ModelTerms] = field(default_factory=dict)
    anthropic_version: str = ANTHROPIC_VERSION
    response_bytes_max: int = 10 * 2**20
    proxy: str | None = None

    @classmethod
    def parse(cls, config: Mapping[str, object]) -> LlmConfig:
        """Read a pool's JSON configuration. Raises LlmConfigError, with a sentence that names the key."""
        known = {each.name for each in fields(cls)}
        unknown = sorted(set(config) - known)
        if unknown:
            raise LlmConfigError(f"Unknown key {unknown[0]!r}: an llm pool knows {', '.join(sorted(known))}.")
        endpoint = _endpoint(config)
        resends = config.get("retry_after_send", True)
        if not isinstance(resends, bool):
            raise LlmConfigError("'retry_after_send' must be true or false.")
        ceiling_input, ceiling_output = (_usd(config, f"ceiling_{way}_usd_per_mtok") for way in ("input", "output"))
        if (ceiling_input is None) != (ceiling_output is None):
            raise LlmConfigError("Give both ceiling_input_usd_per_mtok and ceiling_output_usd_per_mtok, or neither.")
        return cls(
            base_url=endpoint.base_url,
            api_key_env=endpoint.api_key_env,
            api_key_file=endpoint.api_key_file,
            model=_text(config, "model"),
            api=_api(config),
            max_output_tokens=_tokens(config, "max_output_tokens"),
            degraded_max_output_tokens=_tokens(config, "degraded_max_output_tokens"),
            timeout_s=_number(config, "timeout_s", 120.0, most=TIMEOUT_MAX_S),
            retry_after_send=resends,
            quota_resource=endpoint.quota_resource,
            tokens=_token_limits(config),
            price_provider=_text(config, "price_provider"),
            ceiling_input_usd_per_mtok=ceiling_input,
            ceiling_output_usd_per_mtok=ceiling_output,
            models=_models(config),
            anthropic_version=_text(config, "anthropic_version") or ANTHROPIC_VERSION,
            response_bytes_max=int(_number(config, "response_bytes_max", 10 * 2**20, most=2**30)),
            proxy=_text(config, "proxy"),
        )

    @property
    def endpoint(self) -> Endpoint:
        """Where models without an address of their own are."""
        return Endpoint(
            base_url=self.base_url,
            api_key_env=self.api_key_env,
            api_key_file=self.api_key_file,
            quota_resource=self.quota_resource,
        )

    def terms_of(self, model: str) -> ModelTerms:
        """How a model is called: as the pool says, except for what is said of this one."""
        return self.models.get(model) or ModelTerms(
            endpoint=self.endpoint, api=self.api, max_output_tokens=self.max_output_tokens, tokens=self.tokens
        )


def _models(config: Mapping[str, object]) -> dict[str, ModelTerms]:
    given = config.get("models")
    if given is None:
        return {}
    if not isinstance(given, Mapping) or len(given) > MODELS_MAX:
        raise LlmConfigError(f"'models' must be an object of at most {MODELS_MAX} models by name.")
    return {str(name): _model_terms(config, str(name), own) for name, own in given.items()}


_MODEL_KEYS: Final = frozenset({
    "api", "max_output_tokens", "tokens", "base_url", "api_key_env", "api_key_file", "quota_resource", "price_provider",
})  # fmt: skip


def config_of(config: Mapping[str, object], model: str | None) -> dict[str, object]:
    """A pool's configuration as it is for one model. Nothing is validated.

    An address of its own comes with a key, a quota and prices of its own; the pool's are never sent elsewhere.
    """
    models = config.get("models")
    own = models.get(model) if isinstance(models, Mapping) else None
    if not isinstance(own, Mapping):
        return dict(config)
    dropped = {"api_key_env", "api_key_file"} if {"api_key_env", "api_key_file"} & set(own) else set()
    if "base_url" in own:
        dropped |= {"api_key_env", "api_key_file", "quota_resource", "price_provider"}
    return {name: value for name, value in config.items() if name not in dropped} | dict(own)


def _model_terms(config: Mapping[str, object], name: str, own: object) -> ModelTerms:
    if not isinstance(own, Mapping) or set(own) - _MODEL_KEYS:
        raise LlmConfigError(f"'models.{name}' must be an object that knows {', '.join(sorted(_MODEL_KEYS))} only.")
    merged = config_of(config, name)
    try:
        _text(merged, "price_provider")
        return ModelTerms(
            endpoint=_endpoint(merged),
            api=_api(merged),
            max_output_tokens=_tokens(merged, "max_output_tokens"),
            tokens=_token_limits(merged),
        )
    except LlmConfigError as error:
        raise LlmConfigError(f"In 'models.{name}': {error}") from error


def _endpoint(config: Mapping[str, object]) -> Endpoint:
    if _text(config, "api_key_env") is not None and _text(config, "api_key_file") is not None:
        raise LlmConfigError("Give 'api_key_env' or 'api_key_file', not both.")
    return Endpoint(
        base_url=_base_url(config),
        api_key_env=_environment_name(config),
        api_key_file=_text(config, "api_key_file"),
        quota_resource=_text(config, "quota_resource"),
    )


def _token_limits(config: Mapping[str, object]) -> dict[str, TokenLimit]:
    try:
        return parse_token_limits(config.get("tokens"))
    except ValueError as error:
        raise LlmConfigError(str(error)) from error


def _api(config: Mapping[str, object]) -> ApiName | None:
    name = _text(config, "api")
    if name is None:
        return None
    if name not in {each.value for each in ApiName}:
        raise LlmConfigError(f"'api' must be one of {', '.join(ApiName)}.")
    return ApiName(name)


def _text(config: Mapping[str, object], name: str) -> str | None:
    value = config.get(name)
    if value is None or (isinstance(value, str) and value.strip()):
        return value.strip() if isinstance(value, str) else None
    raise LlmConfigError(f"{name!r} must be a text that is not empty.")


def _tokens(config: Mapping[str, object], name: str) -> int | None:
    value = config.get(name)
    if value is None:
        return None
    if type(value) is not int or not 0 < value <= OUTPUT_TOKENS_MAX:
        raise LlmConfigError(f"{name!r} must be a whole number from 1 to {OUTPUT_TOKENS_MAX}.")
    return value


def _number(config: Mapping[str, object], name: str, default: float, *, most: float) -> float:
    value = config.get(name, default)
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value <= most:
        raise LlmConfigError(f"{name!r} must be a number above 0 and at most {most:g}.")
    return value


def _usd(config: Mapping[str, object], name: str) -> str | None:
    amount = _text(config, name)
    if amount is not None and not _USD.fullmatch(amount):
        raise LlmConfigError(f'{name!r}: write an amount of dollars as text, like "12.50".')
    return amount


def _base_url(config: Mapping[str, object]) -> str:
    url = _text(config, "base_url")
    if url is None:
        raise LlmConfigError("'base_url' is missing: give the address of the provider's API.")
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
