"""Filters that people keep under a name."""

import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("scheduler", "0105_pressing"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name="SavedFilter",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("name", models.CharField(max_length=60)),
                ("filter", models.CharField(max_length=1000)),
                ("created_by", models.CharField(max_length=200)),
                ("created_at", models.DateTimeField()),
                (
                    "owner",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="saved_filters",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
            options={
                "db_table": "saved_filter",
                "default_permissions": (),
                "constraints": [
                    models.UniqueConstraint(fields=("owner", "name"), name="saved_filter_once_per_owner"),
                    models.UniqueConstraint(
                        condition=models.Q(("owner__isnull", True)), fields=("name",), name="saved_filter_shared_once"
                    ),
                ],
            },
        ),
    ]
