"""Reads and fills the forms of a tenant: weight and limits, budget, top-up. Decides what is a readable value."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import isfinite
from typing import Any, Final

from django.http import QueryDict

from scheduler.errors import FieldError
from scheduler.live import wording
from scheduler.policy.money import format_usd, parse_usd
from scheduler.reads.money import BudgetDetail
from scheduler.reads.tenants import TenantDetail
from scheduler.web.fields import Field

_CHARS_MAX: Final = 20
_PERCENT: Final = 100.0
_WHOLE: Final = {
    "max_in_flight": ("Running at once, at most", "Attempts. Empty: no limit of its own."),
    "max_queued": ("Waiting, at most", "Tasks, whatever they wait for; one more is refused. Empty: no limit."),
    "max_steps_per_run": ("Steps of a run, at most", "Empty: 20."),
    "max_width_per_run": ("Steps of a run at once, at most", "Empty: 8."),
}
TOP_UP_LASTS: Final = (
    ("3600", "1 hour"),
    ("14400", "4 hours"),
    ("86400", "24 hours"),
    ("604800", "7 days"),
    ("period", "to the end of the period"),
)


@dataclass(frozen=True, slots=True)
class Read:
    """What a form asks for, by the names of the services; `faults` say what cannot be read."""

    changes: Mapping[str, Any]
    faults: tuple[FieldError, ...]


def tenant_fields(found: TenantDetail, posted: QueryDict | None = None) -> list[Field]:
    """Name, weight and limits, with what is declared in them or what was posted."""
    numeric = {"inputmode": "decimal", "min": "0", "step": "any"}
    values = tenant_values(found)
    share = (
        "Its share against others that have work: twice the weight, twice the starts. 0: only when nobody else waits."
    )
    fields = [
        Field("name", "Name", values["name"], extra={"maxlength": "200"}),
        Field("weight", "Weight", values["weight"], share, kind="number", required=True, extra=numeric),
        Field(
            "time_zone", "Time zone", values["time_zone"], "Of its budget’s months, like Europe/Berlin.", required=True
        ),
        Field(
            "start_rate",
            "Starts per second, at most",
            values["start_rate"],
            "Empty: no limit.",
            kind="number",
            extra=numeric,
        ),
        Field(
            "start_burst",
            "Starts at once",
            values["start_burst"],
            "Empty: a second’s worth.",
            kind="number",
            extra=numeric,
        ),
        *(
            Field(
                name, label, values[name], says, kind="number", extra={"inputmode": "numeric", "min": "0", "step": "1"}
            )
            for name, (label, says) in _WHOLE.items()
        ),
        Field(
            "max_cost_per_run_usd",
            "Dollars a run may cost, at most",
            values["max_cost_per_run_usd"],
            "Empty: no limit.",
        ),
        Field("reason", "Reason", help="Kept in the audit.", extra={"maxlength": "200"}),
    ]
    return _filled(fields, posted)


def tenant_values(found: TenantDetail) -> dict[str, str]:
    """What is declared of a tenant, as its form holds it."""
    quota = found.quota
    cost = quota.max_cost_per_run_nano
    whole = {name: getattr(quota, name) for name in _WHOLE}
    return {
        "name": found.name,
        "weight": _number(found.weight),
        "time_zone": found.time_zone,
        "start_rate": _number(quota.start_rate),
        "start_burst": _number(quota.start_burst),
        **{name: "" if value is None else str(value) for name, value in whole.items()},
        "max_cost_per_run_usd": "" if cost is None else format_usd(cost),
    }


def read_tenant(posted: QueryDict, found: TenantDetail) -> Read:
    """What of a tenant is to be changed. A field that is missing asks for nothing."""
    faults: list[FieldError] = []
    before = tenant_values(found)
    typed = {name: str(posted[name]).strip() for name in before if name in posted}
    changes: dict[str, Any] = {}
    for name, text in typed.items():
        if text == before[name]:
            continue
        if name in {"name", "time_zone"}:
            changes[name] = text
        elif name == "max_cost_per_run_usd":
            changes["max_cost_per_run_nano"] = _dollars(name, text, faults)
        else:
            changes[name] = _figure(name, text, faults, whole=name in _WHOLE)
    if changes.get("weight", 0.0) is None:
        faults.append(FieldError(("weight",), "Write a number, for example 1."))
    return Read(changes, tuple(faults))


def budget_fields(found: BudgetDetail, posted: QueryDict | None = None) -> list[Field]:
    """A month's limit, its thresholds and target, with what is declared in them or what was posted."""
    values = budget_values(found)
    used = (
        f"Of the present period {wording.dollars(found.spent)} is spent and {wording.dollars(found.reserved)} reserved."
    )
    fields = [
        Field("limit", "Dollars a month, at most", values["limit"], f"Empty: no limit. In force at once. {used}"),
        Field(
            "alert_at", "Tell its owner at, %", values["alert_at"], "Of the limit; several with commas, like 80, 100."
        ),
        Field(
            "success_target",
            "Dollars a success may cost",
            values["success_target"],
            "A target to look at; stops nothing.",
        ),
        Field("reason", "Reason", help="Kept in the audit.", required=True, extra={"maxlength": "200"}),
    ]
    return _filled(fields, posted)


