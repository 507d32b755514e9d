"""The form that declares a schedule. It is declared only after the runs that it gives were shown."""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from typing import Final

import orjson
from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from django.views.decorators.http import require_POST, require_safe

from scheduler import conf
from scheduler.errors import Conflict, FieldError, NotFound, Refused
from scheduler.policy.admission import Submission
from scheduler.policy.payload import fault_in_json, fault_in_text
from scheduler.policy.schedules import CatchUp, Overlap
from scheduler.policy.types import PriorityClass
from scheduler.reads.pools import pool_detail
from scheduler.reads.tenants import tenant_to_show
from scheduler.services.idempotency import Answer, once
from scheduler.services.schedules import Declared, add_schedule, described
from scheduler.web.access import EDIT_SCHEDULE, needs
from scheduler.web.acting import author_of, done
from scheduler.web.fields import Field, with_faults
from scheduler.web.schedule_page import foreseen_of, rhythm_fields
from scheduler.web.shell import page
from scheduler.web.toast import Toast

NAME_CHARS_MAX: Final = 64
EMPTY: Final = {
    "name": "",
    "tenant": "",
    "pool": "",
    "kind": "default",
    "priority": PriorityClass.NORMAL.label,
    "payload": "{}",
    "cron": "30 2 * * *",
    "time_zone": "UTC",
    "overlap": Overlap.SKIP.value,
    "catch_up": CatchUp.LAST.value,
    "reason": "",
}


@require_safe
@needs(EDIT_SCHEDULE)
def new(request: HttpRequest) -> HttpResponse:
    """The form; what the address names stands in it, so that a link may propose a schedule."""
    return _form(request, {name: request.GET.get(name, usual) for name, usual in EMPTY.items()}, blank=True)


@require_POST
@needs(EDIT_SCHEDULE)
def add(request: HttpRequest) -> HttpResponse:
    """Show the runs that these values give; or declare it, if they were shown. Sent twice, the form declares one."""
    values = {name: request.POST.get(name, "").strip() for name in EMPTY}
    if "look" in request.POST:
        return _form(request, values)
    errors = _faults(values)
    if errors:
        return _form(request, values, status=422, errors=errors)
    if request.POST.get("seen", "") != _seen(values):
        said = "These are the runs that it would give. Send the form again if they are what you mean."
        return _form(request, values, status=422, fault=said)

    def act() -> Answer:
        tenant = tenant_to_show(values["tenant"])
        assert tenant is not None  # noqa: S101 - _faults asks for one
        declared = _declared(values)
        row = add_schedule(tenant, values["name"], declared, author_of(request))
        return Answer(201, orjson.dumps({"id": row.id}).decode())

    try:
        answer = once(f"person {request.user.pk}", request.POST.get("key", ""), orjson.dumps(values), act)
    except (Refused, Conflict) as refusal:
        status = 422 if isinstance(refusal, Refused) else 409
        return _form(
            request, values, status=status, errors=refusal.errors, fault="" if refusal.errors else refusal.detail
        )
    where = reverse("ops:schedule", kwargs={"schedule_id": orjson.loads(answer.body)["id"]})
    return done(request, where, Toast(f"Declared {values['name']}. Its first run is the next one from now."))


def _declared(values: Mapping[str, str]) -> Declared:
    task = described(
        Submission(
            payload=orjson.dumps(orjson.loads(values["payload"])).decode(),
            pool=values["pool"],
            kind=values["kind"],
            priority=PriorityClass[values["priority"].upper()],
        )
    )
    overlap, catch_up = Overlap(values["overlap"]), CatchUp(values["catch_up"])
    return Declared(values["cron"], values["time_zone"], task, overlap, catch_up)


def _faults(values: Mapping[str, str]) -> list[FieldError]:
    """Everything that declaring it would be refused for, and a pool that nobody made."""
    faults = [
        FieldError((name,), f"Give {what} of 1 to {NAME_CHARS_MAX} characters.")
        for name, what in (("name", "a name"), ("kind", "a kind"), ("pool", "the name of a pool"))
        if not 0 < len(values[name]) <= NAME_CHARS_MAX or fault_in_text(values[name])
    ]
    faults += [
        FieldError((name,), "Choose one of the list.")
        for name, known in (("priority", _CLASSES), ("overlap", _OVERLAPS), ("catch_up", _CATCH_UPS))
        if values[name] not in known
    ]
    if not any(fault.loc == ("pool",) for fault in faults):
        try:
            pool_detail(values["pool"])
        except NotFound as missed:
            faults.append(FieldError(("pool",), missed.detail))
    try:
        if tenant_to_show(values["tenant"]) is None:
            faults.append(FieldError(("tenant",), "Say whose tasks they are: the slug of a tenant."))
    except Refused as refusal:
        faults += refusal.errors
    if not values["reason"]:
        faults.append(FieldError(("reason",), "Say why: it stays in the audit."))
    return [*faults, *_payload_faults(values["payload"])]


_CLASSES: Final = [each.label for each in PriorityClass]
_OVERLAPS: Final = [each.value for each in Overlap]
_CATCH_UPS: Final = [each.value for each in CatchUp]


def _payload_faults(text: str) -> list[FieldError]:
    try:
        value = orjson.loads(text)
    except orjson.JSONDecodeError as error:
        return [FieldError(("payload",), f"This is no JSON: {error.msg} at line {error.lineno}, column {error.colno}.")]
    fault = fault_in_json(value)
    if fault is not None:
        return [FieldError(("payload",), fault.msg)]
    bytes_max = conf.current().payload_bytes_max
    if len(orjson.dumps(value)) > bytes_max:
        return [FieldError(("payload",), f"A payload has at most {bytes_max:,} bytes; store it elsewhere and name it.")]
    return []


def _seen(values: Mapping[str, str]) -> str:
    return f"{values['cron']}|{values['time_zone']}"


def _form(
    request: HttpRequest,
    values: Mapping[str, str],
    *,
    status: int = 200,
    errors: Sequence[FieldError] = (),
    fault: str = "",
    blank: bool = False,
) -> HttpResponse:
    """The form with these values and the runs that they would give, after a refusal with the faults beside them."""
    foreseen, faults = foreseen_of(values)
    found = [*errors, *(fault for fault in faults if fault not in errors)]
    fields, rest = with_faults([*_what_fields(values), *rhythm_fields(values)], found)
    return page(
        request,
        "ops/schedule_new.html",
        title="New schedule",
        nav="schedules",
        status=max(status, 422) if faults else status,
        fields=fields,
        fault=" ".join([fault, *rest]).strip(),
        seen="" if blank else _seen(values),
        key=request.POST.get("key") or secrets.token_urlsafe(12),
        **foreseen,
    )


def _what_fields(values: Mapping[str, str]) -> list[Field]:
    short = {"maxlength": str(NAME_CHARS_MAX), "spellcheck": "false"}
    return [
        Field("name", "Name", values["name"], "Unique for its tenant.", required=True, extra=short),
        Field("tenant", "Tenant", values["tenant"], "The slug of whose tasks they are.", required=True, extra=short),
        Field("pool", "Pool", values["pool"], required=True, extra=short),
        Field("kind", "Kind", values["kind"], "What its executor knows it by.", required=True, extra=short),
        Field("priority", "Class", values["priority"], kind="select", options=[(name, name) for name in _CLASSES]),
        Field(
            "payload",
            "Payload",
            values["payload"],
            "JSON, handed to the executor as it is; each run gets the same.",
            kind="textarea",
            required=True,
            extra={"spellcheck": "false"},
        ),
    ]
