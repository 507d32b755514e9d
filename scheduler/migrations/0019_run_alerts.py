"""The caps that runs came near, and runs whose money does not pay for their next step."""

import django.db.models.functions.datetime
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("scheduler", "0021_routes"),
    ]

    operations = [
        migrations.AddField(
            model_name="runuse",
            name="spent_out",
            field=models.BooleanField(db_default=False, default=False),
        ),
        migrations.CreateModel(
            name="RunAlert",
            fields=[
                (
                    "pk",
                    models.CompositePrimaryKey(
                        "run_id", "cap", blank=True, editable=False, primary_key=True, serialize=False
                    ),
                ),
                ("run_id", models.BigIntegerField()),
                ("cap", models.CharField(max_length=10)),
                ("used", models.FloatField()),
                ("most", models.FloatField()),
                ("at", models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
            ],
            options={
                "db_table": "run_alert",
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(("cap__in", ["steps", "tokens", "cost", "wall_clock"])),
                        name="run_alert_cap_known",
                    )
                ],
            },
        ),
    ]
