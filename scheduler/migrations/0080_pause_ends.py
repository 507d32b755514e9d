"""A pause of a pool may end by itself at a time that was said with it."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("scheduler", "0096_top_ups"),
    ]

    operations = [
        migrations.AddField(
            model_name="pool",
            name="resume_at",
            field=models.DateTimeField(blank=True, null=True),
        ),
    ]
