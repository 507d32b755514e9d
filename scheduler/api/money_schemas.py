"""What operators and owners say about money, and what they are told. Amounts are US dollars as text."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Final

from pydantic import Field

from scheduler.api.answers import In, Out, at, moment
from scheduler.api.fields import Moment, Number, Reason, Text, Usd, Version
from scheduler.api.money_fields import nano, usd
from scheduler.policy.books import AlertRow, CostRow, PriceRow, PriceSettings
from scheduler.policy.money import format_usd, parse_usd
from scheduler.reads.money import BudgetDetail, CostReport

Model = Annotated[Text, Field(min_length=1, max_length=200)]
Provider = Annotated[Text, Field(max_length=64)]


class BudgetEditIn(In):
    """What to change of a tenant's budget; what is left out stays."""

    version: Version
    limit_usd: Usd | None = Field(None, description="A month's limit, in force at once; null: none")
    alert_at: list[Number] | None = Field(None, description="Parts of the limit at which its owner is told")
    target_usd_per_success: Usd | None = Field(None, description="What a success may cost, waste included")
    reason: Reason = ""

    def changes(self) -> dict[str, Any]:
        """What was given, by the names of the service."""
        given = self.model_fields_set
        found: dict[str, Any] = {name: nano(getattr(self, field)) for field, name in _AMOUNTS.items() if field in given}
        if self.alert_at is not None:
            found["alert_at"] = self.alert_at
        return found


_AMOUNTS: Final = {"limit_usd": "limit", "target_usd_per_success": "success_target"}


class PeriodOut(Out):
    """A calendar month in the tenant's zone: from its start up to, and without, its end."""

    start: datetime
    end: datetime
    time_zone: str


class BudgetOut(Out):
    """A tenant's budget in its present period."""

    tenant: str
    version: int = Field(description="Of the tenant: send it with an edit")
    period: PeriodOut
    monthly_limit_usd: str | None = Field(description="What is declared for every month; null: no limit")
    limit_usd: str | None = Field(description="What is in force now, top-up included")
    spent_usd: str
    reserved_usd: str = Field(description="Held by attempts that run")
    left_usd: str | None
    state: str = Field(description="unlimited, ok, warned, throttled (the rest is reserved) or blocked (spent)")
    projected_usd: str = Field(description="What the period comes to if money goes on being spent like this")
    burn_usd_per_hour: str | None = Field(description="By the last ten minutes; null while too little is known")
    runs_out_at: datetime | None = Field(description="When nothing is left at that burn; null: not in this period")
    top_up_usd: str | None = Field(description="What top-ups in force add to it")
    top_up_until: datetime | None = Field(description="When the first of them ends")
    alert_at: list[float]
    target_usd_per_success: str | None


class BudgetsOut(Out):
    """Budgets by tenant."""

    budgets: list[BudgetOut]


def present_budget(found: BudgetDetail) -> BudgetOut:
    """The budget as it is sent."""
    return BudgetOut(
        tenant=found.slug,
        version=found.version,
        period=PeriodOut(start=moment(found.starts_at), end=moment(found.ends_at), time_zone=found.time_zone),
        monthly_limit_usd=usd(found.monthly),
        limit_usd=usd(found.limit),
        spent_usd=format_usd(found.spent),
        reserved_usd=format_usd(found.reserved),
        left_usd=usd(found.left),
        state=found.state.value,
        projected_usd=format_usd(found.projected),
        burn_usd_per_hour=None if found.burn is None else format_usd(int(found.burn)),
        runs_out_at=at(found.runs_out_at),
        top_up_usd=format_usd(found.top_up) if found.top_up else None,
        top_up_until=at(found.top_up_until),
        alert_at=list(found.alert_at),
        target_usd_per_success=usd(found.success_target),
    )


class PriceIn(In):
    """What a model costs, in dollars per million tokens. Cached input that is not named costs what input does."""

    model: Model
    provider: Provider = Field("", description="Only at this provider, by the pool's price_provider; else anywhere")
    input_usd_per_mtok: Usd
    output_usd_per_mtok: Usd
    cache_read_usd_per_mtok: Usd | None = None
    cache_write_usd_per_mtok: Usd | None = None
    cache_write_1h_usd_per_mtok: Usd | None = None
    from_: Moment | None = Field(None, alias="from", description="Valid from then on; from now on unless you say")
    to: Moment | None = Field(None, description="Valid until then")
    reason: Reason = ""

    def settings(self) -> PriceSettings:
        """The price as the services take it."""
        return PriceSettings(
            model=self.model,
            provider=self.provider,
            input=parse_usd(self.input_usd_per_mtok),
            output=parse_usd(self.output_usd_per_mtok),
            cache_read=nano(self.cache_read_usd_per_mtok),
            cache_write=nano(self.cache_write_usd_per_mtok),
            cache_write_1h=nano(self.cache_write_1h_usd_per_mtok),
            valid_from=None if self.from_ is None else self.from_.timestamp(),
            valid_to=None if self.to is None else self.to.timestamp(),
        )


