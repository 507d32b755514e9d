"""What every action of the console shares: who acts and why, and how a page answers when it worked."""

from __future__ import annotations

from typing import Final

from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect

from scheduler.services.changes import Author
from scheduler.web.toast import Toast, leave_toast

REASON_CHARS_MAX: Final = 200


def reason_of(request: HttpRequest) -> str:
    """The reason that the form gave, without blanks around it; empty when there is none."""
    return request.POST.get("reason", "").strip()[:REASON_CHARS_MAX]


def actor_of(request: HttpRequest) -> str:
    """Who acts, by the name that the audit keeps."""
    return str(request.user.get_username())


def author_of(request: HttpRequest) -> Author:
    """Who acts, through this console, and why."""
    return Author(actor_of(request), source="ui", reason=reason_of(request))


def done(request: HttpRequest, url: str, toast: Toast) -> HttpResponse:
    """Send the browser to a page that shows the notice. A reload of that page repeats nothing."""
    leave_toast(request, toast)
    response = redirect(url)
    response.status_code = 303
    return response
