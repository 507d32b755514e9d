"""Settings: how the console looks here, and for those who may, which tokens there are."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from django.views.decorators.http import require_safe

from scheduler.errors import FieldError
from scheduler.live import wording
from scheduler.policy.declarations import SCOPES
from scheduler.reads.tokens import TokenEntry, list_tokens
from scheduler.web import times
from scheduler.web.access import EDIT_ACCESS, VIEW_CONSOLE, may, needs
from scheduler.web.fields import Field, with_faults
from scheduler.web.look import COLUMNS, DENSITIES, LISTS, PACES, first_filters, look_of
from scheduler.web.shell import page
from scheduler.web.task_story import Chip, When

ROWS: Final = 50
SCOPE_SAYS: Final = {
    "submit": "hand in work",
    "read": "look at work and its state",
    "work": "run tasks as a worker",
    "operate": "pause, cancel, replay",
    "admin": "declare pools, limits, tenants",
    "metrics": "scrape metrics",
}


@dataclass(frozen=True, slots=True)
class TokenLine:
    """A token for the list."""

    token: TokenEntry
    chip: Chip
    opens: str
    pools: str
    made: When
    used: When | None
    ends: When | None
    revocable: bool


@require_safe
@needs(VIEW_CONSOLE)
def settings(request: HttpRequest) -> HttpResponse:
    """How the console looks in this browser, and where to go on."""
    return settings_form(request)


def settings_form(request: HttpRequest, *, status: int = 200, errors: Sequence[FieldError] = ()) -> HttpResponse:
    """The page, after a refusal with the input kept and the faults beside it."""
    first = first_filters(request)
    value = {"zone": look_of(request).zone, **{name: first.get(name, "") for name in LISTS}}
    value |= {name: request.POST[name].strip() for name in value if name in request.POST}
    shown = request.POST.getlist("column") if errors else look_of(request).columns
    filter_help = "As in the list’s own filter. Left empty, everything."
    spelled = {"maxlength": "300", "spellcheck": "false", "autocapitalize": "none"}
    fields, _ = with_faults(
        [
            Field(
                "zone",
                "Time zone",
                value["zone"],
                help="By its name, like Europe/Berlin. Beside each time stands what it is in UTC.",
                required=True,
                extra={"maxlength": "64", "spellcheck": "false", "list": "zones"},
            ),
            Field("tasks", "Tasks begin with", value["tasks"], help=filter_help, extra=spelled),
            Field("dead", "Dead letters begin with", value["dead"], help=filter_help, extra=spelled),
        ],
        errors,
    )
    return page(
        request,
        "ops/settings.html",
        title="Settings",
        nav="settings",
        status=status,
        fields=fields,
        zones=times.COMMON,
        columns=[(name, name in shown) for name in COLUMNS],
        densities=DENSITIES,
        paces=PACES,
        may_edit_access=may(request, EDIT_ACCESS),
    )


@require_safe
@needs(EDIT_ACCESS)
def tokens(request: HttpRequest) -> HttpResponse:
    """The tokens, newest first, and the form that makes one."""
    return tokens_page(request)


def tokens_page(
    request: HttpRequest, *, status: int = 200, errors: Sequence[FieldError] = (), fault: str = "", **made: Any
) -> HttpResponse:
    """The list with its form; after a refusal with the input kept, after a success with the new token, this once."""
    before = request.GET.get("before", "")
    rows = list_tokens(before=int(before) if before.isascii() and before.isdigit() else None, rows_max=ROWS + 1)
    fields, loose = with_faults(_token_fields(request), errors)
    chosen = request.POST.getlist("scopes")
    return page(
        request,
        "ops/tokens.html",
        title="Tokens",
        nav="settings",
        status=status,
        lines=[_token_line(row) for row in rows[:ROWS]],
        older=f"?before={rows[ROWS - 1].id}" if len(rows) > ROWS else "",
        newer=reverse("ops:tokens") if before else "",
        newer_says="Newest",
        fields=fields,
        scopes=[(scope, SCOPE_SAYS.get(scope, ""), scope in chosen) for scope in SCOPES],
        scope_fault=" ".join(each.msg for each in errors if each.loc[:1] == ("scopes",)),
        faults=[text for text in (fault, *loose) if text],
        key=secrets.token_urlsafe(12),
        **made,
    )


def _token_fields(request: HttpRequest) -> list[Field]:
    value = {name: request.POST.get(name, "") for name in ("name", "tenant", "pools", "days", "reason")}
    return [
        Field("name", "Name", value["name"], help="What people will know it by.", extra={"maxlength": "200"}),
        Field("tenant", "Tenant", value["tenant"], help="Its slug. Left empty, the token acts for every tenant."),
        Field("pools", "Pools", value["pools"], help="Only these, separated by commas. Left empty, any pool."),
        Field(
            "days",
            "Expires after",
            value["days"],
            kind="number",
            help="Days. Left empty, never.",
            extra={"min": "1", "max": "3650"},
        ),
        Field("reason", "Reason", value["reason"], help="Kept in the audit.", extra={"maxlength": "200"}),
    ]


def _token_line(token: TokenEntry) -> TokenLine:
    expired = token.expires_at is not None and token.expires_at <= token.now
    chip = Chip("ok", "Valid", "ok")
    if token.revoked_at is not None:
        chip = Chip("close", "Revoked", "quiet")
    elif expired:
        chip = Chip("stale", "Expired", "quiet")
    return TokenLine(
        token,
        chip,
        ", ".join(token.scopes),
        "any pool" if token.pools is None else ", ".join(token.pools) or "no pool",
        _day(token.created_at),
        None if token.last_used_at is None else _ago(token.last_used_at, token.now),
        None if token.expires_at is None else _day(token.expires_at),
        revocable=token.revoked_at is None,
    )


def _day(at_s: float) -> When:
    return When(times.day_and_clock(at_s)[:10], wording.machine(at_s))


def _ago(at_s: float, now_s: float) -> When:
    return When(f"{wording.glance(max(0.0, now_s - at_s))} ago", wording.machine(at_s))
