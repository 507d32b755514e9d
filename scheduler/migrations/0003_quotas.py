"""Tenants' quotas; class ceilings, overrides and set-asides of limits; and the limits that are in force right now."""

import django.db.models.deletion
from django.db import migrations, models

IN_FORCE = """
CREATE VIEW resource_in_force AS
SELECT id, name, kind, margin, ceilings,
       CASE WHEN overridden THEN coalesce(override_rate, rate) ELSE rate END AS rate,
       CASE WHEN overridden THEN coalesce(override_burst, burst) ELSE burst END AS burst,
       CASE WHEN overridden THEN coalesce(override_permits, permits) ELSE permits END AS permits,
       CASE WHEN overridden THEN override_until END AS changes_at
FROM (
    SELECT r.*, coalesce(override_rate, override_burst, override_permits) IS NOT NULL
                AND (override_until IS NULL OR override_until > clock_timestamp()) AS overridden
    FROM resource r
) AS r;
ALTER TABLE tenant_state SET (fillfactor = 40);
ALTER TABLE set_aside SET (fillfactor = 40);
"""


class Migration(migrations.Migration):
    dependencies = [
        ("scheduler", "0002_counts_and_storage"),
    ]

    operations = [
        migrations.CreateModel(
            name="SetAside",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("resource_id", models.BigIntegerField()),
                ("priority", models.SmallIntegerField()),
                ("task_id", models.BigIntegerField()),
                ("amount", models.FloatField()),
                ("since", models.DateTimeField()),
            ],
            options={
                "db_table": "set_aside",
            },
        ),
        migrations.CreateModel(
            name="TenantState",
            fields=[
                (
                    "tenant",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE,
                        primary_key=True,
                        related_name="state",
                        serialize=False,
                        to="scheduler.tenant",
                    ),
                ),
                ("level", models.FloatField()),
                ("level_at", models.DateTimeField()),
            ],
            options={
                "db_table": "tenant_state",
            },
        ),
        migrations.AddField(
            model_name="resource",
            name="ceilings",
            field=models.JSONField(blank=True, null=True),
        ),
        migrations.AddField(
            model_name="resource",
            name="override_burst",
            field=models.FloatField(blank=True, null=True),
        ),
        migrations.AddField(
            model_name="resource",
            name="override_permits",
            field=models.PositiveIntegerField(blank=True, null=True),
        ),
        migrations.AddField(
            model_name="resource",
            name="override_rate",
            field=models.FloatField(blank=True, null=True),
        ),
        migrations.AddField(
            model_name="resource",
            name="override_until",
            field=models.DateTimeField(blank=True, null=True),
        ),
        migrations.AddField(
            model_name="tenant",
            name="max_in_flight",
            field=models.PositiveIntegerField(blank=True, null=True),
        ),
        migrations.AddField(
            model_name="tenant",
            name="max_queued",
            field=models.PositiveIntegerField(blank=True, null=True),
        ),
        migrations.AddField(
            model_name="tenant",
            name="start_burst",
            field=models.FloatField(blank=True, null=True),
        ),
        migrations.AddField(
            model_name="tenant",
            name="start_rate",
            field=models.FloatField(blank=True, null=True),
        ),
        migrations.AddConstraint(
            model_name="tenant",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    models.Q(("start_burst__isnull", True), ("start_rate__isnull", True)),
                    models.Q(("start_burst__gte", 1), ("start_rate__gte", 0)),
                    _connector="OR",
                ),
                name="tenant_start_rate_has_a_burst",
            ),
        ),
        migrations.AddConstraint(
            model_name="setaside",
            constraint=models.UniqueConstraint(fields=("resource_id", "priority"), name="set_aside_per_bucket_class"),
        ),
        migrations.RunSQL(IN_FORCE, "DROP VIEW resource_in_force"),
    ]
