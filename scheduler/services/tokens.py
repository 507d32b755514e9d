"""Makes, revokes and checks bearer tokens `cq_<id>_<secret>`.

Only the SHA-256 of a secret is stored; it has 192 random bits, so a slow hash would buy nothing. Tokens that may be
used are remembered in the process for `REMEMBERED_S`: a revocation or expiry takes effect everywhere within that time,
and at once in the process that revoked.
"""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Final, NamedTuple

from django.db import transaction

from scheduler.errors import FieldError, NotFound
from scheduler.policy.declarations import faults_in_scopes
from scheduler.policy.payload import fault_in_text
from scheduler.policy.types import TenantId
from scheduler.services.changes import Author, record, refuse
from scheduler.services.tenants import load_tenant
from scheduler.store import control as store
from scheduler.store import tokens as token_store

REMEMBERED_S: Final = 5.0
REMEMBERED_MAX: Final = 10_000
NOTED_EVERY_S: Final = 600.0
NAME_CHARS_MAX: Final = 200
_TOKEN: Final = re.compile(r"cq_([0-9a-z]{1,16})_([0-9A-Za-z_-]{16,128})")


@dataclass(frozen=True, slots=True)
class Principal:
    """Who calls. `tenant_id` None: any tenant. `pools` None: any pool."""

    tenant_id: TenantId | None
    tenant_slug: str | None
    scopes: frozenset[str]
    pools: frozenset[str] | None
    token_id: str

    @property
    def actor(self) -> str:
        """How the audit names the caller."""
        return f"token:{self.token_id}"


@dataclass(frozen=True, slots=True)
class NewToken:
    """A token just made. `text` is shown this once and kept nowhere."""

    text: str
    public_id: str


def create_token(
    *,
    scopes: Sequence[str],
    tenant: str | None = None,
    pools: Sequence[str] | None = None,
    expires_at: float | None = None,
    name: str = "",
    actor: str,
    reason: str = "",
    source: str = "ui",
) -> NewToken:
    """Make a token; `tenant` None acts for every tenant, `expires_at` is Unix seconds. Raises Refused, NotFound."""
    refuse(faults_in_scopes(scopes), code="bad_scope")
    _refuse_name(name)
    secret = secrets.token_hex(24)
    with transaction.atomic():
        owner = None if tenant is None else load_tenant(tenant).id
        _refuse_pools(pools)
        public_id = secrets.token_hex(6)
        store.add_token(
            public_id,
            _digest(secret),
            name=name,
            tenant=owner,
            scopes=list(dict.fromkeys(scopes)),
            pools=pools,
            expires_at=expires_at,
        )
        after = {"name": name, "tenant": tenant, "scopes": list(scopes), "pools": pools, "expires_at": expires_at}
        record(Author(actor, source, reason), "token.add", f"token:{public_id}", after=after)
    return NewToken(f"cq_{public_id}_{secret}", public_id)


def revoke_token(public_id: str, *, actor: str, reason: str = "", source: str = "ui") -> None:
    """Make a token useless. Raises NotFound when it is unknown or revoked already."""
    with transaction.atomic():
        if not store.revoke_token(public_id):
            raise NotFound(f"There is no token {public_id!r} in use.", code="unknown_token")
        record(Author(actor, source, reason), "token.revoke", f"token:{public_id}", after={"revoked": True})
        transaction.on_commit(partial(_forget, public_id))


def authenticate(text: str) -> Principal | None:
    """Who calls with this token. Unknown, malformed, expired and revoked tokens all give None."""
    match = _TOKEN.fullmatch(text)
    if match is None:
        return None
    public_id, secret = match.groups()
    row = _remembered(public_id) or _look_up(public_id)
    caller = _opened(row, secret)
    if caller is not None and row is not None and not row.used_lately:
        _note_use(row)
    return caller


class Recalled(NamedTuple):
    """What is known of a token without asking the database: who calls, None for one that opens nothing."""

    caller: Principal | None


def recall(text: str) -> Recalled | None:
    """What `authenticate` would say, for a loop that must not wait; None where it would have to ask the database.

    In one step: what is remembered at one moment may be forgotten at the next.
    """
    match = _TOKEN.fullmatch(text)
    if match is None:
        return Recalled(None)
    public_id, secret = match.groups()
    row = _remembered(public_id)
    return Recalled(_opened(row, secret)) if row is not None and row.used_lately else None


def _opened(row: store.TokenRow | None, secret: str) -> Principal | None:
    if row is None or not hmac.compare_digest(row.secret_sha256, _digest(secret)):
        return None
    return Principal(row.tenant, row.tenant_slug, row.scopes, row.pools, row.public_id)


_lock: Final = threading.Lock()
_rows: Final[dict[str, tuple[float, store.TokenRow]]] = {}


def _remembered(public_id: str) -> store.TokenRow | None:
    kept = _rows.get(public_id)
    return kept[1] if kept is not None and kept[0] > time.monotonic() else None


def _look_up(public_id: str) -> store.TokenRow | None:
    row = store.find_token(public_id)
    with _lock:
        if row is None:
            _rows.pop(public_id, None)
        else:
            if len(_rows) >= REMEMBERED_MAX:
                _rows.clear()
            _rows[public_id] = (time.monotonic() + REMEMBERED_S, row)
    return row


def _note_use(row: store.TokenRow) -> None:
    """Let the list of tokens say that this one is in use; at most every ten minutes, whatever it is used for."""
    token_store.note_use(row.public_id, every_s=NOTED_EVERY_S)
    with _lock:
        if row.public_id in _rows:
            _rows[row.public_id] = (_rows[row.public_id][0], replace(row, used_lately=True))


def _forget(public_id: str) -> None:
    with _lock:
        _rows.pop(public_id, None)


def forget_tokens() -> None:
    """Look every token up again, for tests that empty the tables."""
    with _lock:
        _rows.clear()


def _digest(secret: str) -> bytes:
    return hashlib.sha256(secret.encode()).digest()


def _refuse_name(name: str) -> None:
    said = fault_in_text(name)
    if said is None and len(name) > NAME_CHARS_MAX:
        said = f"has more than {NAME_CHARS_MAX} characters"
    if said is not None:
        refuse((FieldError(("name",), f"The name {said}."),), code="bad_name")


def _refuse_pools(pools: Sequence[str] | None) -> None:
    if pools is None:
        return
    known = {row.name for row in store.load_pools([p for p in pools if "\x00" not in p])}
    faults = tuple(FieldError(("pools",), f"There is no pool named {p!r}.") for p in pools if p not in known)
    refuse(faults, code="unknown_pool")
