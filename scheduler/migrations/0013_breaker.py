"""What calls teach about limits: a breaker, a pace, and pauses."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("scheduler", "0011_money"),
    ]

    operations = [
        migrations.AddField(
            model_name="resourcestate",
            name="bad",
            field=models.IntegerField(db_default=0, default=0),
        ),
        migrations.AddField(
            model_name="resourcestate",
            name="bad_before",
            field=models.IntegerField(db_default=0, default=0),
        ),
        migrations.AddField(
            model_name="resourcestate",
            name="breaker_at",
            field=models.DateTimeField(null=True),
        ),
        migrations.AddField(
            model_name="resourcestate",
            name="cut_at",
            field=models.DateTimeField(null=True),
        ),
        migrations.AddField(
            model_name="resourcestate",
            name="good",
            field=models.IntegerField(db_default=0, default=0),
        ),
        migrations.AddField(
            model_name="resourcestate",
            name="good_before",
            field=models.IntegerField(db_default=0, default=0),
        ),
        migrations.AddField(
            model_name="resourcestate",
            name="open_until",
            field=models.DateTimeField(null=True),
        ),
        migrations.AddField(
            model_name="resourcestate",
            name="opens",
            field=models.SmallIntegerField(db_default=0, default=0),
        ),
        migrations.AddField(
            model_name="resourcestate",
            name="paced_at",
            field=models.DateTimeField(null=True),
        ),
        migrations.AddField(
            model_name="resourcestate",
            name="paced_taken",
            field=models.FloatField(db_default=0.0, default=0.0),
        ),
        migrations.AddField(
            model_name="resourcestate",
            name="pause_reason",
            field=models.TextField(blank=True, db_default="", default=""),
        ),
        migrations.AddField(
            model_name="resourcestate",
            name="paused_at",
            field=models.DateTimeField(null=True),
        ),
        migrations.AddField(
            model_name="resourcestate",
            name="paused_by",
            field=models.CharField(blank=True, db_default="", default="", max_length=200),
        ),
        migrations.AddField(
            model_name="resourcestate",
            name="probe_lease",
            field=models.BigIntegerField(null=True),
        ),
        migrations.AddField(
            model_name="resourcestate",
            name="slowest_s",
            field=models.FloatField(db_default=0.0, default=0.0),
        ),
        migrations.AddField(
            model_name="resourcestate",
            name="window_at",
            field=models.DateTimeField(null=True),
        ),
        migrations.AddIndex(
            model_name="resourcestate",
            index=models.Index(
                condition=models.Q(
                    ("window_at__isnull", False), ("open_until__isnull", False), ("factor__lt", 1), _connector="OR"
                ),
                fields=["resource"],
                name="resource_state_watched",
            ),
        ),
    ]
