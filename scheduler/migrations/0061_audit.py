"""The audit says where a change came from, is read by any one filter, and is append-only."""

from django.db import migrations, models

KEEP = """
CREATE FUNCTION audit_is_kept() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'DELETE' AND current_setting('cronoq.prunes_audit', true) = 'on' THEN
        RETURN OLD;
    END IF;
    RAISE EXCEPTION 'The audit is append-only.';
END $$;
CREATE TRIGGER audit_is_kept BEFORE UPDATE OR DELETE ON audit_event
    FOR EACH ROW EXECUTE FUNCTION audit_is_kept();
"""
UNDO = """
DROP TRIGGER audit_is_kept ON audit_event;
DROP FUNCTION audit_is_kept();
"""


class Migration(migrations.Migration):
    dependencies = [
        ("scheduler", "0050_run_change_mark"),
    ]

    operations = [
        migrations.RemoveIndex(
            model_name="auditevent",
            name="audit_by_subject",
        ),
        migrations.AddField(
            model_name="auditevent",
            name="address",
            field=models.GenericIPAddressField(null=True),
        ),
        migrations.AddField(
            model_name="auditevent",
            name="request_id",
            field=models.CharField(max_length=64, null=True),
        ),
        migrations.AddIndex(
            model_name="auditevent",
            index=models.Index(fields=["at", "id"], name="audit_by_time"),
        ),
        migrations.AddIndex(
            model_name="auditevent",
            index=models.Index(fields=["actor", "at", "id"], name="audit_by_actor"),
        ),
        migrations.AddIndex(
            model_name="auditevent",
            index=models.Index(fields=["action", "at", "id"], name="audit_by_action"),
        ),
        migrations.AddIndex(
            model_name="auditevent",
            index=models.Index(fields=["subject", "at", "id"], name="audit_by_subject"),
        ),
        migrations.AddIndex(
            model_name="auditevent",
            index=models.Index(fields=["source", "at", "id"], name="audit_by_source"),
        ),
        migrations.RunSQL(KEEP, UNDO),
    ]