def budget_values(found: BudgetDetail) -> dict[str, str]:
    """What is declared of a budget, as its form holds it."""
    return {
        "limit": "" if found.monthly is None else format_usd(found.monthly),
        "alert_at": ", ".join(f"{part * _PERCENT:.6g}" for part in found.alert_at),
        "success_target": "" if found.success_target is None else format_usd(found.success_target),
    }


def read_budget(posted: QueryDict, found: BudgetDetail) -> Read:
    """What of a budget is to be changed. A field that is missing asks for nothing."""
    faults: list[FieldError] = []
    before = budget_values(found)
    changes: dict[str, Any] = {}
    for name in before:
        text = str(posted.get(name, before[name])).strip()
        if text == before[name]:
            continue
        changes[name] = _parts(text, faults) if name == "alert_at" else _dollars(name, text, faults)
    return Read(changes, tuple(faults))


def top_up_fields(posted: QueryDict | None = None) -> list[Field]:
    """How much, for how long, and why."""
    fields = [
        Field("amount", "Dollars", required=True, extra={"inputmode": "decimal"}),
        Field("lasts", "For", "14400", kind="select", options=TOP_UP_LASTS),
        Field("why", "Reason", required=True, extra={"maxlength": "200"}),
    ]
    return _filled(fields, posted)


def read_top_up(posted: QueryDict, found: BudgetDetail) -> Read:
    """An `amount` in nano-dollars, and `for_s` or `until`."""
    faults: list[FieldError] = []
    amount = _dollars("amount", posted.get("amount", "").strip(), faults)
    if amount is None and not faults:
        faults.append(FieldError(("amount",), "Write an amount of dollars, like 12.50."))
    lasts = posted.get("lasts", "")
    if lasts not in dict(TOP_UP_LASTS):
        faults.append(FieldError(("lasts",), "Choose how long it lasts."))
    if not posted.get("why", "").strip():
        faults.append(FieldError(("why",), "Say why: whoever looks at the bill will ask."))
    how = {"until": found.ends_at} if lasts == "period" else {"for_s": float(lasts) if lasts.isdecimal() else None}
    return Read({"amount": amount, **how}, tuple(faults))


def _filled(fields: Sequence[Field], posted: QueryDict | None) -> list[Field]:
    return list(fields) if posted is None else [replace(f, value=posted.get(f.name, f.value)) for f in fields]


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.10g}"


def _figure(name: str, text: str, faults: list[FieldError], *, whole: bool) -> float | int | None:
    if not text:
        return None
    try:
        value = int(text) if whole else float(text)
    except ValueError:
        value = float("nan")
    if len(text) > _CHARS_MAX or not isfinite(value):
        faults.append(FieldError((name,), f"Write a {'whole ' if whole else ''}number, for example 40."))
        return None
    return value


def _dollars(name: str, text: str, faults: list[FieldError]) -> int | None:
    plain = text.removeprefix("$").replace(",", "").strip()
    if not plain:
        return None
    try:
        return parse_usd(plain)
    except ValueError as fault:
        faults.append(FieldError((name,), str(fault)))
        return None


def _parts(text: str, faults: list[FieldError]) -> list[float]:
    parts = []
    for piece in filter(None, (each.strip().removesuffix("%").strip() for each in text.split(","))):
        value = _figure("alert_at", piece, faults, whole=False)
        parts.append(round((value or 0.0) / _PERCENT, 8))
    return [] if faults else parts
