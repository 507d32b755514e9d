"""How much may wait: bounds of pools, depths kept with the counts, overload levels, and attempts that answer only."""

import django.db.models.deletion
import django.db.models.functions.datetime
from django.db import migrations, models

DEPTHS = """
INSERT INTO waiting_depth (scope, scope_id, waiting, running)
SELECT scope, scope_id, coalesce(sum(n) FILTER (WHERE counter IN ('blocked', 'scheduled', 'ready', 'retrying')), 0),
       coalesce(sum(n) FILTER (WHERE counter = 'running'), 0)
FROM (SELECT 'pool' AS scope, pool_id AS scope_id, counter, n FROM task_count
      UNION ALL
      SELECT 'tenant', tenant_id, counter, n FROM task_count) AS counts
GROUP BY 1, 2;
ALTER TABLE waiting_depth SET (fillfactor = 40, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 500,
    autovacuum_vacuum_cost_delay = 0);
ALTER TABLE fold_mark SET (fillfactor = 40);
ALTER TABLE pool_state SET (fillfactor = 40);
"""


class Migration(migrations.Migration):
    dependencies = [
        ("scheduler", "0009_payload_permission"),
    ]

    operations = [
        migrations.CreateModel(
            name="FoldMark",
            fields=[
                ("id", models.SmallIntegerField(primary_key=True, serialize=False)),
                ("last_task_id", models.BigIntegerField()),
                ("before_task_id", models.BigIntegerField()),
            ],
            options={"db_table": "fold_mark"},
        ),
        migrations.CreateModel(
            name="WaitingDepth",
            fields=[
                (
                    "pk",
                    models.CompositePrimaryKey(
                        "scope", "scope_id", blank=True, editable=False, primary_key=True, serialize=False
                    ),
                ),
                ("scope", models.CharField(max_length=6)),
                ("scope_id", models.BigIntegerField()),
                ("waiting", models.BigIntegerField()),
                ("running", models.BigIntegerField()),
            ],
            options={"db_table": "waiting_depth"},
        ),
        migrations.CreateModel(
            name="PoolState",
            fields=[
                (
                    "pool",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE,
                        primary_key=True,
                        related_name="state",
                        serialize=False,
                        to="scheduler.pool",
                    ),
                ),
                ("level", models.SmallIntegerField(db_default=0)),
                ("level_since", models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ("above_since", models.DateTimeField(null=True)),
                ("calm_since", models.DateTimeField(null=True)),
                ("seen_at", models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ("degrades", models.BooleanField(db_default=False)),
                ("predicted_s", models.FloatField(null=True)),
                ("started_per_s", models.FloatField(db_default=0.0)),
            ],
            options={"db_table": "pool_state"},
        ),
        migrations.AddField("pool", "max_pending", models.PositiveIntegerField(db_default=100_000, default=100_000)),
        migrations.AddField(
            "pool",
            "overflow",
            models.CharField(
                choices=[("reject", "reject"), ("shed_lowest", "shed_lowest"), ("shed_oldest", "shed_oldest")],
                db_default="reject",
                default="reject",
                max_length=11,
            ),
        ),
        migrations.AddField("pool", "allow_degraded", models.BooleanField(db_default=False, default=False)),
        migrations.AddField("lease", "degraded", models.BooleanField(db_default=False, default=False)),
        migrations.AddField("attempt", "degraded", models.BooleanField(db_default=False, default=False)),
        migrations.AddConstraint(
            "pool",
            models.CheckConstraint(
                condition=models.Q(("overflow__in", ["reject", "shed_lowest", "shed_oldest"])),
                name="pool_overflow_known",
            ),
        ),
        migrations.RunSQL(DEPTHS, migrations.RunSQL.noop),
    ]
