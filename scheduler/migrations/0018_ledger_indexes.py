"""The ledger has the indexes that are read, and no others: each of them costs every end of an attempt."""

import django.contrib.postgres.indexes
from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [
        ("scheduler", "0019_run_alerts"),
    ]

    operations = [
        migrations.RemoveIndex(
            model_name="ledgerentry",
            name="ledger_by_time",
        ),
        migrations.RemoveIndex(
            model_name="ledgerentry",
            name="ledger_by_task",
        ),
        migrations.AddIndex(
            model_name="ledgerentry",
            index=django.contrib.postgres.indexes.BrinIndex(
                autosummarize=True, fields=["at"], name="ledger_by_time", pages_per_range=16
            ),
        ),
    ]
