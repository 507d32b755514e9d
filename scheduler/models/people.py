"""Which accounts see one tenant only. Accounts, groups and permissions themselves are Django's own tables."""

from __future__ import annotations

from django.conf import settings
from django.db import models

from scheduler.models.tenants import Tenant


class BoundAccount(models.Model):
    """An account that sees one tenant and nothing of any other."""

    user = models.OneToOneField(
        settings.AUTH_USER_MODEL, primary_key=True, on_delete=models.CASCADE, related_name="bound_to"
    )
    tenant = models.ForeignKey(Tenant, on_delete=models.PROTECT, related_name="bound_accounts")

    class Meta:
        db_table = "bound_account"
        default_permissions = ()
        permissions = [
            ("view_own_tenant", "May see the page of the tenant that the account is bound to, and nothing else"),
            ("edit_people", "May create accounts, and change what they may do"),
        ]

    def __str__(self) -> str:
        return f"{self.user_id} sees {self.tenant_id}"


class SignInCount(models.Model):
    """How often signing in was tried of late for one key: a name, an address, or a name at an address.

    `key` is a keyed digest, so that the table tells neither names nor addresses. `tries` leaks away with time; before
    `free_at` no further try is looked at. `known`: the name has signed in from the address.
    """

    key = models.CharField(primary_key=True, max_length=32)
    tries = models.FloatField()
    known = models.BooleanField()
    last_at = models.DateTimeField()
    free_at = models.DateTimeField()

    class Meta:
        db_table = "sign_in_count"
        default_permissions = ()
        # store/sql/sign_ins.sql: forget
        indexes = [models.Index(name="sign_in_count_by_time", fields=["known", "last_at"])]
