"""Webhooks from an engine to an endpoint on loopback: in order, signed, again when it failed, and off when for long."""

from __future__ import annotations

import base64
import hashlib
import hmac
from collections.abc import Callable, Iterator
from ipaddress import ip_network

import pytest

from scheduler import conf
from scheduler.engine.executors.base import AttemptContext, Permanent
from scheduler.errors import NotFound, Refused
from scheduler.models import AuditEvent, Event, EventListener, Webhook, WebhookDelivery
from scheduler.policy.types import TenantId
from scheduler.policy.webhooks import Standing
from scheduler.services.changes import Author, VersionConflict
from scheduler.services.delivering import Attempted, delivered, next_stretch
from scheduler.services.events import announce, forget_events, publish
from scheduler.services.webhooks import (
    NewSecret,
    add_webhook,
    edit_webhook,
    remove_webhook,
    replay_webhook,
    rotate_secret,
)
from scheduler.services.webhooks import test_webhook as ask_for_a_test
from tests.conftest import LiveDatabase
from tests.engine.running import engine, wait_for_state
from tests.support.endpoint import Endpoint, Posted, endpoint
from tests.support.waiting import wait_until
from tests.support.work import make_pool, make_tenant, submit_tasks

ME = Author("test", "api")
ENDED = ("task.succeeded", "task.failed", "alert")


@pytest.fixture
def acme(live_database: LiveDatabase, configure: Callable[..., conf.Config]) -> TenantId:
    configure(outgoing_networks=(ip_network("127.0.0.1/32"),))
    make_pool()
    return make_tenant("acme")


@pytest.fixture
def receiver() -> Iterator[Endpoint]:
    with endpoint() as state:
        yield state


def hook(tenant: TenantId, receiver: Endpoint, events: tuple[str, ...] = ENDED) -> NewSecret:
    return add_webhook(tenant, receiver.url, events, ME)


def is_signed(posted: Posted, secret: str) -> bool:
    key = base64.b64decode(secret.removeprefix("whsec_"))
    signed = f"{posted.headers['webhook-id']}.{posted.headers['webhook-timestamp']}.".encode() + posted.raw
    digest = base64.b64encode(hmac.new(key, signed, hashlib.sha256).digest()).decode()
    return posted.headers["webhook-signature"] == f"v1,{digest}"


def told(receiver: Endpoint) -> list[tuple[int | None, str]]:
    return [(event.get("task"), event["type"]) for posted in receiver.posts for event in posted.body["events"]]


async def succeed_or_fail(ctx: AttemptContext, _payload: object) -> None:
    if ctx.kind == "bad":
        raise Permanent("no")


def test_what_was_asked_for_arrives_in_order_and_signed(acme: TenantId, receiver: Endpoint) -> None:
    made = hook(acme, receiver)
    globex = make_tenant("globex")
    with engine({"p": succeed_or_fail}):
        (good,) = submit_tasks(acme)
        wait_for_state(good, "succeeded")
        (bad,) = submit_tasks(acme, kind="bad")
        submit_tasks(globex)
        wait_for_state(bad, "failed")
        announce(acme, "alert.test", {"limit": 1})
        wait_until(lambda: len(told(receiver)) == 3, what="all three events")
    assert told(receiver) == [(good, "task.succeeded"), (bad, "task.failed"), (None, "alert.test")]
    assert all(is_signed(posted, made.secret) for posted in receiver.posts)
    assert {posted.body["tenant"] for posted in receiver.posts} == {"acme"}
    wait_until(lambda: Webhook.objects.get().cursor >= Event.objects.get(type="alert.test").seq)
    assert all(row.status == 200 and row.error is None for row in WebhookDelivery.objects.all())


def test_a_stretch_that_failed_is_posted_again_as_it_was_before_anything_later(
    acme: TenantId, receiver: Endpoint
) -> None:
    made = hook(acme, receiver, ("alert",))
    announce(acme, "alert.one", {})
    publish()
    first = next_stretch(made.webhook.id)
    assert first is not None
    # Claimed: nobody else posts it meanwhile.
    assert next_stretch(made.webhook.id) is None
    announce(acme, "alert.two", {})
    publish()
    delivered(first, Attempted(503, 0.1, "HTTP 503", 30.0))
    row = Webhook.objects.get()
    assert (row.failures, row.cursor) == (1, made.webhook.cursor)
    assert row.failing_since is not None
    assert (row.due_at - row.failing_since).total_seconds() == pytest.approx(30.0, abs=1.0)
    Webhook.objects.update(due_at=row.failing_since)
    again = next_stretch(made.webhook.id)
    assert again is not None
    assert (again.body, again.message_id) == (first.body, first.message_id)
    delivered(again, Attempted(200, 0.1))
    # A late word about the first try changes nothing any more.
    delivered(first, Attempted(None, 9.0, "timeout"))
    row = Webhook.objects.get()
    assert (row.failures, row.failing_since, row.cursor) == (0, None, first.last)
    second = next_stretch(made.webhook.id)
    assert second is not None
    assert b"alert.two" in second.body
    assert b"alert.one" not in second.body
    assert list(WebhookDelivery.objects.order_by("id").values_list("status", flat=True)) == [503, 200, None]


