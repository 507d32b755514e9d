"""Attempts are found by their end in an index that is always whole; summaries of blocks are not while autovacuum is busy."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("scheduler", "0172_folded_arrivals")]

    operations = [
        migrations.AddIndex("attempt", models.Index(fields=["finished_at"], name="attempt_by_end")),
        migrations.RemoveIndex("attempt", "attempt_ended"),
    ]
