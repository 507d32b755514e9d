"""Money: what tasks may cost, budgets with their reservations, an append-only ledger, and operators' prices."""

import django.contrib.postgres.fields
import django.db.models.functions.datetime
from django.db import migrations, models

import scheduler.models.tenants

KEPT = """
ALTER TABLE budget SET (fillfactor = 40);
CREATE VIEW budget_in_force AS
SELECT b.*, limit_nano + CASE WHEN top_up_until > clock_timestamp() THEN top_up_nano ELSE 0 END AS allowed_nano
FROM budget b;
CREATE FUNCTION ledger_is_kept() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'The ledger is append-only.';
END $$;
CREATE TRIGGER ledger_is_kept BEFORE UPDATE OR DELETE ON ledger_entry
    FOR EACH STATEMENT EXECUTE FUNCTION ledger_is_kept();
"""
UNDO = """
DROP VIEW budget_in_force;
DROP TRIGGER ledger_is_kept ON ledger_entry;
DROP FUNCTION ledger_is_kept();
"""


class Migration(migrations.Migration):
    dependencies = [
        ("scheduler", "0024_attempt_fault"),
    ]

    operations = [
        migrations.CreateModel(
            name="Budget",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("scope", models.CharField(max_length=6)),
                ("scope_id", models.BigIntegerField()),
                ("period_start", models.DateTimeField(null=True)),
                ("period_end", models.DateTimeField(null=True)),
                ("limit_nano", models.BigIntegerField(null=True)),
                ("top_up_nano", models.BigIntegerField(db_default=0, default=0)),
                ("top_up_until", models.DateTimeField(null=True)),
                ("spent_nano", models.BigIntegerField(db_default=0, default=0)),
                ("reserved_nano", models.BigIntegerField(db_default=0, default=0)),
            ],
            options={
                "db_table": "budget",
            },
        ),
        migrations.CreateModel(
            name="LedgerEntry",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("lease_id", models.BigIntegerField()),
                ("line", models.SmallIntegerField()),
                ("at", models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ("tenant_id", models.BigIntegerField()),
                ("pool_id", models.BigIntegerField()),
                ("task_id", models.BigIntegerField()),
                ("run_id", models.BigIntegerField(null=True)),
                (
                    "budget_ids",
                    django.contrib.postgres.fields.ArrayField(base_field=models.BigIntegerField(), size=None),
                ),
                ("kind", models.CharField(max_length=64)),
                ("model", models.CharField(max_length=200, null=True)),
                ("provider_cost_nano", models.BigIntegerField()),
                ("tenant_charge_nano", models.BigIntegerField()),
                ("usage", models.JSONField(null=True)),
                ("usage_source", models.CharField(max_length=9)),
                ("price_source", models.CharField(max_length=8)),
                ("outcome", models.CharField(max_length=7)),
            ],
            options={
                "db_table": "ledger_entry",
            },
        ),
        migrations.CreateModel(
            name="Price",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("model", models.CharField(max_length=200)),
                ("provider", models.CharField(blank=True, max_length=64)),
                ("input_nano", models.BigIntegerField()),
                ("output_nano", models.BigIntegerField()),
                ("cache_read_nano", models.BigIntegerField(null=True)),
                ("cache_write_nano", models.BigIntegerField(null=True)),
                ("cache_write_1h_nano", models.BigIntegerField(null=True)),
                ("valid_from", models.DateTimeField()),
                ("valid_to", models.DateTimeField(null=True)),
                ("version", models.BigIntegerField(db_default=1, default=1)),
                (
                    "created_at",
                    models.DateTimeField(db_default=django.db.models.functions.datetime.Now(), editable=False),
                ),
            ],
            options={
                "db_table": "price",
            },
        ),
        migrations.AddField(
            model_name="demand",
            name="priced",
            field=models.BooleanField(db_default=False, default=False),
        ),
        migrations.AddField(
            model_name="lease",
            name="budget_ids",
            field=django.contrib.postgres.fields.ArrayField(base_field=models.BigIntegerField(), null=True, size=None),
        ),
        migrations.AddField(
            model_name="lease",
            name="capped",
            field=models.BooleanField(db_default=False, default=False),
        ),
        migrations.AddField(
            model_name="lease",
            name="reserved_nano",
            field=models.BigIntegerField(null=True),
        ),
        migrations.AddField(
            model_name="pool",
            name="worker_second_nano",
            field=models.BigIntegerField(blank=True, null=True),
        ),
        migrations.AddField(
            model_name="task",
            name="cost_min_nano",
            field=models.BigIntegerField(null=True),
        ),
        migrations.AddField(
            model_name="task",
            name="cost_nano",
            field=models.BigIntegerField(null=True),
        ),
        migrations.AddField(
            model_name="taskpayload",
            name="pricing",
            field=models.JSONField(null=True),
        ),
        migrations.AddField(
            model_name="tenant",
            name="alert_at",
            field=django.contrib.postgres.fields.ArrayField(
                base_field=models.FloatField(),
                db_default=[0.8, 1.0],
                default=scheduler.models.tenants.default_alerts,
                size=None,
            ),
        ),
        migrations.AddField(
            model_name="tenant",
            name="monthly_budget_nano",
            field=models.BigIntegerField(blank=True, null=True),
        ),
        migrations.AlterField(
            model_name="demand",
            name="resource_ids",
            field=django.contrib.postgres.fields.ArrayField(base_field=models.BigIntegerField(), size=None),
        ),
        migrations.AddConstraint(
            model_name="demand",
            constraint=models.UniqueConstraint(fields=("resource_ids", "priced"), name="demand_per_set"),
        ),
        migrations.AddConstraint(
            model_name="budget",
            constraint=models.UniqueConstraint(
                fields=("scope", "scope_id", "period_start"), name="budget_per_scope_and_period", nulls_distinct=False
            ),
        ),
        migrations.AddConstraint(
            model_name="budget",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    models.Q(
                        ("period_end__gt", models.F("period_start")),
                        ("period_start__isnull", False),
                        ("scope", "tenant"),
                    ),
                    models.Q(("period_end__isnull", True), ("period_start__isnull", True), ("scope", "run")),
                    _connector="OR",
                ),
                name="budget_scope_known",
            ),
        ),
        migrations.AddConstraint(
            model_name="budget",
            constraint=models.CheckConstraint(
                condition=models.Q(("reserved_nano__gte", 0), ("spent_nano__gte", 0), ("top_up_nano__gte", 0)),
                name="budget_not_negative",
            ),
        ),
        migrations.AddIndex(
            model_name="ledgerentry",
            index=models.Index(fields=["tenant_id", "at"], name="ledger_by_tenant"),
        ),
        migrations.AddIndex(
            model_name="ledgerentry",
            index=models.Index(fields=["at"], name="ledger_by_time"),
        ),
        migrations.AddIndex(
            model_name="ledgerentry",
            index=models.Index(fields=["task_id"], name="ledger_by_task"),
        ),
        migrations.AddConstraint(
            model_name="ledgerentry",
            constraint=models.UniqueConstraint(fields=("lease_id", "line"), name="ledger_line_per_lease"),
        ),
        migrations.AddConstraint(
            model_name="ledgerentry",
            constraint=models.CheckConstraint(
                condition=models.Q(("outcome__in", ["success", "waste"])), name="ledger_outcome_known"
            ),
        ),
        migrations.AddConstraint(
            model_name="ledgerentry",
            constraint=models.CheckConstraint(
                condition=models.Q(("usage_source__in", ["reported", "estimated", "unknown"])),
                name="ledger_usage_source_known",
            ),
        ),
        migrations.AddConstraint(
            model_name="ledgerentry",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    ("tenant_charge_nano__gte", 0), ("tenant_charge_nano__lte", models.F("provider_cost_nano"))
                ),
                name="ledger_charge_in_bounds",
            ),
        ),
        migrations.AddConstraint(
            model_name="price",
            constraint=models.UniqueConstraint(
                fields=("model", "provider", "valid_from"), name="price_per_model_and_start"
            ),
        ),
        migrations.AddConstraint(
            model_name="price",
            constraint=models.CheckConstraint(
                condition=models.Q(("input_nano__gte", 0), ("output_nano__gte", 0)), name="price_not_negative"
            ),
        ),
        migrations.AddConstraint(
            model_name="price",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    ("valid_to__isnull", True), ("valid_to__gt", models.F("valid_from")), _connector="OR"
                ),
                name="price_ends_after_it_begins",
            ),
        ),
        migrations.RunSQL(KEPT, UNDO),
    ]
