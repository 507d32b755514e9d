"""The answer when a page could not be made: the database does not answer, or the fault is ours."""

from __future__ import annotations

import logging
import sys
from typing import Final

from django.db import InterfaceError, OperationalError
from django.http import HttpRequest, HttpResponse
from django.template.loader import render_to_string

from scheduler.web.look import look_of

log = logging.getLogger(__name__)

LOST: Final = "X-Live-Lost"
"""Says to an open page that polls that it is the database that does not answer."""
RETRY_AFTER_S: Final = 5
_NO_ANSWER: Final = ("08", "53", "57P")
"""How the codes of a server begin that is going, coming, full or not to be reached."""


def broken(request: HttpRequest) -> HttpResponse:
    """503 while the database does not answer, else 500; Django calls it while the error is being handled.

    It asks the database nothing, so it knows nobody: who is signed in is stored there.
    """
    error = sys.exc_info()[1]
    away = error is not None and is_away(error)
    page = render_to_string(
        "503.html" if away else "500.html",
        {"look": look_of(request), "again": request.get_full_path() if request.method == "GET" else "/ops/"},
    )
    response = HttpResponse(page, status=503 if away else 500)
    if away:
        log.warning("A page could not be made, the database does not answer: %s", error)
        response["Retry-After"] = str(RETRY_AFTER_S)
        response[LOST] = "yes"
    response["Cache-Control"] = "no-store, private"
    return response


def is_away(error: BaseException) -> bool:
    """Whether this is what asking a database that does not answer raises."""
    if not isinstance(error, OperationalError | InterfaceError):
        return False
    said = getattr(error.__cause__, "sqlstate", None)
    return said is None or str(said).startswith(_NO_ANSWER)
