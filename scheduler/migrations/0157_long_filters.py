"""A filter may name five hundred tasks."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("scheduler", "0156_webhook_test")]

    operations = [
        migrations.AlterField(
            model_name="operation", name="filter", field=models.CharField(blank=True, max_length=8000)
        ),
        migrations.AlterField(model_name="savedfilter", name="filter", field=models.CharField(max_length=8000)),
    ]
