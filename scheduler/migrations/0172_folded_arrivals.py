"""A fold of the counts tells the planner what came to which lanes, so that it need not read all lanes anew."""

from __future__ import annotations

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("scheduler", "0171_moves")]

    operations = [
        migrations.AddField(
            model_name="foldmark",
            name="folds",
            field=models.BigIntegerField(db_default=0),
        ),
        migrations.CreateModel(
            name="FoldedArrivals",
            fields=[
                ("fold", models.BigIntegerField(primary_key=True, serialize=False)),
                ("lanes", models.JSONField(null=True)),
            ],
            options={"db_table": "folded_arrivals"},
        ),
        migrations.RunSQL(
            "DROP SEQUENCE task_fold_seq",
            "CREATE SEQUENCE task_fold_seq; SELECT nextval('task_fold_seq')",
        ),
    ]
