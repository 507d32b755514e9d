"""People and groups in the administration. Whoever changes what somebody may do is in the audit, in the same breath."""

from __future__ import annotations

from typing import Any, Final

from django import forms
from django.contrib import admin
from django.contrib.auth.admin import GroupAdmin, UserAdmin
from django.contrib.auth.forms import AdminUserCreationForm, UserChangeForm
from django.contrib.auth.models import Group, Permission, User
from django.db import transaction
from django.http import HttpRequest, HttpResponse

from scheduler.admin.paging import CappedPaginator
from scheduler.models import Tenant
from scheduler.policy.roles import Role, fault_in_role
from scheduler.reads.people import tenant_of_account
from scheduler.services.changes import Author
from scheduler.services.people import bind, note_group, note_password, note_person, standing_of, standing_of_group

EDIT: Final = "scheduler.edit_people"


def author_of(request: HttpRequest) -> Author:
    """Who changes it, and why."""
    return Author(request.user.get_username(), "admin", request.POST.get("reason", "").strip()[:200])


class PersonForm(UserChangeForm):  # type: ignore[type-arg]  # generic in its stubs only
    """An account, its groups, and the one tenant that a tenant-viewer sees."""

    tenant = forms.ModelChoiceField(Tenant.objects.order_by("slug"), required=False, to_field_name="slug")
    reason = forms.CharField(required=False, max_length=200, help_text="Why. Kept in the audit.")

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if self.instance.pk:
            self.initial["tenant"] = tenant_of_account(self.instance.pk)

    def clean(self) -> dict[str, Any]:
        """Exactly a tenant-viewer is bound to a tenant, and to nothing else."""
        given = super().clean() or {}
        names, tenant = {group.name for group in given.get("groups", ())}, given.get("tenant")
        roles = [role for role in Role if role.value in names]
        slug = None if tenant is None else tenant.slug
        faults = {fault_in_role(role, slug) for role in roles or ([Role.VIEWER] if tenant else [])}
        if tenant is not None and (given.get("is_superuser") or given.get("is_staff")):
            faults.add("Somebody who sees one tenant is neither staff nor a superuser.")
        for fault in sorted(filter(None, faults)):
            self.add_error("tenant", fault)
        return given


class _People:
    """What pages of accounts and groups have in common."""

    actions = None
    paginator = CappedPaginator
    show_full_result_count = False
    list_per_page = 50

    def has_module_permission(self, request: HttpRequest) -> bool:
        """Whoever may change people."""
        return request.user.has_perm(EDIT)

    def has_view_permission(self, request: HttpRequest, obj: Any = None) -> bool:  # noqa: ARG002 - Django's signature
        """Whoever may change people."""
        return request.user.has_perm(EDIT)

    def has_add_permission(self, request: HttpRequest) -> bool:
        """Whoever may change people."""
        return request.user.has_perm(EDIT)

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:  # noqa: ARG002 - Django's signature
        """Nobody: the audit names them. An account is deactivated instead."""
        return False


admin.site.unregister(User)
admin.site.unregister(Group)


@admin.register(User)
class PersonAdmin(_People, UserAdmin):  # type: ignore[misc,type-arg]  # the mixture is right; stubs type it as generic
    """Accounts. Only a superuser changes superusers, or makes one."""

    form = PersonForm
    add_form = AdminUserCreationForm
    fieldsets = (
        (None, {"fields": ("username", "password")}),
        ("What they may do", {"fields": ("is_active", "groups", "tenant", "is_staff", "is_superuser", "reason")}),
    )
    list_display = ("username", "is_active", "is_staff", "is_superuser", "last_login")
    list_filter = ("is_active", "is_staff", "groups")
    search_fields = ("username",)
    filter_horizontal = ()

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Whoever may change people, and superusers for superusers."""
        return request.user.has_perm(EDIT) and not (obj and obj.is_superuser and not request.user.is_superuser)

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> Any:  # noqa: ARG002 - Django's signature
        """Who may do everything is for those who may."""
        return () if request.user.is_superuser else ("is_superuser",)

    def save_model(self, request: HttpRequest, obj: Any, form: Any, change: bool) -> None:  # noqa: FBT001 - Django's signature
        """Remember how the account stood."""
        form.before = standing_of(User.objects.get(pk=obj.pk)) if change else {}
        super().save_model(request, obj, form, change)

    def save_related(self, request: HttpRequest, form: Any, formsets: Any, change: bool) -> None:  # noqa: FBT001 - Django's signature
        """Groups are saved by now: bind the account, and tell the audit."""
        super().save_related(request, form, formsets, change)
        if "tenant" in form.cleaned_data:
            bind(form.instance, form.cleaned_data["tenant"] and form.cleaned_data["tenant"].slug)
        note_person(form.instance, form.before, author_of(request))

    def user_change_password(self, request: HttpRequest, id: str, form_url: str = "") -> HttpResponse:  # noqa: A002 - Django's signature
        """Another password, and the audit in the same transaction."""
        with transaction.atomic():
            before = User.objects.filter(pk=id).values_list("password", flat=True).first()
            response = super().user_change_password(request, id, form_url)
            after = User.objects.filter(pk=id).first()
            if after is not None and after.password != before:
                note_password(after, author_of(request))
            return response


class GroupForm(forms.ModelForm):  # type: ignore[type-arg]  # as above
    """A group of its own kind; permissions of the console only."""

    reason = forms.CharField(required=False, max_length=200, help_text="Why. Kept in the audit.")
    permissions = forms.ModelMultipleChoiceField(
        Permission.objects.filter(content_type__app_label="scheduler", content_type__model__in=("pool", "boundaccount"))
        .select_related("content_type")
        .order_by("codename"),
        required=False,
    )

    class Meta:
        model = Group
        fields = ("name", "permissions")


@admin.register(Group)
class GroupsAdmin(_People, GroupAdmin):  # type: ignore[misc]  # as above
    """Groups. Those that are roles are declared by the product, and only looked at."""

    form = GroupForm
    fields = ("name", "permissions", "reason")
    filter_horizontal = ()

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Whoever may change people, and no role."""
        return request.user.has_perm(EDIT) and not (obj and obj.name in set(Role))

    def save_model(self, request: HttpRequest, obj: Any, form: Any, change: bool) -> None:  # noqa: FBT001 - Django's signature
        """Remember what the group could do."""
        form.before = standing_of_group(Group.objects.get(pk=obj.pk)) if change else {}
        super().save_model(request, obj, form, change)

    def save_related(self, request: HttpRequest, form: Any, formsets: Any, change: bool) -> None:  # noqa: FBT001 - Django's signature
        """Its permissions are saved by now: tell the audit."""
        super().save_related(request, form, formsets, change)
        note_group(form.instance, form.before, author_of(request))
