"""Which runs were changed since a plan looked, instead of only that one was."""

from django.db import migrations, models
from django.db.models import Q


class Migration(migrations.Migration):
    """Adds the mark of a run's last change."""

    dependencies = [("scheduler", "0070_dead_letters_and_operations")]

    operations = [
        migrations.AddField("run", "change_mark", models.BigIntegerField(null=True)),
        migrations.AddIndex(
            "run", models.Index(name="run_changed", fields=["change_mark"], condition=Q(change_mark__isnull=False))
        ),
    ]
