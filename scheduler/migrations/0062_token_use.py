"""A token says when it was used last."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("scheduler", "0091_worker_list"),
    ]

    operations = [
        migrations.AddField(
            model_name="apitoken",
            name="last_used_at",
            field=models.DateTimeField(blank=True, editable=False, null=True),
        ),
    ]
