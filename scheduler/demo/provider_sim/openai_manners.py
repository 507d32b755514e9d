"""How OpenAI's APIs word errors and limits, and how Gemini's does where it is asked for.

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
from scheduler.demo.provider_sim.wire_formats import Headers, go_duration

BEARER: Final = "Bearer "


class OpenAIManners:
    """Of chat completions, responses and embeddings."""

    request_id_header: Final = "x-request-id"

    def key_of(self, request: Request) -> str:
        """From `Authorization`."""
        return request.headers.get("authorization", "").removeprefix(BEARER)

    def invalid(self, refused: Refused) -> Json:
        """With the parameter at fault."""
        return error(refused.message, type_="invalid_request_error", code=refused.code, param=refused.param)

    def over_limit(self, refusal: Refusal, model: str) -> Json:
        """With the sentence that tells how long to wait."""
        if refusal.cause == "too_large":
            return error(
                f"Request too large for {model} on {refusal.detail}. The input or output tokens must be reduced.",
                type_="tokens",
                code="rate_limit_exceeded",
            )
        return _rate_limited(model, refusal.detail, cause=refusal.cause, wait=go_duration(refusal.retry_after_s))

    def struck(self, fault: Fault, delay_s: float | None, model: str) -> tuple[int, Mapping[str, object]]:
        """Each fault as this family tells it."""
        too_many = int(HTTPStatus.TOO_MANY_REQUESTS)
        match fault.kind:
            case "throttle" if fault.retry_after_format == "body" and delay_s is not None:
                return fault.status or too_many, _retry_info(model, delay_s)
            case "throttle":
                tells = fault.retry_after_format not in ("none", "body") and delay_s is not None
                wait = go_duration(delay_s) if tells and delay_s is not None else None
                return fault.status or too_many, _rate_limited(model, "requests", cause="throttle", wait=wait)
            case "slow_down":
                return fault.status or too_many, SLOW_DOWN
            case "quota":
                return fault.status or too_many, out_of_money(fault.code or "insufficient_quota")
            case "overload":
                return fault.status or int(HTTPStatus.SERVICE_UNAVAILABLE), OVERLOADED
            case _:
                body = error(SERVER_ERROR, type_="server_error", code=fault.code)
                return fault.status or int(HTTPStatus.INTERNAL_SERVER_ERROR), body

    def rate_headers(self, buckets: Mapping[str, Bucket], *, now: float) -> Headers:  # noqa: ARG002 - others tell times
        """`x-ratelimit-*`, with the time until a limit is wholly restored."""
        headers: Headers = []
        for what in ("requests", "tokens"):
            bucket = buckets.get(what)
            if bucket is not None:
                headers += [
                    (f"x-ratelimit-limit-{what}", str(int(bucket.burst))),
                    (f"x-ratelimit-remaining-{what}", str(max(0, int(bucket.level)))),
                    (f"x-ratelimit-reset-{what}", go_duration(bucket.reset_s())),
                ]
        return headers

    def processing_headers(self, latency_s: float) -> Headers:
        """In milliseconds."""
        return [("openai-processing-ms", str(round(latency_s * 1000)))]


def error(message: str, *, type_: str, code: str | None = None, param: str | None = None) -> Json:
    """An error in OpenAI's shape."""
    return {"error": {"message": message, "type": type_, "param": param, "code": code}}


def out_of_money(code: str) -> Json:
    """The account has no money left, or may not spend more."""
    return error("You exceeded your current quota, please check your plan and billing details.", type_=code, code=code)


SERVER_ERROR: Final = "The server had an error while processing your request."
SLOW_DOWN: Final = error(
    "Your requests are growing too fast. Reduce your rate and increase it gradually.",
    type_="requests",
    code="slow_down",
)
OVERLOADED: Final = error(
    "The server is currently overloaded with other requests.", type_="server_error", code="server_is_overloaded"
)


def _rate_limited(model: str, detail: str, *, cause: str, wait: str | None) -> Json:
    sentence = f" Please try again in {wait}." if wait is not None else ""
    return error(
        f"Rate limit reached for {model} on {detail}.{sentence}",
        type_="tokens" if "tokens" in cause else "requests",
        code="rate_limit_exceeded",
    )


def _retry_info(model: str, delay_s: float) -> Json:
    """A 429 in Gemini's shape, which tells the delay in the body only."""
    return {
        "error": {
            "code": 429,
            "status": "RESOURCE_EXHAUSTED",
            "message": f"You exceeded the current quota of {model}.",
            "details": [{"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": f"{delay_s:.3f}s"}],
        }
    }


OPENAI_MANNERS: Final = OpenAIManners()
