"""Top-ups of budgets in a table of their own: several at once, each with its end, its author and its reason.

The budget keeps those in force beside its limit, in one row, so that whoever locks the row to start or charge work sees
limit and top-ups as they are then, and a budget without any costs nothing more.
"""

import django.contrib.postgres.fields
import django.db.models.functions.datetime
from django.db import migrations, models

KEEP = """
INSERT INTO top_up (budget_id, tenant_id, amount_nano, starts_at, ends_at, actor, reason)
SELECT id, scope_id, top_up_nano, clock_timestamp(), least(top_up_until, period_end), 'system', 'kept from before'
FROM budget WHERE scope = 'tenant' AND top_up_nano > 0 AND top_up_until > clock_timestamp();
UPDATE budget b SET top_up_nanos = ARRAY[u.amount_nano], top_up_untils = ARRAY[u.ends_at]
FROM top_up u WHERE u.budget_id = b.id;
"""
OLD_VIEW = """
CREATE VIEW budget_in_force AS
SELECT b.*, limit_nano + CASE WHEN top_up_until > clock_timestamp() THEN top_up_nano ELSE 0 END AS allowed_nano
FROM budget b;
"""
VIEW = """
CREATE VIEW budget_in_force AS
SELECT b.*, limit_nano + CASE WHEN top_up_nanos IS NULL THEN 0 ELSE
    (SELECT coalesce(sum(u.nano), 0)::bigint FROM unnest(b.top_up_nanos, b.top_up_untils) AS u(nano, until)
     WHERE u.until > clock_timestamp()) END AS allowed_nano
FROM budget b;
"""


class Migration(migrations.Migration):
    dependencies = [("scheduler", "0061_audit")]

    operations = [
        migrations.CreateModel(
            name="TopUp",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("budget_id", models.BigIntegerField()),
                ("tenant_id", models.BigIntegerField()),
                ("amount_nano", models.BigIntegerField()),
                ("starts_at", models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ("ends_at", models.DateTimeField()),
                ("ended_at", models.DateTimeField(null=True)),
                ("actor", models.CharField(max_length=200)),
                ("reason", models.CharField(max_length=500)),
            ],
            options={"db_table": "top_up"},
        ),
        migrations.AddIndex(
            model_name="topup", index=models.Index(fields=["tenant_id", "-id"], name="top_up_by_tenant")
        ),
        migrations.AddIndex(
            model_name="topup", index=models.Index(fields=["budget_id", "ends_at"], name="top_up_by_budget")
        ),
        migrations.AddConstraint(
            model_name="topup",
            constraint=models.CheckConstraint(condition=models.Q(("amount_nano__gt", 0)), name="top_up_adds"),
        ),
        migrations.AddConstraint(
            model_name="topup",
            constraint=models.CheckConstraint(
                condition=models.Q(("ends_at__gt", models.F("starts_at"))), name="top_up_ends_after_it_begins"
            ),
        ),
        migrations.AddField(
            model_name="budget",
            name="top_up_nanos",
            field=django.contrib.postgres.fields.ArrayField(base_field=models.BigIntegerField(), null=True, size=None),
        ),
        migrations.AddField(
            model_name="budget",
            name="top_up_untils",
            field=django.contrib.postgres.fields.ArrayField(base_field=models.DateTimeField(), null=True, size=None),
        ),
        migrations.RunSQL(KEEP, migrations.RunSQL.noop),
        migrations.RunSQL("DROP VIEW budget_in_force", OLD_VIEW),
        migrations.RemoveConstraint(model_name="budget", name="budget_not_negative"),
        migrations.RemoveField(model_name="budget", name="top_up_nano"),
        migrations.RemoveField(model_name="budget", name="top_up_until"),
        migrations.AddConstraint(
            model_name="budget",
            constraint=models.CheckConstraint(
                condition=models.Q(("reserved_nano__gte", 0), ("spent_nano__gte", 0)), name="budget_not_negative"
            ),
        ),
        migrations.RunSQL(VIEW, "DROP VIEW budget_in_force"),
    ]