def test_one_that_failed_for_days_is_switched_off_with_an_alert_and_can_be_resumed(
    acme: TenantId, receiver: Endpoint
) -> None:
    made = hook(acme, receiver, ("alert",))
    announce(acme, "alert.one", {})
    publish()
    stretch = next_stretch(made.webhook.id)
    assert stretch is not None
    delivered(stretch, Attempted(410, 0.1, "HTTP 410"))
    assert Webhook.objects.get().standing == "disabled"
    publish()
    alert = Event.objects.get(type="alert.webhook_disabled")
    assert (alert.tenant_id, (alert.data or {})["webhook"]) == (acme, made.webhook.id)
    assert AuditEvent.objects.filter(action="webhook.disable", actor="system").exists()
    assert next_stretch(made.webhook.id) is None
    resumed = edit_webhook(
        made.webhook.id, acme, Webhook.objects.get().version, {"standing": made.webhook.standing}, ME
    )
    assert resumed.cursor == made.webhook.cursor
    with engine():
        wait_until(lambda: len(told(receiver)) == 2, what="both alerts")
    assert [event for _, event in told(receiver)] == ["alert.one", "alert.webhook_disabled"]


def test_it_can_be_replayed_from_a_place_as_far_as_events_are_kept(
    acme: TenantId, receiver: Endpoint, configure: Callable[..., conf.Config]
) -> None:
    made = hook(acme, receiver, ("alert",))
    for name in ("one", "two", "three"):
        announce(acme, f"alert.{name}", {})
    with engine():
        wait_until(lambda: len(told(receiver)) == 3, what="three alerts")
        wait_until(lambda: Webhook.objects.get().sending_to is None, what="their confirmation")
        second = Event.objects.get(type="alert.two").seq
        replay_webhook(made.webhook.id, acme, second - 1, ME)
        wait_until(lambda: len(told(receiver)) == 5, what="two of them again")
    assert [event for _, event in told(receiver)][3:] == ["alert.two", "alert.three"]
    configure(event_keep_s=0.0, outgoing_networks=conf.current().outgoing_networks)
    forget_events()
    with pytest.raises(Refused, match="can be delivered again from"):
        replay_webhook(made.webhook.id, acme, second - 1, ME)


def test_what_is_not_kept_any_more_is_said_to_be_lost(
    acme: TenantId, receiver: Endpoint, configure: Callable[..., conf.Config]
) -> None:
    made = hook(acme, receiver, ("alert",))
    announce(acme, "alert.one", {})
    publish()
    configure(event_keep_s=0.0)
    forget_events()
    configure(event_keep_s=60.0)
    announce(acme, "alert.two", {})
    publish()
    stretch = next_stretch(made.webhook.id)
    assert stretch is not None
    assert b'"lost":{"after":0,"until":1}' in stretch.body
    assert b"alert.two" in stretch.body


def test_one_of_every_tenant_has_alerts_of_all_and_of_none_in_particular(acme: TenantId, receiver: Endpoint) -> None:
    made = add_webhook(None, receiver.url, ("alert.breaker_open", "alert.budget"), ME)
    # Nobody wants transitions, so none are told; and what an alert's listener did not ask for is passed over.
    assert not EventListener.objects.exists()
    submit_tasks(acme, 3)
    announce(acme, "alert.budget", {"threshold": 0.8})
    announce(None, "alert.breaker_open", {"resource": "api"})
    announce(make_tenant("globex"), "alert.run_cap", {"run": 1})
    with engine():
        wait_until(lambda: len(told(receiver)) == 2, what="both alerts")
    assert [(e["type"], e["tenant"]) for post in receiver.posts for e in post.body["events"]] == [
        ("alert.budget", "acme"),
        ("alert.breaker_open", None),
    ]
    assert all(is_signed(post, made.secret) and post.body["tenant"] is None for post in receiver.posts)


def test_alerts_are_not_said_to_be_lost_when_only_transitions_were_forgotten(
    acme: TenantId, receiver: Endpoint, configure: Callable[..., conf.Config]
) -> None:
    hook(acme, receiver, ("task.ready",))
    made = hook(acme, receiver, ("alert",))
    submit_tasks(acme, 3)
    publish()
    configure(event_keep_s=0.0)
    forget_events()
    configure(event_keep_s=60.0)
    announce(acme, "alert.one", {})
    publish()
    stretch = next_stretch(made.webhook.id)
    assert stretch is not None
    assert b'"lost":null' in stretch.body


