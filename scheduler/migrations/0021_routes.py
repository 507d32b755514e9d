"""Routes: capabilities and the models that have them; the model of each attempt that was routed."""

import django.db.models.functions.datetime
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("scheduler", "0017_alerts"),
    ]

    operations = [
        migrations.CreateModel(
            name="Route",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("capability", models.CharField(max_length=64, unique=True)),
                ("options", models.JSONField()),
                ("degraded_model", models.CharField(blank=True, max_length=200, null=True)),
                ("version", models.BigIntegerField(db_default=1, default=1)),
                (
                    "created_at",
                    models.DateTimeField(db_default=django.db.models.functions.datetime.Now(), editable=False),
                ),
            ],
            options={
                "db_table": "route",
            },
        ),
        migrations.AddField(
            model_name="attempt",
            name="model",
            field=models.CharField(max_length=200, null=True),
        ),
        migrations.AddField(
            model_name="attempt",
            name="route_choice",
            field=models.SmallIntegerField(null=True),
        ),
        migrations.AddField(
            model_name="attempt",
            name="route_id",
            field=models.BigIntegerField(null=True),
        ),
        migrations.AddField(
            model_name="lease",
            name="model",
            field=models.CharField(max_length=200, null=True),
        ),
        migrations.AddField(
            model_name="lease",
            name="route_choice",
            field=models.SmallIntegerField(null=True),
        ),
        migrations.AddField(
            model_name="lease",
            name="route_id",
            field=models.BigIntegerField(null=True),
        ),
        migrations.AddField(
            model_name="taskpayload",
            name="routing",
            field=models.JSONField(null=True),
        ),
        migrations.AddIndex(
            model_name="task",
            index=models.Index(
                condition=models.Q(("links__gte", 8), ("state", "ready")), fields=["id"], name="task_routed"
            ),
        ),
    ]
