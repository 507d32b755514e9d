"""How fast budgets are spent: what they had spent some minutes ago, and one formula for what follows from it.

And the class of what was charged.
"""

from django.db import migrations, models

BURN = """
CREATE FUNCTION burn_nano_per_hour(spent_nano bigint, old_nano bigint, old_at timestamptz, at timestamptz)
RETURNS float8 LANGUAGE sql IMMUTABLE AS $$
    -- From the mark, or from ten minutes ago when nothing was spent since the mark: marks of idle budgets do not move.
    SELECT CASE WHEN at - old_at >= interval '1 minute' THEN
        greatest(0, spent_nano - old_nano) * 3600.0
        / extract(epoch FROM at - greatest(old_at, at - interval '10 minutes'))::float8
    END
$$;
"""


class Migration(migrations.Migration):
    dependencies = [("scheduler", "0060_bound_accounts")]

    operations = [
        migrations.CreateModel(
            name="BurnMark",
            fields=[
                ("budget", models.BigIntegerField(db_column="budget_id", primary_key=True, serialize=False)),
                ("old_nano", models.BigIntegerField()),
                ("old_at", models.DateTimeField()),
                ("mid_nano", models.BigIntegerField()),
                ("mid_at", models.DateTimeField()),
            ],
            options={"db_table": "burn_mark"},
        ),
        migrations.AddIndex(
            model_name="budget",
            index=models.Index(
                condition=models.Q(("scope", "tenant")), fields=["period_end"], name="budget_in_force_by_end"
            ),
        ),
        migrations.AddField(model_name="ledgerentry", name="priority", field=models.SmallIntegerField(null=True)),
        migrations.RunSQL(BURN, "DROP FUNCTION burn_nano_per_hour"),
    ]
