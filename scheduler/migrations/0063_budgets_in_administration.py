"""Budgets have a page in the administration: the rows of tenants once more."""

from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [
        ("scheduler", "0062_token_use"),
    ]

    operations = [
        migrations.CreateModel(
            name="TenantBudget",
            fields=[],
            options={
                "verbose_name": "budget",
                "proxy": True,
                "default_permissions": (),
                "indexes": [],
                "constraints": [],
            },
            bases=("scheduler.tenant",),
        ),
    ]
