"""The index that finds a schedule by the beginning of its name."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("scheduler", "0170_small_tables_keep_their_size")]

    operations = [
        migrations.AddIndex(
            model_name="schedule",
            index=models.Index(fields=["name"], name="schedule_by_name", opclasses=["varchar_pattern_ops"]),
        ),
    ]
