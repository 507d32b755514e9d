"""Runs are listed by state, by tenant and by age without reading the others."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("scheduler", "0095_burn"),
    ]

    operations = [
        migrations.AddIndex(
            model_name="run",
            index=models.Index(fields=["state", "-id"], name="run_by_state"),
        ),
        migrations.AddIndex(
            model_name="run",
            index=models.Index(fields=["tenant", "state", "-id"], name="run_by_tenant_state"),
        ),
        migrations.AddIndex(
            model_name="run",
            index=models.Index(fields=["-created_at"], name="run_by_age"),
        ),
        migrations.AddIndex(
            model_name="run",
            index=models.Index(
                condition=models.Q(("finished_at__isnull", False)), fields=["state", "-finished_at"], name="run_ended"
            ),
        ),
    ]
