"""Tenants, their budgets, pools and shared limits in the administration."""

from __future__ import annotations

from typing import Any, ClassVar

from django import forms
from django.contrib import admin
from django.http import HttpRequest
from django.urls import reverse

from scheduler.admin.forms import AskingAdmin, AskingForm, UsdField
from scheduler.models import Pool, Resource, Tenant, TenantBudget
from scheduler.policy.declarations import LimitSettings, PoolSettings, QuotaSettings
from scheduler.policy.graph import UnknownDependency
from scheduler.policy.money import format_usd
from scheduler.policy.types import ResourceKind
from scheduler.reads.money import budget_detail
from scheduler.services.budgets import edit_budget
from scheduler.services.pools import add_pool, edit_pool
from scheduler.services.resources import add_resource, edit_resource
from scheduler.services.tenants import add_tenant, edit_tenant

QUOTA = ("start_rate", "start_burst", "max_in_flight", "max_queued", "max_steps_per_run", "max_width_per_run")
LIMIT = ("rate", "burst", "permits", "margin", "ceilings")
SLOTS = ("slots_min", "slots_max", "slots")
RETRIES = ("max_attempts", "backoff_initial_s", "backoff_multiplier", "backoff_max_s", "lease_ttl_s", "timeout_s")
TIMES = ("duration_default_s", "slo")
BOUNDS = ("max_pending", "overflow", "allow_degraded", "reservable_fraction", "unknown_dependency", "await_timeout_s")


class TenantForm(AskingForm):
    """A tenant's name, weight and limits."""

    max_cost_per_run_usd = UsdField(label="A run costs at most, $", help_text='Like "12.50". Left empty: no limit.')

    class Meta:
        model = Tenant
        fields = ("slug", "name", "weight", "status", "time_zone", *QUOTA, "version")
        labels: ClassVar[dict[str, str]] = {
            "start_rate": "Starts per second, at most",
            "start_burst": "Starts at once",
            "max_in_flight": "Running at once, at most",
            "max_queued": "Waiting, at most",
            "max_steps_per_run": "Steps of a run, at most",
            "max_width_per_run": "Steps of a run at once, at most",
        }
        help_texts: ClassVar[dict[str, str]] = {
            "weight": "Its share against others that have work: twice the weight, twice the starts.",
            "time_zone": "Of its budget's months, like Europe/Berlin.",
        }

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.initial.setdefault("max_cost_per_run_usd", self.instance.max_cost_per_run_nano)

    def add(self) -> int:
        """A new tenant is active."""
        given = dict(self.cleaned_data)
        quota = QuotaSettings(
            **{name: given[name] for name in QUOTA}, max_cost_per_run_nano=given["max_cost_per_run_usd"]
        )
        named: dict[str, Any] = {name: given[name] for name in ("name", "weight", "time_zone")}
        return int(add_tenant(given["slug"], **named, quota=quota, **self.said()).id)

    def edit(self, version: int, changes: dict[str, Any]) -> int:
        """The same for the changes."""
        if "max_cost_per_run_usd" in changes:
            changes["max_cost_per_run_nano"] = changes.pop("max_cost_per_run_usd")
        return int(edit_tenant(self.instance.slug, version, changes, **self.said()).id)


@admin.register(Tenant)
class TenantAdmin(AskingAdmin):
    """Who work belongs to."""

    form = TenantForm
    permission = "scheduler.edit_tenant"
    fixed = ("slug",)
    fields = ("slug", "name", "weight", "status", "time_zone", *QUOTA, "max_cost_per_run_usd", "reason", "version")
    list_display = ("slug", "name", "status", "weight", "max_in_flight", "max_queued")
    list_filter = ("status",)
    search_fields = ("slug", "name")
    ordering = ("slug",)

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> Any:
        """A new tenant is active: its status is not asked for."""
        return [*super().get_readonly_fields(request, obj), *(() if obj else ("status",))]

    def view_on_site(self, obj: Tenant) -> str:
        """Its page in the console."""
        return reverse("ops:tenant", kwargs={"slug": obj.slug})


class BudgetForm(AskingForm):
    """What a tenant may spend in a month."""

    at_fault: ClassVar[dict[str, str]] = {"limit": "limit_usd", "success_target": "success_target_usd"}

    limit_usd = UsdField(label="Limit a month, $", help_text='Like "2000.00". Left empty: no limit.')
    success_target_usd = UsdField(label="Target per success, $", help_text="What a success may cost, waste included.")
    alert_at = forms.CharField(
        label="Told at", help_text="Parts of the limit at which its owner is told, like 0.8, 1.0.", required=False
    )

    class Meta:
        model = TenantBudget
        fields = ("version",)

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.initial = {
            **self.initial,
            "limit_usd": self.instance.monthly_budget_nano,
            "success_target_usd": self.instance.success_target_nano,
            "alert_at": ", ".join(f"{part:g}" for part in self.instance.alert_at),
        }

    def clean_alert_at(self) -> list[float]:
        """Numbers between commas."""
        try:
            return [float(part) for part in self.cleaned_data["alert_at"].split(",") if part.strip()]
        except ValueError:
            raise forms.ValidationError("Write numbers with commas between them, like 0.8, 1.0.") from None

    def edit(self, version: int, changes: dict[str, Any]) -> int:
        """The present period follows at once."""
        names = {"limit_usd": "limit", "success_target_usd": "success_target", "alert_at": "alert_at"}
        edit_budget(self.instance.slug, version, {names[name]: value for name, value in changes.items()}, **self.said())
        return int(self.instance.pk)


