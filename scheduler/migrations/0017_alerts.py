"""Alerts of budgets, where they are posted, and what a success may cost."""

import django.db.models.functions.datetime
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("scheduler", "0025_events"),
    ]

    operations = [
        migrations.AddField(
            model_name="tenant",
            name="success_target_nano",
            field=models.BigIntegerField(blank=True, null=True),
        ),
        migrations.CreateModel(
            name="Alert",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("scope", models.CharField(max_length=6)),
                ("scope_id", models.BigIntegerField()),
                ("tenant_id", models.BigIntegerField()),
                ("budget_id", models.BigIntegerField()),
                ("threshold", models.FloatField()),
                ("limit_nano", models.BigIntegerField()),
                ("spent_nano", models.BigIntegerField()),
                ("at", models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ("tries", models.SmallIntegerField(db_default=0, default=0)),
                ("next_at", models.DateTimeField(db_default=django.db.models.functions.datetime.Now(), null=True)),
                ("told_at", models.DateTimeField(null=True)),
                ("fault", models.CharField(blank=True, db_default="", max_length=300)),
            ],
            options={
                "db_table": "alert",
                "indexes": [
                    models.Index(condition=models.Q(("next_at__isnull", False)), fields=["next_at"], name="alert_due"),
                    models.Index(fields=["tenant_id", "-id"], name="alert_by_tenant"),
                ],
                "constraints": [
                    models.UniqueConstraint(fields=("budget_id", "threshold"), name="alert_once_per_threshold")
                ],
            },
        ),
        migrations.CreateModel(
            name="AlertTarget",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("tenant_id", models.BigIntegerField(null=True)),
                ("url", models.CharField(max_length=2000)),
                ("secret", models.CharField(max_length=100)),
                (
                    "created_at",
                    models.DateTimeField(db_default=django.db.models.functions.datetime.Now(), editable=False),
                ),
            ],
            options={
                "db_table": "alert_target",
                "constraints": [
                    models.UniqueConstraint(
                        fields=("tenant_id", "url"), name="alert_target_per_url", nulls_distinct=False
                    )
                ],
            },
        ),
    ]
