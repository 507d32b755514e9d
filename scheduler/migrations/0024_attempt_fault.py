"""What Python functions raised, for those who ask for results through Django's tasks."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("scheduler", "0015_groups_and_faults"),
    ]

    operations = [
        migrations.CreateModel(
            name="AttemptFault",
            fields=[
                ("lease_id", models.BigIntegerField(primary_key=True, serialize=False)),
                ("task_id", models.BigIntegerField()),
                ("exception", models.CharField(max_length=300)),
                ("traceback", models.TextField()),
            ],
            options={
                "db_table": "attempt_fault",
                "indexes": [models.Index(fields=["task_id", "lease_id"], name="attempt_fault_by_task")],
            },
        ),
    ]
