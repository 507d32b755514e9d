"""Finds those that come after an ended task, so that it is not forgotten before they were handed its result.

What forecasts were learned from is kept in another shape from here on, and learned anew.
"""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("scheduler", "0018_ledger_indexes")]

    operations = [
        migrations.RunSQL("DELETE FROM forecast_state", migrations.RunSQL.noop),
        migrations.AddIndex(
            model_name="taskedge",
            index=models.Index(
                condition=models.Q(("met__isnull", False)), fields=["parent_id"], name="task_edge_decided"
            ),
        ),
    ]
