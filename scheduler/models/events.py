"""What happened, for those who listen, and to whom it is posted. Tables, constraints and indexes only.

`event_fresh` takes what transactions tell, in whatever order they commit; `event` has it in the order of its reading.
"""

from __future__ import annotations

from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import CheckConstraint, Index, Q
from django.db.models.functions import Now

from scheduler.models.choices import choices
from scheduler.models.tenants import Tenant
from scheduler.policy.webhooks import Standing


class _Told(models.Model):
    """`tenant_id` NULL: it concerns the whole installation. The task's columns are NULL for what is no transition."""

    type = models.CharField(max_length=40)
    tenant_id = models.BigIntegerField(null=True)
    task_id = models.BigIntegerField(null=True)
    pool_id = models.BigIntegerField(null=True)
    before = models.CharField(max_length=13, null=True)  # noqa: DJ001 - NULL: there was nothing before
    attempt = models.SmallIntegerField(null=True)
    kind = models.CharField(max_length=64, null=True)  # noqa: DJ001 - NULL: no task
    key = models.CharField(max_length=200, null=True)  # noqa: DJ001 - NULL: no key
    at = models.DateTimeField(db_default=Now())
    data = models.JSONField(null=True)

    class Meta:
        abstract = True


class EventFresh(_Told):
    """Told, and not yet in order. Written by the triggers on `task`, in the transaction that moves the task."""

    class Meta:
        db_table = "event_fresh"


class Event(_Told):
    """In order: whoever has read up to `seq` has missed nothing before it. Kept for a while."""

    seq = models.BigIntegerField(primary_key=True)

    class Meta:
        db_table = "event"
        indexes = [
            # store/sql/events.sql: read_events_of_tenant
            Index(name="event_by_tenant", fields=["tenant_id", "seq"]),
            # store/sql/events.sql: read_alerts
            Index(name="event_alerts", fields=["seq"], condition=Q(type__startswith="alert.")),
        ]


class EventMark(models.Model):
    """The newest place that was given, and the newest that was forgotten, of all and of alerts alone.

    Whoever holds the row gives places.
    """

    id = models.SmallIntegerField(primary_key=True)
    last_seq = models.BigIntegerField()
    pruned_seq = models.BigIntegerField()
    pruned_alert_seq = models.BigIntegerField(default=0, db_default=0)

    class Meta:
        db_table = "event_mark"


class EventListener(models.Model):
    """For whose tasks transitions are told, until when, and from which place on all were. Tenant 0 stands for all."""

    tenant_id = models.BigIntegerField(primary_key=True)
    until = models.DateTimeField()
    from_seq = models.BigIntegerField()

    class Meta:
        db_table = "event_listener"


class Webhook(models.Model):
    """A URL that events are posted to, in order: `cursor` is the place up to which they arrived.

    Of one tenant, or (`tenant` NULL) of all of them and of what concerns none in particular.

    `salt` leads to the secret, together with the installation's own key. `sending_to`: the end of what was posted last
    and not confirmed, which is posted again as it was. `test_at`: since when a test is asked for that has no
    result yet; it is posted at `test_due_at`.
    """

    tenant = models.ForeignKey(Tenant, on_delete=models.PROTECT, null=True)
    url = models.CharField(max_length=2000)
    events = ArrayField(models.CharField(max_length=40))
    salt = models.BinaryField()
    standing = models.CharField(max_length=8, default="active", db_default="active", choices=choices(Standing))
    cursor = models.BigIntegerField()
    sending_to = models.BigIntegerField(null=True)
    failures = models.IntegerField(default=0, db_default=0)
    failing_since = models.DateTimeField(null=True)
    due_at = models.DateTimeField(db_default=Now())
    test_at = models.DateTimeField(null=True, editable=False)
    test_due_at = models.DateTimeField(null=True, editable=False)
    version = models.BigIntegerField(default=1, db_default=1)
    created_at = models.DateTimeField(db_default=Now(), editable=False)

    class Meta:
        db_table = "webhook"
        constraints = [
            CheckConstraint(name="webhook_standing_known", condition=Q(standing__in=[s.value for s in Standing])),
        ]
        indexes = [
            # store/sql/webhooks.sql: lock_due
            Index(name="webhook_due", fields=["due_at", "id"], condition=Q(standing="active")),
            # store/sql/webhooks.sql: due_webhooks
            Index(name="webhook_test_due", fields=["test_due_at", "id"], condition=Q(test_due_at__isnull=False)),
            # store/sql/webhooks.sql: read_webhooks
            Index(name="webhook_by_tenant", fields=["tenant", "id"]),
        ]


class WebhookDelivery(models.Model):
    """One try to deliver a stretch of events. `status` NULL: no answer came, and `error` says why."""

    webhook = models.ForeignKey(Webhook, on_delete=models.CASCADE)
    at = models.DateTimeField(db_default=Now())
    first_seq = models.BigIntegerField()
    last_seq = models.BigIntegerField()
    events = models.IntegerField()
    status = models.SmallIntegerField(null=True)
    took_s = models.FloatField()
    error = models.CharField(max_length=500, null=True)  # noqa: DJ001 - NULL: it arrived

    class Meta:
        db_table = "webhook_delivery"
        indexes = [
            # store/sql/webhooks.sql: read_deliveries
            Index(name="webhook_delivery_newest", fields=["webhook", "-id"]),
            # store/sql/webhooks.sql: forget_deliveries
            Index(name="webhook_delivery_by_age", fields=["at"]),
        ]