class PriceEditIn(In):
    """What to change of a price; what is left out stays."""

    version: Version
    input_usd_per_mtok: Usd | None = None
    output_usd_per_mtok: Usd | None = None
    cache_read_usd_per_mtok: Usd | None = None
    cache_write_usd_per_mtok: Usd | None = None
    cache_write_1h_usd_per_mtok: Usd | None = None
    from_: Moment | None = Field(None, alias="from")
    to: Moment | None = Field(None, description="null: valid for good")
    reason: Reason = ""

    def changes(self) -> dict[str, Any]:
        """What was given, by the names of `PriceSettings`."""
        given = self.model_fields_set
        found: dict[str, Any] = {}
        for name in ("input", "output", "cache_read", "cache_write", "cache_write_1h"):
            field = f"{name}_usd_per_mtok"
            value = getattr(self, field)
            if field in given and (value is not None or name.startswith("cache")):
                found[name] = nano(value)
        if self.from_ is not None:
            found["valid_from"] = self.from_.timestamp()
        if "to" in given:
            found["valid_to"] = None if self.to is None else self.to.timestamp()
        return found


class PriceOut(Out):
    """An operator's price, in dollars per million tokens."""

    id: int
    model: str
    provider: str
    input_usd_per_mtok: str
    output_usd_per_mtok: str
    cache_read_usd_per_mtok: str | None
    cache_write_usd_per_mtok: str | None
    cache_write_1h_usd_per_mtok: str | None
    valid_from: datetime
    valid_to: datetime | None
    version: int


class PricesOut(Out):
    """Operators' prices by model. Models without one cost what is published, if that is known."""

    prices: list[PriceOut]


def present_price(row: PriceRow) -> PriceOut:
    """The price as it is sent."""
    s = row.settings
    return PriceOut(
        id=row.id,
        model=s.model,
        provider=s.provider,
        input_usd_per_mtok=format_usd(s.input),
        output_usd_per_mtok=format_usd(s.output),
        cache_read_usd_per_mtok=usd(s.cache_read),
        cache_write_usd_per_mtok=usd(s.cache_write),
        cache_write_1h_usd_per_mtok=usd(s.cache_write_1h),
        valid_from=moment(s.valid_from or 0.0),
        valid_to=at(s.valid_to),
        version=row.version,
    )


class CostOut(Out):
    """What was spent on something."""

    tenant: str | None = None
    pool: str | None = None
    kind: str | None = None
    model: str | None = None
    cost_usd: str = Field(description="What providers and workers cost")
    charged_usd: str = Field(description="What budgets were charged: never more than they had left")
    waste_usd: str = Field(description="The part of the cost of attempts that did not succeed")
    waste_share: float | None
    successes: int
    usd_per_success: str | None = Field(description="All of the cost ÷ successes; null without any")
    target_usd_per_success: str | None = None


class CostReportOut(Out):
    """What was spent from a time up to another."""

    from_: datetime = Field(serialization_alias="from")
    to: datetime
    total: CostOut
    rows: list[CostOut]


def present_cost(found: CostReport, only: str | None) -> CostReportOut:
    """The report as it is sent; `only`: the tenant that all of it is about."""
    targets = found.targets
    rows = [_cost(row, targets.get(row.tenant or only or "")) for row in found.rows]
    return CostReportOut(
        from_=moment(found.starts_at),
        to=moment(found.ends_at),
        total=_cost(found.total, targets.get(only or "")),
        rows=rows,
    )


def _cost(row: CostRow, target: int | None) -> CostOut:
    return CostOut(
        tenant=row.tenant,
        pool=row.pool,
        kind=row.kind,
        model=row.model,
        cost_usd=format_usd(row.cost),
        charged_usd=format_usd(row.charged),
        waste_usd=format_usd(row.waste),
        waste_share=round(row.waste / row.cost, 4) if row.cost else None,
        successes=row.successes,
        usd_per_success=format_usd(-(-row.cost // row.successes)) if row.successes else None,
        target_usd_per_success=usd(target),
    )


class AlertOut(Out):
    """A budget reached a part of its limit."""

    id: int
    scope: str
    tenant: str
    run: int | None
    threshold: float
    limit_usd: str
    spent_usd: str
    period_start: datetime | None
    period_end: datetime | None
    at: datetime


class AlertsOut(Out):
    """A page of alerts, newest first."""

    alerts: list[AlertOut]
    next_before: int | None = Field(description="Pass it as `before` for the next page; null at the end")


def present_alert(row: AlertRow) -> AlertOut:
    """The alert as it is sent."""
    return AlertOut(
        id=row.id,
        scope=row.scope,
        tenant=row.tenant,
        run=row.scope_id if row.scope == "run" else None,
        threshold=row.threshold,
        limit_usd=format_usd(row.limit),
        spent_usd=format_usd(row.spent),
        period_start=at(row.period_start),
        period_end=at(row.period_end),
        at=moment(row.at),
    )
