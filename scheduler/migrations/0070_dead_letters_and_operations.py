"""Dead letters, how many died alike, and operations on many tasks; the triggers that count dead letters.

Tasks that died before this are entered with the message of their last attempt, a thousand at a time.
"""

from typing import Any

import django.db.models.functions.datetime
from django.db import migrations, models
from django.db.backends.base.schema import BaseDatabaseSchemaEditor
from django.db.migrations.state import StateApps

from scheduler.policy.fingerprints import MESSAGE_CHARS_MAX, Death, fingerprint_of, shape_of

TRIGGERS = """
CREATE FUNCTION count_dead_letters() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO dead_delta (fingerprint, n, died, died_at)
    SELECT fingerprint, count(*), count(*), max(died_at) FROM added WHERE discarded_at IS NULL GROUP BY 1;
    RETURN NULL;
END $$;

CREATE FUNCTION count_changed_dead_letters() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO dead_delta (fingerprint, n, died)
    SELECT fingerprint, sum(n), 0
    FROM (SELECT fingerprint, count(*) AS n FROM added WHERE discarded_at IS NULL GROUP BY 1
          UNION ALL
          SELECT fingerprint, -count(*) FROM removed WHERE discarded_at IS NULL GROUP BY 1) AS moves
    GROUP BY 1 HAVING sum(n) <> 0;
    RETURN NULL;
END $$;

CREATE FUNCTION count_removed_dead_letters() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO dead_delta (fingerprint, n, died)
    SELECT fingerprint, -count(*), 0 FROM removed WHERE discarded_at IS NULL GROUP BY 1;
    RETURN NULL;
END $$;

CREATE TRIGGER dead_letter_inserted AFTER INSERT ON dead_letter REFERENCING NEW TABLE AS added
    FOR EACH STATEMENT EXECUTE FUNCTION count_dead_letters();
CREATE TRIGGER dead_letter_updated AFTER UPDATE ON dead_letter REFERENCING NEW TABLE AS added OLD TABLE AS removed
    FOR EACH STATEMENT EXECUTE FUNCTION count_changed_dead_letters();
CREATE TRIGGER dead_letter_deleted AFTER DELETE ON dead_letter REFERENCING OLD TABLE AS removed
    FOR EACH STATEMENT EXECUTE FUNCTION count_removed_dead_letters();
"""

UNDO = """
DROP TRIGGER dead_letter_inserted ON dead_letter;
DROP TRIGGER dead_letter_updated ON dead_letter;
DROP TRIGGER dead_letter_deleted ON dead_letter;
DROP FUNCTION count_dead_letters();
DROP FUNCTION count_changed_dead_letters();
DROP FUNCTION count_removed_dead_letters();
"""

DIED = """
SELECT t.id, t.tenant_id, t.pool_id, t.kind, coalesce(a.failure_class, 'error'), coalesce(a.message, ''), t.finished_at
FROM task t LEFT JOIN LATERAL (
    SELECT failure_class, message FROM attempt WHERE task_id = t.id ORDER BY lease_id DESC LIMIT 1) a ON true
WHERE t.state IN ('dead_lettered', 'failed') AND (t.finished_at, t.id) > (%s, %s)
ORDER BY t.finished_at, t.id LIMIT 1000
"""

BURY = """
INSERT INTO dead_letter (task_id, fingerprint, tenant_id, pool_id, kind, failure_class, message, died_at)
VALUES (%s, %s, %s, %s, %s, %s, %s, %s) ON CONFLICT DO NOTHING
"""


def bury(_apps: StateApps, editor: BaseDatabaseSchemaEditor) -> None:
    """Enter the dead of before, in the order in which they died."""
    last: tuple[Any, int] = ("-infinity", 0)
    with editor.connection.cursor() as cursor:
        while True:
            cursor.execute(DIED, last)
            rows = cursor.fetchall()
            if not rows:
                return
            for task, tenant, pool, kind, failure_class, message, at in rows:
                number = fingerprint_of(Death(tenant, pool, kind, failure_class, shape_of(message)))
                kept = message[:MESSAGE_CHARS_MAX]
                cursor.execute(BURY, (task, number, tenant, pool, kind, failure_class, kept, at))
            last = (rows[-1][6], rows[-1][0])


