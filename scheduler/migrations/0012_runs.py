"""Runs of agents with their caps, receipts and checkpoints; what was killed."""

import django.db.models.deletion
import django.db.models.functions.datetime
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("scheduler", "0014_remote_workers"),
    ]

    operations = [
        # Called once here: the first call leaves the value that a new sequence shows already, and would tell nobody.
        migrations.RunSQL(
            "CREATE SEQUENCE run_change_seq; SELECT nextval('run_change_seq')", "DROP SEQUENCE run_change_seq"
        ),
        migrations.CreateModel(
            name="Checkpoint",
            fields=[
                ("run_id", models.BigIntegerField(primary_key=True, serialize=False)),
                ("version", models.BigIntegerField()),
                ("checkpoint", models.JSONField()),
                ("task_id", models.BigIntegerField()),
                ("saved_at", models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
            ],
            options={
                "db_table": "checkpoint",
            },
        ),
        migrations.CreateModel(
            name="KillEpoch",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("scope", models.CharField(max_length=10)),
                ("scope_id", models.BigIntegerField()),
                ("epoch", models.BigIntegerField()),
                ("killed_at", models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ("lifted_at", models.DateTimeField(null=True)),
                ("actor", models.CharField(max_length=200)),
                ("reason", models.CharField(blank=True, max_length=500)),
            ],
            options={
                "db_table": "kill_epoch",
            },
        ),
        migrations.CreateModel(
            name="Receipt",
            fields=[
                (
                    "pk",
                    models.CompositePrimaryKey(
                        "run_id", "step", blank=True, editable=False, primary_key=True, serialize=False
                    ),
                ),
                ("run_id", models.BigIntegerField()),
                ("step", models.CharField(max_length=200)),
                ("fingerprint", models.CharField(max_length=200)),
                ("state", models.CharField(max_length=9)),
                ("idempotency_key", models.CharField(max_length=80)),
                ("lease_id", models.BigIntegerField()),
                ("unsure", models.BooleanField(db_default=False, default=False)),
                ("receipt", models.JSONField(null=True)),
                ("claimed_at", models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ("committed_at", models.DateTimeField(null=True)),
            ],
            options={
                "db_table": "receipt",
            },
        ),
        migrations.CreateModel(
            name="Run",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("name", models.CharField(blank=True, max_length=200)),
                ("key", models.CharField(max_length=200, null=True)),
                ("fingerprint", models.BinaryField(null=True)),
                ("goal", models.JSONField()),
                (
                    "state",
                    models.CharField(
                        choices=[
                            ("active", "active"),
                            ("paused", "paused"),
                            ("succeeded", "succeeded"),
                            ("failed", "failed"),
                            ("killed", "killed"),
                        ],
                        default="active",
                        max_length=9,
                    ),
                ),
                ("reason", models.CharField(blank=True, db_default="", max_length=500)),
                ("epoch", models.BigIntegerField(db_default=0, default=0)),
                ("max_steps", models.PositiveIntegerField()),
                ("max_width", models.PositiveIntegerField()),
                ("max_tokens", models.BigIntegerField(null=True)),
                ("max_cost_nano", models.BigIntegerField(null=True)),
                ("deadline_at", models.DateTimeField(null=True)),
                ("heed_at", models.DateTimeField(null=True)),
                ("closing", models.BooleanField(db_default=False, default=False)),
                ("result", models.JSONField(null=True)),
                ("version", models.BigIntegerField(db_default=1, default=1)),
                ("created_at", models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ("finished_at", models.DateTimeField(null=True)),
            ],
            options={
                "db_table": "run",
            },
        ),
        migrations.CreateModel(
            name="RunIntake",
            fields=[
                ("run_id", models.BigIntegerField(primary_key=True, serialize=False)),
                ("steps", models.IntegerField(db_default=0, default=0)),
                ("due", models.BooleanField(db_default=False, default=False)),
            ],
            options={
                "db_table": "run_intake",
            },
        ),
        migrations.CreateModel(
            name="RunUse",
            fields=[
                ("run_id", models.BigIntegerField(primary_key=True, serialize=False)),
                ("tokens", models.BigIntegerField(db_default=0, default=0)),
                ("attempts", models.BigIntegerField(db_default=0, default=0)),
                ("due", models.BooleanField(db_default=False, default=False)),
            ],
            options={
                "db_table": "run_use",
            },
        ),
        migrations.RemoveConstraint(
            model_name="demand",
            name="demand_per_set",
        ),
        migrations.AddField(
            model_name="demand",
            name="base_id",
            field=models.BigIntegerField(null=True),
        ),
        migrations.AddField(
            model_name="demand",
            name="run_id",
            field=models.BigIntegerField(null=True),
        ),
        migrations.AddField(
            model_name="demand",
            name="writes",
            field=models.BooleanField(db_default=False, default=False),
        ),
        migrations.AddField(
            model_name="taskpayload",
            name="run_id",
            field=models.BigIntegerField(null=True),
        ),
        migrations.AddField(
            model_name="tenant",
            name="max_cost_per_run_nano",
            field=models.BigIntegerField(blank=True, null=True),
        ),
        migrations.AddField(
            model_name="tenant",
            name="max_steps_per_run",
            field=models.PositiveIntegerField(blank=True, null=True),
        ),
        migrations.AddField(
            model_name="tenant",
            name="max_width_per_run",
            field=models.PositiveIntegerField(blank=True, null=True),
        ),
        migrations.AddIndex(
            model_name="task",
            index=models.Index(
                condition=models.Q(("demand_id__lt", 0), ("state__in", ["blocked", "scheduled", "ready", "retrying"])),
                fields=["demand_id", "ready_at", "id"],
                name="task_open_of_run",
            ),
        ),
        migrations.AddIndex(
            model_name="taskpayload",
            index=models.Index(
                condition=models.Q(("run_id__isnull", False)), fields=["run_id", "task_id"], name="task_payload_by_run"
            ),
        ),
        migrations.AddConstraint(
            model_name="demand",
            constraint=models.UniqueConstraint(
                condition=models.Q(("run_id__isnull", True)),
                fields=("resource_ids", "priced", "labels"),
                name="demand_per_set",
            ),
        ),
        migrations.AddConstraint(
            model_name="demand",
            constraint=models.UniqueConstraint(
                condition=models.Q(("run_id__isnull", False)),
                fields=("run_id", "writes", "base_id"),
                name="demand_of_run",
            ),
        ),
        migrations.AddConstraint(
            model_name="demand",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    models.Q(("id__gt", 0), ("run_id__isnull", True)),
                    models.Q(("base_id__gt", 0), ("id__lt", 0), ("run_id__isnull", False)),
                    _connector="OR",
                ),
                name="demand_of_run_below_zero",
            ),
        ),
        migrations.AddConstraint(
            model_name="killepoch",
            constraint=models.CheckConstraint(
                condition=models.Q(("scope__in", ["everything", "tenant", "pool"])), name="kill_epoch_scope_known"
            ),
        ),
        migrations.AddConstraint(
            model_name="killepoch",
            constraint=models.UniqueConstraint(fields=("scope", "scope_id"), name="kill_epoch_per_scope"),
        ),
        migrations.AddConstraint(
            model_name="receipt",
            constraint=models.CheckConstraint(
                condition=models.Q(("state__in", ["claimed", "done", "abandoned"])), name="receipt_state_known"
            ),
        ),
        migrations.AddField(
            model_name="run",
            name="tenant",
            field=models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, to="scheduler.tenant"),
        ),
        migrations.AddIndex(
            model_name="runintake",
            index=models.Index(condition=models.Q(("due", True)), fields=["run_id"], name="run_intake_due"),
        ),
        migrations.AddIndex(
            model_name="runuse",
            index=models.Index(condition=models.Q(("due", True)), fields=["run_id"], name="run_use_due"),
        ),
        migrations.AddIndex(
            model_name="run",
            index=models.Index(fields=["tenant", "-id"], name="run_by_tenant"),
        ),
        migrations.AddIndex(
            model_name="run",
            index=models.Index(condition=models.Q(("closing", True)), fields=["id"], name="run_closing"),
        ),
        migrations.AddIndex(
            model_name="run",
            index=models.Index(condition=models.Q(("heed_at__isnull", False)), fields=["heed_at"], name="run_heed"),
        ),
        migrations.AddConstraint(
            model_name="run",
            constraint=models.CheckConstraint(
                condition=models.Q(("state__in", ["active", "paused", "succeeded", "failed", "killed"])),
                name="run_state_known",
            ),
        ),
        migrations.AddConstraint(
            model_name="run",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    models.Q(("finished_at", None), ("state__in", ["active", "paused"])),
                    models.Q(("finished_at__isnull", False), ("state__in", ["succeeded", "failed", "killed"])),
                    _connector="OR",
                ),
                name="run_ended_has_a_time",
            ),
        ),
        migrations.AddConstraint(
            model_name="run",
            constraint=models.UniqueConstraint(
                condition=models.Q(("key__isnull", False)), fields=("tenant", "key"), name="run_key_per_tenant"
            ),
        ),
    ]
