"""Alerts are events, which webhooks deliver: those of one tenant, or of all. Targets of alerts become webhooks."""

import secrets

import django.db.models.deletion
from django.db import migrations, models
from django.db.backends.base.schema import BaseDatabaseSchemaEditor
from django.db.migrations.state import StateApps


def targets_become_webhooks(apps: StateApps, _editor: BaseDatabaseSchemaEditor) -> None:
    """Each target goes on as a webhook for alerts, with another secret: `rotate` shows one."""
    target, webhook = apps.get_model("scheduler", "AlertTarget"), apps.get_model("scheduler", "Webhook")
    mark = apps.get_model("scheduler", "EventMark").objects.filter(id=1).first()
    webhook.objects.bulk_create(
        webhook(
            tenant_id=each.tenant_id,
            url=each.url,
            events=["alert"],
            salt=secrets.token_bytes(16),
            cursor=0 if mark is None else mark.last_seq,
        )
        for each in target.objects.order_by("id")
    )


class Migration(migrations.Migration):
    dependencies = [
        ("scheduler", "0064_sign_in_counts"),
    ]

    operations = [
        migrations.AlterField(
            model_name="webhook",
            name="tenant",
            field=models.ForeignKey(null=True, on_delete=django.db.models.deletion.PROTECT, to="scheduler.tenant"),
        ),
        migrations.AddField(
            model_name="eventmark",
            name="pruned_alert_seq",
            field=models.BigIntegerField(db_default=0, default=0),
        ),
        migrations.AddIndex(
            model_name="event",
            index=models.Index(condition=models.Q(("type__startswith", "alert.")), fields=["seq"], name="event_alerts"),
        ),
        migrations.RunPython(targets_become_webhooks, migrations.RunPython.noop),
        migrations.DeleteModel(name="AlertTarget"),
        migrations.RemoveIndex(model_name="alert", name="alert_due"),
        *(migrations.RemoveField(model_name="alert", name=name) for name in ("tries", "next_at", "told_at", "fault")),
    ]
