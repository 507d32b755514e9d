"""Reads request bodies: bounded, UTF-8, JSON. Decides nothing about what they mean.

The parser is Python's own because it keeps what it cannot represent visible (NaN, integers of any size, half
surrogates), so that `policy.payload` can name the place instead of a digit being lost on the way.
"""

from __future__ import annotations

import json
import sys
from typing import Any, Final, cast

from django.http import HttpRequest
from ninja.parser import Parser

from scheduler import conf
from scheduler.errors import FieldError, Refused
from scheduler.protocol.limits import FRAME_BYTES_MAX

PAYLOAD_BYTES_MAX: Final = conf.current().payload_bytes_max
BATCH_BYTES_MAX: Final = conf.current().batch_bytes_max
BODY_BYTES_MAX: Final = PAYLOAD_BYTES_MAX + 64 * 2**10
"""Of every other request: one payload and what goes with it."""
LARGE: Final = {
    "/tasks/batch": BATCH_BYTES_MAX,
    "/complete": FRAME_BYTES_MAX,
    "/lease": FRAME_BYTES_MAX,
    "/checkpoint": FRAME_BYTES_MAX,
}
"""By the end of the path, what may be larger: batches, checkpoints, and reports that carry a result."""


class StrictParser(Parser):
    """Ninja's parser with bounds. Raises Refused."""

    def parse_body(self, request: HttpRequest) -> dict[str, Any]:
        """The JSON value of the body, whatever its type: the schema refuses what is not an object."""
        bytes_max = next((most for path, most in LARGE.items() if request.path.endswith(path)), BODY_BYTES_MAX)
        declared = request.META.get("CONTENT_LENGTH") or "0"
        if declared.isdigit() and int(declared) > bytes_max:
            raise too_large(int(declared), bytes_max)
        body = request.body
        if len(body) > bytes_max:
            raise too_large(len(body), bytes_max)
        return cast("dict[str, Any]", parse(body))


def parse(body: bytes) -> object:
    """The JSON value in `body`. Raises Refused with the place where it stops being JSON."""
    try:
        text = body.decode()
    except UnicodeDecodeError as error:
        raise Refused(f"The body is not UTF-8: byte {error.start} does not fit.", code="bad_encoding") from None
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        detail = f"The body is not JSON: {error.msg} at line {error.lineno}, column {error.colno}."
        raise Refused(detail, code="bad_json") from None
    except RecursionError:
        raise _unkept("The body is nested too deep; flatten it.") from None
    except ValueError:
        digits = sys.get_int_max_str_digits()
        raise _unkept(f"The body holds a number of more than {digits} digits; send it as a string.") from None


def too_large(size: int, bytes_max: int) -> Refused:
    """The refusal of a body."""
    return Refused(f"The body has {size} bytes; at most {bytes_max} are taken here.", code="body_too_large")


def _unkept(detail: str) -> Refused:
    return Refused(detail, code="bad_payload", errors=(FieldError((), detail),))
