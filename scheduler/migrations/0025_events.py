"""Events and webhooks, and the triggers that tell of transitions while somebody listens.

The triggers run once per statement, like those that count: every path that changes a task is told of by the same code.
While nobody listens they look at one small table and do nothing. Moves are told in the order of their ids, which is that of
the task's own moves, because a move waits for the one before it to commit.
"""

import django.contrib.postgres.fields
import django.db.models.deletion
import django.db.models.functions.datetime
from django.db import migrations, models

TRIGGERS = """
CREATE FUNCTION tell_inserted_tasks() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF EXISTS (SELECT FROM event_listener WHERE until > clock_timestamp()) THEN
        INSERT INTO event_fresh (type, tenant_id, task_id, pool_id, attempt, kind, key, at)
        SELECT 'task.' || a.state, a.tenant_id, a.id, a.pool_id, a.attempts, a.kind, a.key, clock_timestamp()
        FROM added a
        WHERE EXISTS (SELECT FROM event_listener l
                      WHERE l.tenant_id IN (0, a.tenant_id) AND l.until > clock_timestamp());
    END IF;
    RETURN NULL;
END $$;

CREATE FUNCTION tell_updated_tasks() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF EXISTS (SELECT FROM event_listener WHERE until > clock_timestamp()) THEN
        INSERT INTO event_fresh (type, tenant_id, task_id, pool_id, before, attempt, kind, key, at)
        SELECT 'task.' || a.state, a.tenant_id, a.id, a.pool_id, r.state, a.attempts, a.kind, a.key, clock_timestamp()
        FROM added a JOIN removed r ON r.id = a.id AND r.state <> a.state
        WHERE EXISTS (SELECT FROM event_listener l
                      WHERE l.tenant_id IN (0, a.tenant_id) AND l.until > clock_timestamp());
    END IF;
    RETURN NULL;
END $$;

CREATE TRIGGER task_insert_told AFTER INSERT ON task REFERENCING NEW TABLE AS added
    FOR EACH STATEMENT EXECUTE FUNCTION tell_inserted_tasks();
CREATE TRIGGER task_update_told AFTER UPDATE ON task REFERENCING NEW TABLE AS added OLD TABLE AS removed
    FOR EACH STATEMENT EXECUTE FUNCTION tell_updated_tasks();
"""

UNDO = """
DROP TRIGGER task_insert_told ON task;
DROP TRIGGER task_update_told ON task;
DROP FUNCTION tell_inserted_tasks();
DROP FUNCTION tell_updated_tasks();
"""

STORAGE = """
ALTER TABLE event_fresh SET (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000,
    autovacuum_vacuum_cost_delay = 0);
ALTER TABLE event SET (autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_insert_scale_factor = 0.2,
    autovacuum_vacuum_cost_delay = 0);
ALTER TABLE event_mark SET (fillfactor = 40);
ALTER TABLE event_listener SET (fillfactor = 60);
"""


