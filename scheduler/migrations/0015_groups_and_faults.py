"""Groups are listed newest first, and a schedule that cannot be decided says why."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("scheduler", "0005_schedules")]

    operations = [
        migrations.AddField(
            model_name="schedule",
            name="fault",
            field=models.CharField(blank=True, db_default="", default="", max_length=500),
        ),
        migrations.AddField(
            model_name="schedule", name="faulted_at", field=models.DateTimeField(blank=True, null=True)
        ),
        migrations.AddIndex(
            model_name="taskgroup", index=models.Index(fields=["tenant", "-id"], name="task_group_newest")
        ),
    ]
