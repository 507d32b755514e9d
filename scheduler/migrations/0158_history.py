"""An hour of how pools and limits stood."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("scheduler", "0157_long_filters")]

    operations = [
        migrations.CreateModel(
            name="HistorySample",
            fields=[
                (
                    "pk",
                    models.CompositePrimaryKey(
                        "kind", "name", "at", blank=True, editable=False, primary_key=True, serialize=False
                    ),
                ),
                ("kind", models.CharField(max_length=5)),
                ("name", models.CharField(max_length=64)),
                ("at", models.DateTimeField()),
                ("waiting", models.BigIntegerField()),
                ("used", models.FloatField()),
                ("oldest_s", models.FloatField(null=True)),
            ],
            options={
                "db_table": "history_sample",
                "indexes": [models.Index(fields=["at"], name="history_sample_by_age")],
            },
        ),
    ]
