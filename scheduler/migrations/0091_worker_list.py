"""Workers are listed by name, page by page."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("scheduler", "0080_pause_ends"),
    ]

    operations = [
        migrations.AddIndex(
            model_name="worker",
            index=models.Index(fields=["name", "id"], name="worker_by_name"),
        ),
    ]
