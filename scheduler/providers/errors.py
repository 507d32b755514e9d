"""What a provider's refusal means for the attempt and for the account.

Decides the kind of a failed answer from the error's own code first, then from its text where a provider gives no code,
and from the HTTP status last: one status stands for many things (429 is a rate, a spend limit, a lack of machines, or
a request that can never fit). It must never let a credential into a message.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from http import HTTPStatus
from typing import Final

from scheduler.providers.fields import error_object, header, mapping, text

MESSAGE_CHARS_MAX: Final = 200


class ProviderErrorKind(StrEnum):
    """What to do after a provider's refusal."""

    THROTTLED = "throttled"
    """Over a rate: the whole quota waits, then the attempt is made again."""
    OVERLOADED = "overloaded"
    """The provider failed (any 5xx): make it again; a breaker counts it."""
    CAPACITY = "capacity"
    """No spare capacity for a cheap tier: make it again later."""
    TIMEOUT = "timeout"
    """The provider gave up waiting: make it again; a breaker counts it."""
    LOST = "lost"
    """Nobody knows how it ended."""
    ERROR = "error"
    """Something else that may pass."""
    PERMANENT = "permanent"
    """The same request will be refused again."""
    PROVIDER_BILLING = "provider_billing"
    """The account is out of money: nothing on it will work until a person acts."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """Why a provider refused. `message` is short and safe to store.

    `slow_down`: our growth was too steep, not our rate. `daily`: a quota of the day is spent, not one of the minute.
    """

    kind: ProviderErrorKind
    code: str | None
    message: str
    slow_down: bool = False
    daily: bool = False


_BILLING: Final = frozenset({
    "insufficient_quota", "credit_balance_exhausted", "organization_spend_limit_exceeded",
    "project_spend_limit_exceeded", "organization_usage_limit_exceeded", "enforced_spend_limit_reached",
    "billing_error", "billing_hard_limit_reached", "billing_not_active",
})  # fmt: skip
_KIND_BY_CODE: Final[Mapping[str, ProviderErrorKind]] = {
    **dict.fromkeys(_BILLING, ProviderErrorKind.PROVIDER_BILLING),
    "rate_limit_exceeded": ProviderErrorKind.THROTTLED,
    "rate_limit_error": ProviderErrorKind.THROTTLED,
    "slow_down": ProviderErrorKind.THROTTLED,
    "resource_exhausted": ProviderErrorKind.THROTTLED,
    "throttlingexception": ProviderErrorKind.THROTTLED,
    "capacity_exceeded": ProviderErrorKind.CAPACITY,
    "resource_unavailable": ProviderErrorKind.CAPACITY,
    "server_is_overloaded": ProviderErrorKind.OVERLOADED,
    "engine_overloaded": ProviderErrorKind.OVERLOADED,
    "overloaded_error": ProviderErrorKind.OVERLOADED,
    "server_error": ProviderErrorKind.OVERLOADED,
    "api_error": ProviderErrorKind.OVERLOADED,
    "unavailable": ProviderErrorKind.OVERLOADED,
    "timeout_error": ProviderErrorKind.TIMEOUT,
    "deadline_exceeded": ProviderErrorKind.TIMEOUT,
}
_KIND_BY_STATUS: Final[Mapping[int, ProviderErrorKind]] = {
    402: ProviderErrorKind.PROVIDER_BILLING,
    408: ProviderErrorKind.TIMEOUT,
    409: ProviderErrorKind.ERROR,
    425: ProviderErrorKind.ERROR,
    429: ProviderErrorKind.THROTTLED,
    498: ProviderErrorKind.CAPACITY,
    504: ProviderErrorKind.TIMEOUT,
    522: ProviderErrorKind.TIMEOUT,
    524: ProviderErrorKind.TIMEOUT,
}

# Anthropic tells of a limit that the customer set, and of an empty balance, under the code of a malformed request.
_BILLING_TEXT = re.compile(r"specified (?:api|workspace) usage limits|credit balance is too low", re.IGNORECASE)
# OpenAI refuses with a rate-limit code a request that alone is larger than the limit of a whole minute.
_NEVER_FITS_TEXT = re.compile(r"\brequest too large\b", re.IGNORECASE)
# OpenAI's flex tier has no code of its own for a lack of spare machines.
_CAPACITY_TEXT = re.compile(r"\bresources? (?:is |are )?(?:temporarily )?unavailable\b", re.IGNORECASE)

_SECRET = re.compile(
    r"\b(?:bearer\s+\S+|(?:sk|rk|pk|gsk|xai|csk|key|cq)[-_][\w*.\-]{6,}|AIza[\w\-]{10,})", re.IGNORECASE
)


def classify(status: int, headers: Mapping[str, str], body: object) -> Verdict:
    """The verdict on an answer that is no success; `status` 200 stands for an error event inside a stream.

    `body` is the parsed JSON, or the text when it was not JSON.
    """
    error = error_object(body)
    message = text(error.get("message")) or ""
    codes = _codes(error)
    code = next((each for each in codes if each in _BILLING), None) or next(
        (each for each in codes if each in _KIND_BY_CODE), None
    )
    kind = _kind_by_text(status, message)
    if kind is None or code in _BILLING:
        kind = _KIND_BY_CODE[code] if code is not None else _kind_by_status(status, headers)
    return Verdict(
        kind=kind,
        code=code or next(iter(codes), None),
        message=short_message(f"HTTP {status}: {message}" if message else f"HTTP {status}"),
        slow_down=code == "slow_down",
        daily=kind is ProviderErrorKind.THROTTLED and _is_daily(error),
    )


def short_message(message: str) -> str:
    """The message on one line of at most `MESSAGE_CHARS_MAX` characters, with anything like a credential cut out."""
    line = " ".join("".join(each if each.isprintable() else " " for each in message).split())
    line = _SECRET.sub("[redacted]", line)
    return line if len(line) <= MESSAGE_CHARS_MAX else line[: MESSAGE_CHARS_MAX - 1] + "…"


def _codes(error: Mapping[str, object]) -> tuple[str, ...]:
    """Every code that the error carries, lower case, most specific first."""
    candidates = (
        mapping(error.get("details")).get("error_code"),
        error.get("code"),
        error.get("type"),
        error.get("status"),
        error.get("__type"),
    )
    return tuple(found.lower() for found in map(text, candidates) if found is not None)


def _kind_by_text(status: int, message: str) -> ProviderErrorKind | None:
    """For the refusals whose code says something else than they mean."""
    if status in (HTTPStatus.BAD_REQUEST, HTTPStatus.TOO_MANY_REQUESTS) and _BILLING_TEXT.search(message):
        return ProviderErrorKind.PROVIDER_BILLING
    if status == HTTPStatus.TOO_MANY_REQUESTS and _NEVER_FITS_TEXT.search(message):
        return ProviderErrorKind.PERMANENT
    if status == HTTPStatus.TOO_MANY_REQUESTS and _CAPACITY_TEXT.search(message):
        return ProviderErrorKind.CAPACITY
    return None


def _kind_by_status(status: int, headers: Mapping[str, str]) -> ProviderErrorKind:
    """`x-should-retry` is the provider's word where no code is; a named status has its meaning regardless."""
    named = _KIND_BY_STATUS.get(status)
    if named is not None:
        return named
    should_retry = header(headers, "x-should-retry")
    if should_retry == "false":
        return ProviderErrorKind.PERMANENT
    if status >= HTTPStatus.INTERNAL_SERVER_ERROR:
        return ProviderErrorKind.OVERLOADED
    in_stream = status < HTTPStatus.MULTIPLE_CHOICES
    return ProviderErrorKind.ERROR if in_stream or should_retry == "true" else ProviderErrorKind.PERMANENT


def _is_daily(error: Mapping[str, object]) -> bool:
    """Gemini names the quota: `error.details[].violations[].quotaId`, such as `GenerateRequestsPerDayPerProject`."""
    details = error.get("details")
    for detail in details if isinstance(details, list) else []:
        violations = mapping(detail).get("violations")
        for violation in violations if isinstance(violations, list) else []:
            if "perday" in (text(mapping(violation).get("quotaId")) or "").lower():
                return True
    return False
