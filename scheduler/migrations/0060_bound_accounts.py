"""Accounts that see one tenant only."""

import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("auth", "0012_alter_user_first_name_max_length"),
        ("scheduler", "0026_console_permissions"),
    ]

    operations = [
        migrations.CreateModel(
            name="BoundAccount",
            fields=[
                (
                    "user",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE,
                        primary_key=True,
                        related_name="bound_to",
                        serialize=False,
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "tenant",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="bound_accounts",
                        to="scheduler.tenant",
                    ),
                ),
            ],
            options={
                "db_table": "bound_account",
                "permissions": [
                    (
                        "view_own_tenant",
                        "May see the page of the tenant that the account is bound to, and nothing else",
                    ),
                    ("edit_people", "May create accounts, and change what they may do"),
                ],
                "default_permissions": (),
            },
        ),
    ]