class Migration(migrations.Migration):
    dependencies = [
        ("scheduler", "0090_run_lists"),
    ]

    operations = [
        migrations.CreateModel(
            name="DeadHour",
            fields=[
                (
                    "pk",
                    models.CompositePrimaryKey(
                        "fingerprint", "hour", blank=True, editable=False, primary_key=True, serialize=False
                    ),
                ),
                ("fingerprint", models.BigIntegerField()),
                ("hour", models.DateTimeField()),
                ("n", models.BigIntegerField()),
            ],
            options={
                "db_table": "dead_hour",
            },
        ),
        migrations.CreateModel(
            name="DeadDelta",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("fingerprint", models.BigIntegerField()),
                ("n", models.BigIntegerField()),
                ("died", models.BigIntegerField()),
                ("died_at", models.DateTimeField(null=True)),
            ],
            options={
                "db_table": "dead_delta",
                "indexes": [models.Index(fields=["fingerprint"], name="dead_delta_by_fingerprint")],
            },
        ),
        migrations.CreateModel(
            name="DeadGroup",
            fields=[
                ("fingerprint", models.BigIntegerField(primary_key=True, serialize=False)),
                ("tenant_id", models.BigIntegerField()),
                ("pool_id", models.BigIntegerField()),
                ("kind", models.CharField(max_length=64)),
                ("failure_class", models.CharField(max_length=16)),
                ("shape", models.CharField(max_length=200)),
                ("n", models.BigIntegerField()),
                ("first_at", models.DateTimeField()),
                ("last_at", models.DateTimeField()),
            ],
            options={
                "db_table": "dead_group",
                "indexes": [
                    models.Index(
                        condition=models.Q(("n__gt", 0)), fields=["-last_at", "-fingerprint"], name="dead_group_newest"
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="DeadLetter",
            fields=[
                ("id", models.BigAutoField(primary_key=True, serialize=False)),
                ("task_id", models.BigIntegerField(unique=True)),
                ("fingerprint", models.BigIntegerField()),
                ("tenant_id", models.BigIntegerField()),
                ("pool_id", models.BigIntegerField()),
                ("kind", models.CharField(max_length=64)),
                ("failure_class", models.CharField(max_length=16)),
                ("message", models.CharField(max_length=1000)),
                ("died_at", models.DateTimeField()),
                ("discarded_at", models.DateTimeField(null=True)),
            ],
            options={
                "db_table": "dead_letter",
                "indexes": [
                    models.Index(
                        condition=models.Q(("discarded_at__isnull", True)), fields=["id"], name="dead_letter_kept"
                    ),
                    models.Index(
                        condition=models.Q(("discarded_at__isnull", True)),
                        fields=["fingerprint", "id"],
                        name="dead_letter_by_fingerprint",
                    ),
                    models.Index(
                        condition=models.Q(("discarded_at__isnull", True)),
                        fields=["tenant_id", "id"],
                        name="dead_letter_by_tenant",
                    ),
                    models.Index(
                        condition=models.Q(("discarded_at__isnull", True)),
                        fields=["pool_id", "id"],
                        name="dead_letter_by_pool",
                    ),
                    models.Index(
                        condition=models.Q(("discarded_at__isnull", False)), fields=["id"], name="dead_letter_discarded"
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="Operation",
            fields=[
                ("id", models.BigAutoField(primary_key=True, serialize=False)),
                ("kind", models.CharField(max_length=8)),
                ("state", models.CharField(max_length=8)),
                ("filter", models.CharField(blank=True, max_length=1000)),
                ("tenant_id", models.BigIntegerField(null=True)),
                ("as_of", models.DateTimeField()),
                ("actor", models.CharField(max_length=200)),
                ("source", models.CharField(max_length=8)),
                ("reason", models.CharField(max_length=500)),
                ("key", models.CharField(max_length=200, null=True)),
                ("rate", models.FloatField()),
                ("total", models.IntegerField()),
                ("applied", models.IntegerField(db_default=0, default=0)),
                ("skipped", models.IntegerField(db_default=0, default=0)),
                ("created_at", models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ("starts_at", models.DateTimeField()),
                ("worked_at", models.DateTimeField(null=True)),
                ("credit", models.FloatField(db_default=0.0, default=0.0)),
                ("finished_at", models.DateTimeField(null=True)),
                ("version", models.IntegerField(db_default=1, default=1)),
            ],
            options={
                "db_table": "operation",
                "indexes": [
                    models.Index(
                        condition=models.Q(("state__in", ["starting", "running"])), fields=["id"], name="operation_open"
                    ),
                    models.Index(
                        condition=models.Q(("tenant_id__isnull", False)),
                        fields=["tenant_id", "-id"],
                        name="operation_by_tenant",
                    ),
                ],
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(("kind__in", ["replay", "cancel", "discard", "restore"])),
                        name="operation_kind_known",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("state__in", ["starting", "running", "paused", "aborted", "done"])),
                        name="operation_state_known",
                    ),
                    models.UniqueConstraint(
                        condition=models.Q(("key__isnull", False)),
                        fields=("actor", "key"),
                        name="operation_once_per_key",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="OperationItem",
            fields=[
                (
                    "pk",
                    models.CompositePrimaryKey(
                        "operation_id", "place", blank=True, editable=False, primary_key=True, serialize=False
                    ),
                ),
                ("operation_id", models.BigIntegerField()),
                ("place", models.IntegerField()),
                ("task_id", models.BigIntegerField()),
                ("outcome", models.CharField(max_length=8, null=True)),
                ("why", models.CharField(max_length=16, null=True)),
                ("done_at", models.DateTimeField(null=True)),
            ],
            options={
                "db_table": "operation_item",
                "indexes": [
                    models.Index(
                        condition=models.Q(("outcome__isnull", True)),
                        fields=["operation_id", "place"],
                        name="operation_item_left",
                    ),
                    models.Index(
                        condition=models.Q(("outcome", "skipped")),
                        fields=["operation_id", "place"],
                        name="operation_item_skipped",
                    ),
                ],
            },
        ),
        migrations.RunSQL(TRIGGERS, UNDO),
        migrations.RunPython(bury, migrations.RunPython.noop),
    ]
