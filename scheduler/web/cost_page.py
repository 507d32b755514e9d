"""What the money went on: by day, tenant, model, pool, kind and class, with its waste and the prices in force."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final
from urllib.parse import urlencode
from zoneinfo import ZoneInfo

from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from django.views.decorators.http import require_safe

from scheduler.errors import NotFound
from scheduler.live import wording
from scheduler.reads.money import list_prices
from scheduler.reads.spending import BY, Spending, read_clock, spending
from scheduler.reads.tenants import TenantDetail, tenant_detail
from scheduler.services.prices import load_book
from scheduler.web import money_chart, times
from scheduler.web.access import VIEW_CONSOLE, needs
from scheduler.web.shell import missing, page
from scheduler.web.task_story import Figure

DAYS: Final = (1, 7, 30, 90)
DAYS_USUAL: Final = 30
_SAID: Final = {1: "Today", 7: "7 days", 30: "30 days", 90: "90 days"}
_PARTS: Final = {
    "": "Everything",
    "tenant": "Tenants",
    "model": "Models",
    "pool": "Pools",
    "kind": "Kinds",
    "class": "Classes",
}


@dataclass(frozen=True, slots=True)
class PriceLine:
    """What a model costs now, in dollars per million tokens. `own`: an operator says so, and not a published list."""

    model: str
    provider: str
    input: str
    output: str
    own: bool
    since: str


@require_safe
@needs(VIEW_CONSOLE)
def cost(request: HttpRequest) -> HttpResponse:
    """What was spent, of all tenants or of one, over some days of its zone, the last of which is today."""
    asked = request.GET.get("days", "")
    days = int(asked) if asked in {str(each) for each in DAYS} else DAYS_USUAL
    by = request.GET.get("by", "") if request.GET.get("by", "") in BY else ""
    try:
        owner = tenant_detail(slug, None) if (slug := request.GET.get("tenant", "")) else None
    except NotFound as fault:
        return missing(request, fault.detail, near_at=reverse("ops:cost"))
    by = by if owner is None or by != "tenant" else ""
    zone = "UTC" if owner is None else owner.time_zone
    now = read_clock()
    found = spending(_start(now, days, zone), now, zone=zone, tenant=None if owner is None else owner.id)
    keys = [by] if by else [key for key in BY if owner is None or key != "tenant"]
    prices, unpriced = _prices(found, now)
    at = _Links(days, by, owner)
    return page(
        request,
        "ops/cost.html",
        title="Cost",
        nav="cost",
        owner=owner,
        zone=zone,
        since=_SAID[days].lower(),
        ranges=[(_SAID[each], at.url(days=each), each == days) for each in DAYS],
        groups=[(said, at.url(by=key), key == by) for key, said in _PARTS.items() if owner is None or key != "tenant"],
        everybody=at.url(everybody=True),
        figures=_figures(found),
        chart=money_chart.day_chart(found),
        parts=money_chart.part_tables(found, keys),
        prices=prices,
        unpriced=unpriced,
    )


@dataclass(frozen=True, slots=True)
class _Links:
    """Addresses of the same page with one thing changed."""

    days: int
    by: str
    owner: TenantDetail | None

    def url(self, *, days: int | None = None, by: str | None = None, everybody: bool = False) -> str:
        query = {
            "days": self.days if days is None else days,
            "by": self.by if by is None else by,
            "tenant": "" if self.owner is None or everybody else self.owner.slug,
        }
        kept = {name: value for name, value in query.items() if value and (name, value) != ("days", DAYS_USUAL)}
        return reverse("ops:cost") + (f"?{urlencode(kept)}" if kept else "")


def _start(now: float, days: int, zone: str) -> float:
    """When the first of so many days began there, of which today is the last."""
    today = datetime.fromtimestamp(now, UTC).astimezone(ZoneInfo(zone)).date()
    first = today - timedelta(days=days - 1)
    return datetime(first.year, first.month, first.day, tzinfo=ZoneInfo(zone)).timestamp()


def _figures(found: Spending) -> list[Figure]:
    total, number = found.total, len(found.days)
    share = wording.percent(total.waste / total.cost) if total.cost else wording.NONE
    return [
        Figure("Cost", wording.dollars(total.cost), "what providers and workers cost"),
        Figure("Per day", wording.dollars(total.cost // max(1, number)), f"over {wording.plural(number, 'day')}"),
        Figure("Per success", wording.dollars(total.per_success), "all of the cost, waste included"),
        Figure("Wasted", wording.dollars(total.waste), f"{share} went on attempts that did not succeed"),
        Figure("Charged", wording.dollars(total.charged), "to budgets: never more than they had left"),
        Figure("Successes", wording.count(total.successes), "attempts that cost something"),
    ]


def _prices(found: Spending, now: float) -> tuple[list[PriceLine], list[str]]:
    """Operators' own prices in force and the published ones of models that were used; and used models without any."""
    own = [row.settings for row in list_prices(None)]
    valid = [s for s in own if (s.valid_from or 0.0) <= now and (s.valid_to is None or now < s.valid_to)]
    lines = [
        PriceLine(
            s.model,
            s.provider,
            wording.dollars(s.input),
            wording.dollars(s.output),
            own=True,
            since="" if s.valid_from is None else times.day_and_clock(s.valid_from),
        )
        for s in valid
    ]
    anywhere = {s.model for s in valid if not s.provider}
    used = [part.what for part in found.by["model"] if part.what and part.what not in anywhere]
    book, unpriced = load_book(used), []
    for model in used:
        table = book.find(model, at=now)
        if table is None:
            unpriced.append(model)
        elif table.source != "operator":
            rates = table.rates_for(0)
            lines.append(
                PriceLine(model, "", wording.dollars(rates.input), wording.dollars(rates.output), own=False, since="")
            )
    return sorted(lines, key=lambda line: (line.model, line.provider)), unpriced
