"""Declares, edits, replays and removes webhooks. A change is versioned and audited in its own transaction.

A secret is shown once and kept nowhere: it is derived from the installation's own key and a random salt, so that the
database alone signs nothing. Another installation key means other secrets.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from django.db import transaction

from scheduler import conf
from scheduler.errors import FieldError, NotFound, Refused
from scheduler.policy.types import TenantId
from scheduler.policy.webhooks import Standing, faults_in_webhook, wants_transitions
from scheduler.services.changes import Author, VersionConflict, check_reason, differences, record, refuse
from scheduler.services.events import RETURN_S, listen
from scheduler.store import events as event_store
from scheduler.store import webhooks as store
from scheduler.store.webhooks import WebhookRow

WEBHOOKS_PER_TENANT_MAX: Final = 20
SALT_BYTES: Final = 16
SECRET_PREFIX: Final = "whsec_"  # noqa: S105 - the specification's mark, no secret


@dataclass(frozen=True, slots=True)
class NewSecret:
    """A webhook with the secret it has from now on; shown this once."""

    webhook: WebhookRow
    secret: str


def secret_of(salt: bytes) -> bytes:
    """The key that the deliveries of a webhook with this salt are signed with."""
    return hmac.digest(conf.current().secret_key.encode(), b"webhook secret " + salt, hashlib.sha256)


def add_webhook(tenant: TenantId | None, url: str, events: tuple[str, ...], author: Author) -> NewSecret:
    """Declare a webhook: it gets what happens from now on. Raises Refused with every fault.

    `tenant` None: of every tenant, and of what concerns none in particular, such as a limit that a provider closed.
    """
    check_reason(author)
    events = tuple(dict.fromkeys(events))
    refuse(faults_in_webhook(url, events, conf.current().outgoing_networks), code="bad_webhook")
    salt = secrets.token_bytes(SALT_BYTES)
    with transaction.atomic():
        if store.count(tenant) >= WEBHOOKS_PER_TENANT_MAX:
            owner = "A tenant" if tenant is not None else "The installation"
            raise Refused(f"{owner} has at most {WEBHOOKS_PER_TENANT_MAX} webhooks.", code="too_many_webhooks")
        _listen(tenant, events)
        row = _locked(store.add(tenant, url=url, events=events, salt=salt), tenant)
        record(author, "webhook.add", _subject(row), after=_told(row))
    return NewSecret(row, _written(salt))


def edit_webhook(
    webhook: int, tenant: TenantId | None, version: int, changes: Mapping[str, Any], author: Author
) -> WebhookRow:
    """Change `url`, `events` or `standing` (active or paused); being active again begins with a clean slate.

    Raises NotFound, VersionConflict when `version` is not the current one, Refused with every fault.
    """
    check_reason(author)
    with transaction.atomic():
        row = _locked(webhook, tenant)
        if row.version != version:
            raise VersionConflict(f"The webhook {webhook}", sent=version, current=row.version)
        wanted = replace(row, **changes)
        refuse(faults_in_webhook(wanted.url, wanted.events, conf.current().outgoing_networks), code="bad_webhook")
        if wanted.standing is Standing.DISABLED and row.standing is not Standing.DISABLED:
            fault = FieldError(("state",), "Say paused; disabled is what a webhook becomes that fails for too long.")
            refuse((fault,), code="bad_webhook")
        _listen(row.tenant, wanted.events)
        store.edit(webhook, version=version, url=wanted.url, events=wanted.events, standing=wanted.standing)
        if not wants_transitions(wanted.events):
            _listen_no_longer(row.tenant)
        after = _locked(webhook, tenant)
        before_told, after_told = differences(_told(row), _told(after))
        record(author, "webhook.edit", _subject(row), before=before_told, after=after_told)
        return after


def rotate_secret(webhook: int, tenant: TenantId | None, author: Author) -> NewSecret:
    """Another secret, which signs from now on. Raises NotFound."""
    check_reason(author)
    salt = secrets.token_bytes(SALT_BYTES)
    with transaction.atomic():
        row = _locked(webhook, tenant)
        store.replace_salt(webhook, salt)
        record(author, "webhook.rotate", _subject(row))
        return NewSecret(_locked(webhook, tenant), _written(salt))


def replay_webhook(webhook: int, tenant: TenantId | None, after: int, author: Author) -> WebhookRow:
    """Deliver again what is beyond this place. Raises NotFound, Refused when that is not kept any more."""
    check_reason(author)
    with transaction.atomic():
        row = _locked(webhook, tenant)
        bounds = event_store.load_bounds(row.tenant)
        last, first = bounds.last, bounds.kept_from if wants_transitions(row.events) else bounds.alerts_from
        if not first <= after <= last:
            detail = f"Events can be delivered again from {first} on; the newest is {last}."
            raise Refused(detail, code="not_kept", errors=(FieldError(("after",), detail),))
        store.rewind(webhook, after)
        record(author, "webhook.replay", _subject(row), before={"cursor": row.cursor}, after={"cursor": after})
        return _locked(webhook, tenant)


def test_webhook(webhook: int, tenant: TenantId | None, author: Author) -> WebhookRow:
    """Have one event of the type `webhook.test` posted to it and to nobody else, whatever it wants, paused or not.

    It is posted by an engine, tried once, and its result stands in the log. While one is on its way there is no other.
    Raises NotFound.
    """
    check_reason(author)
    with transaction.atomic():
        row = _locked(webhook, tenant)
        if store.ask_test(webhook):
            record(author, "webhook.test", _subject(row))
        return _locked(webhook, tenant)


def remove_webhook(webhook: int, tenant: TenantId | None, author: Author) -> None:
    """Remove a webhook and the log of its deliveries. Raises NotFound."""
    with transaction.atomic():
        row = _locked(webhook, tenant)
        store.remove(webhook)
        _listen_no_longer(row.tenant)
        record(author, "webhook.remove", _subject(row), before=_told(row))


def _listen(tenant: TenantId | None, events: Sequence[str]) -> None:
    """Have transitions told if they are wanted: alerts are anyway."""
    event_store.ensure_mark()
    if wants_transitions(events):
        listen(tenant, seconds=None)


def _listen_no_longer(tenant: TenantId | None) -> None:
    event_store.listen_no_longer(event_store.EVERYONE if tenant is None else tenant, seconds=RETURN_S)


def _locked(webhook: int, tenant: TenantId | None) -> WebhookRow:
    row = store.lock(webhook, tenant)
    if row is None:
        raise NotFound(f"There is no webhook {webhook}.", code="unknown_webhook")
    return row


def _written(salt: bytes) -> str:
    return SECRET_PREFIX + base64.b64encode(secret_of(salt)).decode()


def _subject(row: WebhookRow) -> str:
    return f"webhook:{row.id}"


def _told(row: WebhookRow) -> dict[str, object]:
    return {"tenant": row.tenant_slug, "url": row.url, "events": list(row.events), "state": row.standing.value}