@admin.register(TenantBudget)
class BudgetAdmin(AskingAdmin):
    """What tenants may spend. Every tenant has one, so none is added."""

    form = BudgetForm
    permission = "scheduler.edit_budget"
    list_display = ("slug", "name", "a_month")
    readonly_fields = ("slug", "spent", "reserved")
    fields = ("slug", "limit_usd", "alert_at", "success_target_usd", "spent", "reserved", "reason", "version")
    search_fields = ("slug", "name")
    ordering = ("slug",)

    def has_add_permission(self, request: HttpRequest) -> bool:  # noqa: ARG002 - Django's signature
        """It comes with the tenant."""
        return False

    def view_on_site(self, obj: TenantBudget) -> str:
        """The tenant's page in the console, which shows how the money stands."""
        return reverse("ops:tenant", kwargs={"slug": obj.slug})

    @admin.display(description="limit a month, $")
    def a_month(self, obj: TenantBudget) -> str:
        """In dollars."""
        return "none" if obj.monthly_budget_nano is None else format_usd(obj.monthly_budget_nano)

    @admin.display(description="spent in this period, $")
    def spent(self, obj: TenantBudget) -> str:
        """By what has ended."""
        return format_usd(budget_detail(obj.slug, None).spent)

    @admin.display(description="reserved by what runs, $")
    def reserved(self, obj: TenantBudget) -> str:
        """By what runs."""
        return format_usd(budget_detail(obj.slug, None).reserved)


class PoolForm(AskingForm):
    """A pool's settings. Its autoscaling is set through the API."""

    at_fault: ClassVar[dict[str, str]] = {
        "min": "slots_min",
        "max": "slots_max",
        "initial_backoff": "backoff_initial_s",
        "multiplier": "backoff_multiplier",
        "max_backoff": "backoff_max_s",
        "lease_ttl": "lease_ttl_s",
        "timeout": "timeout_s",
        "default_duration": "duration_default_s",
        "await_timeout": "await_timeout_s",
    }

    cost_per_worker_second_usd = UsdField()

    class Meta:
        model = Pool
        fields = ("name", "executor", "config", *SLOTS, *RETRIES, *TIMES, *BOUNDS, "version")

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.initial.setdefault("cost_per_worker_second_usd", self.instance.worker_second_nano)
        if "config" in self.fields:
            self.fields["config"].required = False

    def _settings(self, given: dict[str, Any]) -> dict[str, Any]:
        given = {name: value for name, value in given.items() if name not in {"name", "executor", "reason", "version"}}
        if "cost_per_worker_second_usd" in given:
            given["worker_second_nano"] = given.pop("cost_per_worker_second_usd")
        if "unknown_dependency" in given:
            given["unknown_dependency"] = UnknownDependency(given["unknown_dependency"])
        if "config" in given:
            given["config"] = given["config"] or {}
        return given

    def add(self) -> int:
        """A new pool runs at once."""
        settings = PoolSettings(**self._settings(self.cleaned_data))
        return int(add_pool(self.cleaned_data["name"], self.cleaned_data["executor"], settings, **self.said()).id)

    def edit(self, version: int, changes: dict[str, Any]) -> int:
        """Takes effect at the next plan."""
        return int(edit_pool(self.instance.name, version, self._settings(changes), **self.said()).id)


@admin.register(Pool)
class PoolAdmin(AskingAdmin):
    """Where work runs."""

    form = PoolForm
    permission = "scheduler.operate_pool"
    fixed = ("name", "executor")
    list_display = ("name", "executor", "slots", "max_pending", "overflow")
    list_filter = ("executor",)
    search_fields = ("name",)
    ordering = ("name",)

    def view_on_site(self, obj: Pool) -> str:
        """Its page in the console."""
        return reverse("ops:pool", kwargs={"name": obj.name})


class ResourceForm(AskingForm):
    """A shared limit as declared; what goes before it for a while is set in the console."""

    class Meta:
        model = Resource
        fields = ("name", "kind", *LIMIT, "version")

    def add(self) -> int:
        """A bucket starts full."""
        given = self.cleaned_data
        settings = LimitSettings(**{name: given[name] for name in LIMIT})
        return int(add_resource(given["name"], ResourceKind(given["kind"]), settings, **self.said()).view.id)

    def edit(self, version: int, changes: dict[str, Any]) -> int:
        """Takes effect at the next plan."""
        return int(edit_resource(self.instance.name, version, changes, **self.said()).view.id)


@admin.register(Resource)
class ResourceAdmin(AskingAdmin):
    """What all pools share."""

    form = ResourceForm
    permission = "scheduler.edit_resource_limit"
    fixed = ("name", "kind")
    list_display = ("name", "kind", "rate", "burst", "permits")
    list_filter = ("kind",)
    search_fields = ("name",)
    ordering = ("name",)
