"""Sums of the ledger by day. They are made by the leading engine from the first entry on; until then pages read it."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("scheduler", "0125_lease_charges")]

    operations = [
        migrations.CreateModel(
            name="SpendingDay",
            fields=[
                (
                    "pk",
                    models.CompositePrimaryKey(
                        "scope_id", "day", "by", "what", blank=True, editable=False, primary_key=True, serialize=False
                    ),
                ),
                ("scope_id", models.BigIntegerField()),
                ("day", models.DateField()),
                ("by", models.CharField(max_length=6)),
                ("what", models.CharField(max_length=200)),
                ("cost_nano", models.BigIntegerField()),
                ("charge_nano", models.BigIntegerField()),
                ("waste_nano", models.BigIntegerField()),
                ("successes", models.BigIntegerField()),
            ],
            options={"db_table": "spending_day"},
        ),
        migrations.CreateModel(
            name="SpendingMark",
            fields=[
                ("id", models.SmallIntegerField(primary_key=True, serialize=False)),
                ("summed_id", models.BigIntegerField(db_default=0, default=0)),
                ("end_id", models.BigIntegerField(db_default=0, default=0)),
                ("end_xid", models.BigIntegerField(db_default=0, default=0)),
            ],
            options={"db_table": "spending_mark"},
        ),
    ]
