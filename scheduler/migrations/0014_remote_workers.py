"""What remote workers are known by, and labels as a part of what tasks need."""

import django.contrib.postgres.fields
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("scheduler", "0013_breaker")]

    operations = [
        migrations.AddField(
            model_name="demand",
            name="labels",
            field=django.contrib.postgres.fields.ArrayField(
                base_field=models.CharField(max_length=130), db_default=[], default=list, size=None
            ),
        ),
        migrations.AddField(
            model_name="worker",
            name="declared",
            field=models.JSONField(db_default=models.Value({}, models.JSONField()), default=dict),
        ),
        migrations.AddField(model_name="worker", name="gateway_id", field=models.UUIDField(null=True)),
        migrations.AddField(
            model_name="worker",
            name="labels",
            field=django.contrib.postgres.fields.ArrayField(
                base_field=models.CharField(max_length=130), null=True, size=None
            ),
        ),
        migrations.AddField(model_name="worker", name="tenant_id", field=models.BigIntegerField(null=True)),
        migrations.RemoveConstraint(model_name="demand", name="demand_per_set"),
        migrations.AddConstraint(
            model_name="demand",
            constraint=models.UniqueConstraint(fields=("resource_ids", "priced", "labels"), name="demand_per_set"),
        ),
    ]
