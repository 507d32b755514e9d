"""How often signing in was tried, for all web processes and over restarts."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("scheduler", "0063_budgets_in_administration"),
    ]

    operations = [
        migrations.CreateModel(
            name="SignInCount",
            fields=[
                ("key", models.CharField(max_length=32, primary_key=True, serialize=False)),
                ("tries", models.FloatField()),
                ("known", models.BooleanField()),
                ("last_at", models.DateTimeField()),
                ("free_at", models.DateTimeField()),
            ],
            options={"db_table": "sign_in_count", "default_permissions": ()},
        ),
        migrations.AddIndex(
            model_name="signincount",
            index=models.Index(fields=["known", "last_at"], name="sign_in_count_by_time"),
        ),
    ]
