"""A test of one webhook: since when it is asked for, and when it is posted."""

from django.db import migrations, models
from django.db.models import Q


class Migration(migrations.Migration):
    dependencies = [("scheduler", "0155_schedule_by_name")]

    operations = [
        migrations.AddField(
            model_name="webhook", name="test_at", field=models.DateTimeField(editable=False, null=True)
        ),
        migrations.AddField(
            model_name="webhook", name="test_due_at", field=models.DateTimeField(editable=False, null=True)
        ),
        migrations.AddIndex(
            model_name="webhook",
            index=models.Index(
                condition=Q(("test_due_at__isnull", False)), fields=["test_due_at", "id"], name="webhook_test_due"
            ),
        ),
    ]