class Migration(migrations.Migration):
    dependencies = [
        ("scheduler", "0012_runs"),
    ]

    operations = [
        migrations.CreateModel(
            name="EventFresh",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("type", models.CharField(max_length=40)),
                ("tenant_id", models.BigIntegerField(null=True)),
                ("task_id", models.BigIntegerField(null=True)),
                ("pool_id", models.BigIntegerField(null=True)),
                ("before", models.CharField(max_length=13, null=True)),
                ("attempt", models.SmallIntegerField(null=True)),
                ("kind", models.CharField(max_length=64, null=True)),
                ("key", models.CharField(max_length=200, null=True)),
                ("at", models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ("data", models.JSONField(null=True)),
            ],
            options={
                "db_table": "event_fresh",
            },
        ),
        migrations.CreateModel(
            name="EventListener",
            fields=[
                ("tenant_id", models.BigIntegerField(primary_key=True, serialize=False)),
                ("until", models.DateTimeField()),
                ("from_seq", models.BigIntegerField()),
            ],
            options={
                "db_table": "event_listener",
            },
        ),
        migrations.CreateModel(
            name="EventMark",
            fields=[
                ("id", models.SmallIntegerField(primary_key=True, serialize=False)),
                ("last_seq", models.BigIntegerField()),
                ("pruned_seq", models.BigIntegerField()),
            ],
            options={
                "db_table": "event_mark",
            },
        ),
        migrations.CreateModel(
            name="Event",
            fields=[
                ("type", models.CharField(max_length=40)),
                ("tenant_id", models.BigIntegerField(null=True)),
                ("task_id", models.BigIntegerField(null=True)),
                ("pool_id", models.BigIntegerField(null=True)),
                ("before", models.CharField(max_length=13, null=True)),
                ("attempt", models.SmallIntegerField(null=True)),
                ("kind", models.CharField(max_length=64, null=True)),
                ("key", models.CharField(max_length=200, null=True)),
                ("at", models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ("data", models.JSONField(null=True)),
                ("seq", models.BigIntegerField(primary_key=True, serialize=False)),
            ],
            options={
                "db_table": "event",
                "indexes": [models.Index(fields=["tenant_id", "seq"], name="event_by_tenant")],
            },
        ),
        migrations.CreateModel(
            name="Webhook",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("url", models.CharField(max_length=2000)),
                (
                    "events",
                    django.contrib.postgres.fields.ArrayField(base_field=models.CharField(max_length=40), size=None),
                ),
                ("salt", models.BinaryField()),
                (
                    "standing",
                    models.CharField(
                        choices=[("active", "active"), ("paused", "paused"), ("disabled", "disabled")],
                        db_default="active",
                        default="active",
                        max_length=8,
                    ),
                ),
                ("cursor", models.BigIntegerField()),
                ("sending_to", models.BigIntegerField(null=True)),
                ("failures", models.IntegerField(db_default=0, default=0)),
                ("failing_since", models.DateTimeField(null=True)),
                ("due_at", models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ("version", models.BigIntegerField(db_default=1, default=1)),
                (
                    "created_at",
                    models.DateTimeField(db_default=django.db.models.functions.datetime.Now(), editable=False),
                ),
                ("tenant", models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, to="scheduler.tenant")),
            ],
            options={
                "db_table": "webhook",
            },
        ),
        migrations.CreateModel(
            name="WebhookDelivery",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("at", models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ("first_seq", models.BigIntegerField()),
                ("last_seq", models.BigIntegerField()),
                ("events", models.IntegerField()),
                ("status", models.SmallIntegerField(null=True)),
                ("took_s", models.FloatField()),
                ("error", models.CharField(max_length=500, null=True)),
                ("webhook", models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, to="scheduler.webhook")),
            ],
            options={
                "db_table": "webhook_delivery",
            },
        ),
        migrations.AddIndex(
            model_name="webhook",
            index=models.Index(condition=models.Q(("standing", "active")), fields=["due_at", "id"], name="webhook_due"),
        ),
        migrations.AddIndex(
            model_name="webhook",
            index=models.Index(fields=["tenant", "id"], name="webhook_by_tenant"),
        ),
        migrations.AddConstraint(
            model_name="webhook",
            constraint=models.CheckConstraint(
                condition=models.Q(("standing__in", ["active", "paused", "disabled"])), name="webhook_standing_known"
            ),
        ),
        migrations.AddIndex(
            model_name="webhookdelivery",
            index=models.Index(fields=["webhook", "-id"], name="webhook_delivery_newest"),
        ),
        migrations.AddIndex(
            model_name="webhookdelivery",
            index=models.Index(fields=["at"], name="webhook_delivery_by_age"),
        ),
        migrations.RunSQL(STORAGE, migrations.RunSQL.noop),
        migrations.RunSQL(TRIGGERS, UNDO),
    ]
