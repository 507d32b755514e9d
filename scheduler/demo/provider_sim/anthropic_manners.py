"""How Anthropic's API words errors and limits.

Decides bodies and headers only. It must never decide whether to answer.
"""

from __future__ import annotations

from collections.abc import Mapping
from http import HTTPStatus
from typing import Final

from scheduler.demo.provider_sim.api import Json
from scheduler.demo.provider_sim.asks import Refused
from scheduler.demo.provider_sim.faults import Fault
from scheduler.demo.provider_sim.http_request import Request
from scheduler.demo.provider_sim.limits import Bucket, Refusal
from scheduler.demo.provider_sim.wire_formats import Headers, rfc3339

OVERLOADED_STATUS: Final = 529
TOKENS_ROUNDED_TO: Final = 1000
_TYPE_BY_STATUS: Final[Mapping[int, str]] = {
    400: "invalid_request_error",
    401: "authentication_error",
    402: "billing_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    504: "timeout_error",
    529: "overloaded_error",
}


class AnthropicManners:
    """Of messages."""

    request_id_header: Final = "request-id"

    def key_of(self, request: Request) -> str:
        """From `x-api-key`, or a bearer token."""
        return request.headers.get("x-api-key") or request.headers.get("authorization", "").removeprefix("Bearer ")

    def invalid(self, refused: Refused) -> Json:
        """The parameter at fault stands in the message."""
        message = refused.message if refused.param is None else f"{refused.param}: {refused.message}"
        return error(refused.status, message)

    def over_limit(self, refusal: Refusal, model: str) -> Json:
        """The time to wait stands in the headers only."""
        message = f"This request would exceed the rate limit of your organization for {model} on {refusal.detail}."
        return error(int(HTTPStatus.TOO_MANY_REQUESTS), message)

    def struck(self, fault: Fault, delay_s: float | None, model: str) -> tuple[int, Mapping[str, object]]:  # noqa: ARG002 - others tell the delay in the body
        """Each fault as this API tells it."""
        too_many = int(HTTPStatus.TOO_MANY_REQUESTS)
        match fault.kind:
            case "throttle":
                return fault.status or too_many, error(too_many, f"Your account has hit a rate limit for {model}.")
            case "slow_down":
                return fault.status or too_many, error(too_many, ACCELERATION)
            case "quota":
                return _out_of_money(fault)
            case "overload":
                status = fault.status or OVERLOADED_STATUS
                return status, error(OVERLOADED_STATUS, "Overloaded")
            case _:
                status = fault.status or int(HTTPStatus.INTERNAL_SERVER_ERROR)
                return status, error(status, "Internal server error")

    def rate_headers(self, buckets: Mapping[str, Bucket], *, now: float) -> Headers:
        """`anthropic-ratelimit-*`: when a limit is wholly restored, and tokens to the nearest thousand.

        `tokens` tells the tightest limit on tokens in force.
        """
        headers: Headers = []
        counted = [buckets[name] for name in ("tokens", "input_tokens", "output_tokens") if name in buckets]
        told = dict(buckets)
        if counted:
            told["tokens"] = min(counted, key=lambda bucket: bucket.level)
        for name, bucket in told.items():
            prefix = f"anthropic-ratelimit-{name.replace('_', '-')}"
            headers += [
                (f"{prefix}-limit", str(int(bucket.burst))),
                (f"{prefix}-remaining", str(_told(name, max(0.0, bucket.level)))),
                (f"{prefix}-reset", rfc3339(now + bucket.reset_s())),
            ]
        return headers

    def processing_headers(self, latency_s: float) -> Headers:  # noqa: ARG002 - this API does not tell
        """Not told."""
        return []


def error(status: int, message: str, **details: object) -> Json:
    """An error in Anthropic's shape, of the type that goes with a status."""
    told: Json = {"type": _TYPE_BY_STATUS.get(status, "api_error"), "message": message}
    return {"type": "error", "error": told | ({"details": details} if details else {})}


ACCELERATION: Final = (
    "Your usage has grown too fast and exceeds the acceleration limit of your organization. Scale up gradually."
)
OVERLOADED: Final = error(OVERLOADED_STATUS, "Overloaded")


def _out_of_money(fault: Fault) -> tuple[int, Json]:
    """402 by default; 400 is a limit that the customer set, 429 the one that comes with the account's tier."""
    status = fault.status or int(HTTPStatus.PAYMENT_REQUIRED)
    if status == HTTPStatus.BAD_REQUEST:
        return status, error(status, "You have reached your specified API usage limits.")
    if status == HTTPStatus.TOO_MANY_REQUESTS:
        code = fault.code or "enforced_spend_limit_reached"
        return status, error(status, "You have reached the spend limit of your tier.", error_code=code)
    return status, error(int(HTTPStatus.PAYMENT_REQUIRED), "Your credit balance is too low to access the API.")


def _told(name: str, level: float) -> int:
    if name == "requests" or level < TOKENS_ROUNDED_TO:
        return int(level)
    return round(level / TOKENS_ROUNDED_TO) * TOKENS_ROUNDED_TO


ANTHROPIC_MANNERS: Final = AnthropicManners()
