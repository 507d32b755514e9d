"""What operators say about tenants and their limits, and what they are told."""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal

from pydantic import Field

from scheduler.api.answers import In, Out
from scheduler.api.fields import Number, Reason, Text, Usd, Version, Whole
from scheduler.api.money_fields import nano, usd
from scheduler.policy.declarations import QuotaSettings
from scheduler.reads.tenants import TenantDetail


class QuotaIn(In):
    """A tenant's own limits. What is left out stays; null lifts it."""

    start_rate: Annotated[Number, Field(ge=0)] | None = Field(None, description="Starts per second; 0: none")
    start_burst: Annotated[Number, Field(ge=1)] | None = Field(None, description="Starts at once; a second's worth")
    max_in_flight: Whole | None = Field(None, description="Attempts that run at once")
    max_queued: Whole | None = Field(None, description="Tasks that wait, whatever for; one more is refused")
    max_steps_per_run: Annotated[Whole, Field(ge=1)] | None = Field(None, description="Steps of a run (20)")
    max_width_per_run: Annotated[Whole, Field(ge=1)] | None = Field(None, description="Steps of a run at once (8)")
    max_cost_per_run_usd: Usd | None = Field(None, description="Dollars that a run may cost")
    monthly_budget_usd: Usd | None = Field(None, description="Dollars for a calendar month in the tenant's zone")
    alert_at: list[Number] = Field(default=[], description="Parts of the month's budget at which its owner is told")

    def by_name(self) -> dict[str, Any]:
        """The limits given, by the names of `QuotaSettings`."""
        given = {name: getattr(self, name) for name in self.model_fields_set if name not in _OF_MONEY}
        if "max_cost_per_run_usd" in given:
            given["max_cost_per_run_nano"] = nano(given.pop("max_cost_per_run_usd"))
        return given

    def of_money(self) -> dict[str, Any]:
        """What was given about the month's budget, by the names of the service."""
        given = {_OF_MONEY[name]: getattr(self, name) for name in self.model_fields_set if name in _OF_MONEY}
        return given | ({"limit": nano(given["limit"])} if "limit" in given else {})


_OF_MONEY: Final = {"monthly_budget_usd": "limit", "alert_at": "alert_at"}


class TenantIn(In):
    """A tenant to declare."""

    slug: Text
    name: Text = ""
    weight: Number = Field(1.0, description="Its share against other tenants; 0: served when nobody else waits")
    time_zone: Text = "UTC"
    quota: QuotaIn | None = None
    reason: Reason = ""

    def limits(self) -> QuotaSettings:
        """Its limits."""
        return QuotaSettings(**({} if self.quota is None else self.quota.by_name()))

    def budget(self) -> dict[str, Any]:
        """What is said of its month's budget."""
        return {} if self.quota is None else self.quota.of_money()


class TenantEditIn(In):
    """What to change of a tenant; what is left out stays."""

    version: Version
    name: Text | None = None
    weight: Number | None = None
    status: Literal["active", "suspended"] | None = None
    time_zone: Text | None = None
    quota: QuotaIn | None = None
    reason: Reason = ""

    def changes(self) -> dict[str, Any]:
        """What was given, limits by the names of `QuotaSettings`."""
        named = {name: getattr(self, name) for name in ("name", "weight", "status", "time_zone")}
        limits = {} if self.quota is None else self.quota.by_name()
        return {name: value for name, value in named.items() if value is not None} | limits

    def budget(self) -> dict[str, Any]:
        """What is said of its month's budget."""
        return {} if self.quota is None else self.quota.of_money()


class QuotaOut(Out):
    """A tenant's own limits; null is none."""

    start_rate: float | None
    start_burst: float | None
    max_in_flight: int | None
    max_queued: int | None
    max_steps_per_run: int | None
    max_width_per_run: int | None
    max_cost_per_run_usd: str | None
    monthly_budget_usd: str | None
    alert_at: list[float]


class UseOut(Out):
    """What a tenant uses of its limits now."""

    in_flight: int
    queued: int = Field(description="Tasks that wait, whatever for")
    start_level: float | None = Field(description="Starts that its rate allows at once; null without a rate")


class TenantOut(Out):
    """A tenant."""

    slug: str
    name: str
    weight: float
    status: str
    time_zone: str
    version: int
    quota: QuotaOut
    use: UseOut


class TenantsOut(Out):
    """Tenants by slug."""

    tenants: list[TenantOut]


def present_tenant(found: TenantDetail) -> TenantOut:
    """The tenant as it is sent."""
    quota, level = found.quota, found.start_level
    return TenantOut(
        slug=found.slug,
        name=found.name,
        weight=found.weight,
        status=found.status,
        time_zone=found.time_zone,
        version=found.version,
        quota=QuotaOut(
            start_rate=quota.start_rate,
            start_burst=quota.start_burst,
            max_in_flight=quota.max_in_flight,
            max_queued=quota.max_queued,
            max_steps_per_run=quota.max_steps_per_run,
            max_width_per_run=quota.max_width_per_run,
            max_cost_per_run_usd=usd(quota.max_cost_per_run_nano),
            monthly_budget_usd=usd(found.monthly_nano),
            alert_at=list(found.alert_at),
        ),
        use=UseOut(
            in_flight=found.in_flight,
            queued=found.queued,
            start_level=None if level is None else round(level, 3),
        ),
    )