def test_many_events_are_posted_in_bounded_stretches_and_unwanted_ones_passed_over(
    acme: TenantId, receiver: Endpoint
) -> None:
    hook(acme, receiver, ("task.ready",))
    tasks = submit_tasks(acme, 250)
    for n in range(600):
        announce(acme, "alert.noise", {"n": n})
    with engine():
        wait_until(lambda: len(told(receiver)) >= len(tasks), what="all of them")
        wait_until(lambda: Webhook.objects.get().cursor == Event.objects.latest("seq").seq, what="the end")
    assert [task for task, _ in told(receiver)] == tasks
    assert max(len(posted.body["events"]) for posted in receiver.posts) == 100


def test_a_change_is_versioned_audited_and_its_secret_another_after_rotation(
    acme: TenantId, receiver: Endpoint
) -> None:
    made = hook(acme, receiver)
    assert made.secret.startswith("whsec_")
    edited = edit_webhook(made.webhook.id, acme, 1, {"events": ("alert",)}, ME)
    assert (edited.version, edited.events) == (2, ("alert",))
    with pytest.raises(VersionConflict):
        edit_webhook(made.webhook.id, acme, 1, {"events": ENDED}, ME)
    rotated = rotate_secret(made.webhook.id, acme, ME)
    assert rotated.secret != made.secret
    globex = make_tenant("globex")
    for use in (
        lambda: edit_webhook(made.webhook.id, globex, 3, {}, ME),
        lambda: rotate_secret(made.webhook.id, globex, ME),
        lambda: replay_webhook(made.webhook.id, globex, 0, ME),
        lambda: remove_webhook(made.webhook.id, globex, ME),
    ):
        with pytest.raises(NotFound):
            use()
    actions = list(AuditEvent.objects.order_by("id").values_list("action", flat=True))
    assert actions == ["webhook.add", "webhook.edit", "webhook.rotate"]
    assert not any(made.secret in str(row) for row in AuditEvent.objects.values())


def test_transitions_are_told_while_a_webhook_is_there_and_a_while_longer(acme: TenantId, receiver: Endpoint) -> None:
    made = hook(acme, receiver)
    assert "infinity" in _until()
    remove_webhook(made.webhook.id, acme, ME)
    assert "infinity" not in _until()


def _until() -> str:
    return str(EventListener.objects.extra(select={"said": "until::text"}).values_list("said", flat=True).get())


def test_a_test_goes_to_one_webhook_alone_also_a_paused_one_and_moves_nothing(
    acme: TenantId, receiver: Endpoint
) -> None:
    made, other = hook(acme, receiver), hook(acme, receiver)
    edit_webhook(made.webhook.id, acme, 1, {"standing": Standing.PAUSED}, ME)
    asked = ask_for_a_test(made.webhook.id, acme, ME)
    assert ask_for_a_test(made.webhook.id, acme, ME).test_at == asked.test_at
    with engine({"p": succeed_or_fail}):
        wait_until(lambda: WebhookDelivery.objects.count() == 1, what="the result of the test")
    (posted,) = receiver.posts
    assert (posted.body["webhook"], [event["type"] for event in posted.body["events"]]) == (
        made.webhook.id,
        ["webhook.test"],
    )
    assert is_signed(posted, made.secret)
    row = WebhookDelivery.objects.get()
    assert (row.webhook_id, row.first_seq, row.status) == (made.webhook.id, 0, 200)
    after = Webhook.objects.get(id=made.webhook.id)
    assert (after.test_at, after.cursor, after.standing) == (None, made.webhook.cursor, "paused")
    assert Webhook.objects.get(id=other.webhook.id).test_at is None
    assert AuditEvent.objects.filter(action="webhook.test").count() == 1


def test_a_test_that_failed_is_no_failure_of_the_webhook_and_counts_once(acme: TenantId, receiver: Endpoint) -> None:
    made = hook(acme, receiver)
    ask_for_a_test(made.webhook.id, acme, ME)
    stretch = next_stretch(made.webhook.id)
    assert stretch is not None
    assert next_stretch(made.webhook.id) is None  # claimed
    delivered(stretch, Attempted(500, 0.1, "HTTP 500"))
    delivered(stretch, Attempted(200, 0.1))
    assert [row.status for row in WebhookDelivery.objects.all()] == [500]
    assert Webhook.objects.get().failures == 0
    with pytest.raises(NotFound):
        ask_for_a_test(made.webhook.id, make_tenant("globex"), ME)
