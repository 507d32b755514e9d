"""Forms that ask a service: it is called within the validation of the form, in the transaction of the request.

What it refuses stands beside the field that is at fault, and nothing is changed; what it did is not saved once more.
"""

from __future__ import annotations

from typing import Any, ClassVar, Final

from django import forms
from django.contrib.admin import ModelAdmin
from django.http import HttpRequest

from scheduler.admin.paging import CappedPaginator
from scheduler.errors import CronoqError
from scheduler.policy.money import format_usd, parse_usd

VIEW: Final = "scheduler.view_console"


class UsdField(forms.CharField):
    """An amount of dollars as text; whole nano-dollars inside."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**{"required": False, "help_text": 'US dollars, like "12.50".', **options})

    def prepare_value(self, value: Any) -> Any:
        """Nano-dollars as text; what somebody typed as it is."""
        return format_usd(value) if isinstance(value, int) else value

    def clean(self, value: Any) -> Any:
        """Nano-dollars, None when it is left empty."""
        text = super().clean(value)
        try:
            return parse_usd(text) if text else None
        except ValueError as fault:
            raise forms.ValidationError(str(fault)) from None

    def has_changed(self, initial: Any, data: Any) -> bool:
        """Whether the text stands for another amount."""
        return str(self.prepare_value(initial) or "") != str(data or "").strip()


class AskingForm(forms.ModelForm):  # type: ignore[type-arg]  # generic in its stubs only
    """A form whose changes a service makes: `add` and `edit` call it and answer the row's primary key."""

    actor: ClassVar[str] = ""
    at_fault: ClassVar[dict[str, str]] = {}
    """Fields of the form by what the service calls them, where the names differ."""

    reason = forms.CharField(required=False, max_length=200, help_text="Why. Kept in the audit.")
    version = forms.IntegerField(required=False, widget=forms.HiddenInput)

    saved: int | None = None

    def full_clean(self) -> None:
        """Check the input, then ask the service."""
        super().full_clean()
        if not self.is_bound or self.errors:
            return
        try:
            self.saved = self._ask()
        except CronoqError as refusal:
            self._tell(refusal)

    def _ask(self) -> int:
        if self.instance.pk is None:
            return self.add()
        changed = {name: self.cleaned_data[name] for name in self.changed_data if name not in {"reason", "version"}}
        return self.edit(self.cleaned_data["version"] or 0, changed) if changed else int(self.instance.pk)

    def _tell(self, refusal: CronoqError) -> None:
        for each in refusal.errors:
            named = str(each.loc[-1]) if each.loc else ""
            name = self.at_fault.get(named, named)
            self.add_error(name if name in self.fields and name != "version" else None, each.msg)
        if not refusal.errors or "version" in {str(each.loc[-1]) for each in refusal.errors if each.loc}:
            self.add_error(None, refusal.detail)

    def said(self) -> dict[str, Any]:
        """Who asks, through which door, and why, as the services take it."""
        return {"actor": self.actor, "reason": self.cleaned_data["reason"], "source": "admin"}

    def add(self) -> int:
        """Ask for a new one."""
        raise NotImplementedError

    def edit(self, version: int, changes: dict[str, Any]) -> int:
        """Ask for these changes to the version that was looked at."""
        raise NotImplementedError


class AskingAdmin(ModelAdmin):  # type: ignore[type-arg]  # as above
    """Pages over an `AskingForm`: who holds `permission` may add and change; nobody deletes."""

    permission: ClassVar[str] = ""
    fixed: ClassVar[tuple[str, ...]] = ()
    """Fields that are chosen when it is added and never change."""

    actions = None
    paginator = CappedPaginator
    show_full_result_count = False
    list_per_page = 50

    def get_form(self, request: HttpRequest, obj: Any = None, change: bool = False, **kwargs: Any) -> Any:  # noqa: FBT001, FBT002 - Django's signature
        """The form, which knows who asks."""
        form = super().get_form(request, obj, change=change, **kwargs)
        return type(form.__name__, (form,), {"actor": request.user.get_username()})

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> Any:
        """What never changes once it is there."""
        always = super().get_readonly_fields(request, obj)
        return always if obj is None else [*always, *self.fixed]

    def save_model(self, request: HttpRequest, obj: Any, form: Any, change: bool) -> None:  # noqa: ARG002, FBT001 - Django's signature
        """The service has done it: look at what came of it."""
        obj.pk = form.saved
        obj.refresh_from_db()

    def has_module_permission(self, request: HttpRequest) -> bool:
        """Whoever may see it."""
        return self.has_view_permission(request)

    def has_view_permission(self, request: HttpRequest, obj: Any = None) -> bool:  # noqa: ARG002 - Django's signature
        """Whoever sees the console."""
        return request.user.has_perm(VIEW) or request.user.has_perm(self.permission)

    def has_add_permission(self, request: HttpRequest) -> bool:
        """Whoever holds the permission."""
        return request.user.has_perm(self.permission)

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:  # noqa: ARG002 - Django's signature
        """Whoever holds the permission."""
        return request.user.has_perm(self.permission)

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:  # noqa: ARG002 - Django's signature
        """Nobody: work, money and the audit refer to it."""
        return False
