"""Plans find the deadlines that press most, however many lanes have some."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("scheduler", "0140_spending_days"),
    ]

    operations = [
        migrations.AddIndex(
            model_name="task",
            index=models.Index(
                condition=models.Q(("latest_start__isnull", False), ("priority__gte", 0), ("state", "ready")),
                fields=["pool_id", "priority", "latest_start", "id"],
                name="task_ready_by_pressure",
            ),
        ),
    ]
