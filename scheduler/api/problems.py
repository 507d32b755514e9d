"""Turns errors into problem documents (RFC 9457): one mapping of the error families, and what Django and ninja raise.

Decides status codes, never meanings. It must never show a stack trace, a statement or a secret to a client.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Mapping, Sequence
from http import HTTPStatus
from typing import Any, Final

import orjson
from django.core.exceptions import RequestDataTooBig
from django.db import InterfaceError, OperationalError
from django.http import Http404, HttpRequest, HttpResponse
from ninja.errors import AuthenticationError, HttpError, ValidationError

from scheduler.errors import Broken, Conflict, CronoqError, FieldError, Forbidden, NotFound, Refused, Unavailable
from scheduler.services.changes import VersionConflict

logger = logging.getLogger(__name__)

CONTENT_TYPE: Final = "application/problem+json"
DATABASE_RETRY_AFTER_S: Final = 2.0
ERRORS_MAX: Final = 50

REFUSED: Final = {
    "bad_json": 400,
    "bad_encoding": 400,
    "bad_idempotency_key": 400,
    "bad_cursor": 400,
    "body_too_large": 413,
    "payload_too_large": 413,
    "batch_too_large": 413,
}
"""Refusals that have a status of their own; every other one is 422."""
UNAVAILABLE: Final = {"overloaded": 429}


def answer(request: HttpRequest, error: Exception | type[Exception]) -> HttpResponse:
    """The answer to whatever was raised."""
    match error:
        case CronoqError():
            return answer_error(error)
        case AuthenticationError():
            return answer_unauthenticated(request)
        case HttpError() if isinstance(error.__cause__, Exception):
            # A body that could not be parsed carries our own error as its cause.
            return answer(request, error.__cause__)
        case OperationalError() | InterfaceError():
            logger.warning("the database does not answer: %s", error)
            detail = "The database does not answer; try again."
            return problem(503, "database_unavailable", detail, retry_after_s=DATABASE_RETRY_AFTER_S)
        case _:
            return _answer_framework(error)


def _answer_framework(error: Exception | type[Exception]) -> HttpResponse:
    """What Django and ninja raise, and then our own faults."""
    match error:
        case ValidationError():
            return _answer_invalid(error)
        case HttpError():
            return problem(error.status_code, _code_of(error.status_code), str(error))
        case Http404():
            return answer_not_found()
        case RequestDataTooBig():
            return problem(413, "body_too_large", "The request body is too large.")
        case _:
            logger.error("a request failed", exc_info=error if isinstance(error, Exception) else None)
            return problem(500, "broken", "This is a fault of ours; it was written to the log.")


def answer_error(error: CronoqError) -> HttpResponse:
    """The answer to one of our own errors."""
    if isinstance(error, Broken):
        logger.error("broken: %s", error.detail, exc_info=error)
    extra = {"sent": error.sent, "current": error.current} if isinstance(error, VersionConflict) else {}
    return problem(
        status_of(error), error.code, error.detail, errors=error.errors, retry_after_s=error.retry_after_s, extra=extra
    )


def status_of(error: CronoqError) -> int:
    """The status code of an error, by its family."""
    match error:
        case Refused():
            return REFUSED.get(error.code, 422)
        case Forbidden():
            return 403
        case NotFound():
            return 404
        case Conflict():
            return 409
        case Unavailable():
            return UNAVAILABLE.get(error.code, 503)
        case _:
            return 500


def answer_unauthenticated(request: HttpRequest) -> HttpResponse:
    """The same answer for every token that does not open anything."""
    sent = "Authorization" in request.headers
    detail = "This token is unknown, expired or revoked." if sent else "Send a token: Authorization: Bearer cq_…"
    response = problem(401, "unauthenticated", detail)
    response["WWW-Authenticate"] = 'Bearer realm="cronoq"' + (', error="invalid_token"' if sent else "")
    return response


def _answer_invalid(error: ValidationError) -> HttpResponse:
    """Every field at fault by name. A path that is not even an id names nothing that exists."""
    faults = [_fault(item) for item in error.errors[:ERRORS_MAX]]
    if any(item["loc"][0] == "path" for item in error.errors):
        return answer_not_found()
    detail = " ".join(f"{'.'.join(map(str, f.loc))}: {f.msg}" if f.loc else f.msg for f in faults[:3])
    return problem(422, "invalid", detail, errors=faults)


def answer_not_found() -> HttpResponse:
    """The answer to an address that does not exist."""
    return problem(404, "not_found", "There is nothing at this address.")


def answer_not_allowed(allowed: str) -> HttpResponse:
    """The answer to a method that an address does not know; `allowed` names those that it does."""
    methods = ", ".join(sorted(allowed.split(", ")))
    response = problem(405, "method_not_allowed", f"This address takes {methods}.")
    response["Allow"] = methods
    return response


def problem(
    status: int,
    code: str,
    detail: str,
    *,
    errors: Sequence[FieldError] = (),
    retry_after_s: float | None = None,
    extra: Mapping[str, object] | None = None,
) -> HttpResponse:
    """A problem document."""
    body: dict[str, Any] = {
        "type": "about:blank",
        "title": HTTPStatus(status).phrase,
        "status": status,
        "code": code,
        "detail": clean(detail),
        "errors": [{"loc": [_clean_step(step) for step in e.loc], "msg": clean(e.msg)} for e in errors],
        **(extra or {}),
    }
    if retry_after_s is not None:
        body["retry_after"] = retry_after_s
    response = HttpResponse(orjson.dumps(body), status=status, content_type=CONTENT_TYPE)
    if retry_after_s is not None:
        response["Retry-After"] = str(max(1, math.ceil(retry_after_s)))
    return response


def clean(text: str) -> str:
    """Text that can be sent: a client's half surrogates are made visible."""
    return text if text.isascii() else text.encode(errors="replace").decode()


def _clean_step(step: str | int) -> str | int:
    return clean(step) if isinstance(step, str) else step


_UNKNOWN: Final = "There is no such field; remove it or mend its name."


def _fault(item: Mapping[str, Any]) -> FieldError:
    source, *path = item["loc"]
    # The first step inside a body is the name of the view's argument, which is nobody's business.
    loc = tuple(path[1:] if source == "body" else path)
    msg = _UNKNOWN if item["type"] == "extra_forbidden" else str(item["msg"]).removeprefix("Value error, ")
    if not loc and item["type"] in ("missing", "model_attributes_type", "model_type"):
        msg = "A JSON object is needed as the body."
    return FieldError(loc, msg)


def _code_of(status: int) -> str:
    return HTTPStatus(status).phrase.lower().replace(" ", "_")
