"""Remote workers: who they are, what they offer, and the leases that they hold. Planning and settling are not here."""

from __future__ import annotations

import uuid
from collections.abc import Collection, Iterable, Mapping, Sequence

from django.db import transaction

from scheduler.errors import FieldError, Forbidden, NotFound, Refused
from scheduler.policy.admission import worker_labels
from scheduler.policy.payload import fault_in_text
from scheduler.policy.remote import Beat, Claim, Given, Kept, RemoteWorker, WorkerLine
from scheduler.policy.types import LeaseId, PoolId, TenantId, WorkerId
from scheduler.services.again import again
from scheduler.services.changes import Author, check_reason, record
from scheduler.services.tokens import Principal
from scheduler.store import control
from scheduler.store import workers as store


@again
def register(
    caller: Principal,
    *,
    owner: str,
    slots: Mapping[str, int],
    labels: Mapping[str, str],
    worker: str | None = None,
    held: Collection[int] | None = None,
    gateway: WorkerId | None = None,
) -> RemoteWorker:
    """Make a worker known, or the same one again under its id; with a gateway it offers its slots at once.

    It belongs to the caller's tenant. Who comes back names the leases that it holds: the answer says which it does not
    know of. Raises Refused, Forbidden for a pool that the token does not name.
    """
    said = fault_in_text(owner)
    if said is not None:
        raise Refused(f"The owner {said}.", code="bad_owner", errors=(FieldError(("owner",), f"This text {said}."),))
    named = worker_labels(labels)
    declared = _declared(caller, slots)
    with transaction.atomic():
        for known in (_uuid(worker), WorkerId(str(uuid.uuid4()))):
            if known is None:
                continue
            # Looked for before it offers anything here: what it is given from now on is on its way.
            strays = store.load_strays(known, held) if held is not None else ()
            if store.register(
                known, name=owner, tenant=caller.tenant_id, declared=declared, labels=named, gateway=gateway
            ):
                return RemoteWorker(known, caller.tenant_id, declared, draining=False, strays=strays)
    raise AssertionError("an id that was made up is nobody's")


def _uuid(text: str | None) -> WorkerId | None:
    try:
        return None if text is None else WorkerId(str(uuid.UUID(text)))
    except ValueError:
        return None


def worker_id(text: str) -> WorkerId:
    """The id in a text. Raises NotFound for what is none."""
    known = _uuid(text)
    if known is None:
        raise unknown_worker(text)
    return known


def _declared(caller: Principal, slots: Mapping[str, int]) -> dict[PoolId, int]:
    """Slots by pool id. Pools that do not exist and pools that are run by engines are told apart."""
    pools = {row.name: row for row in control.load_pools([name for name in slots if "\x00" not in name])}
    for name in slots:
        row = pools.get(name)
        if caller.pools is not None and name not in caller.pools:
            allowed = ", ".join(sorted(caller.pools))
            raise Forbidden(f"This token may only work for: {allowed}.", code="pool_not_allowed")
        if row is None:
            detail = f"There is no pool named {name!r}."
            raise Refused(detail, code="unknown_pool", errors=(FieldError(("pools",), detail),))
        if row.executor != "remote":
            detail = f"The pool {name!r} is run by engines (executor {row.executor!r}); workers need one with 'remote'."
            raise Refused(detail, code="pool_not_remote", errors=(FieldError(("pools",), detail),))
    return {PoolId(pools[name].id): count for name, count in slots.items()}


def find(workers: Sequence[WorkerId]) -> dict[WorkerId, RemoteWorker]:
    """Those of these that are remote workers."""
    return {row.id: row for row in store.find(workers)}


@again
def offer(gateway: WorkerId, offers: Mapping[WorkerId, Mapping[PoolId, int]]) -> set[WorkerId]:
    """Store what workers offer through a gateway; returns those that are still known."""
    with transaction.atomic():
        return store.offer(gateway, offers)


@again
def withdraw(gateway: WorkerId, workers: Iterable[WorkerId]) -> None:
    """Workers left this gateway: they are given nothing more. What they hold stays theirs until its time is over."""
    with transaction.atomic():
        store.withdraw(gateway, workers)


@again
def beat(gateway: WorkerId, workers: Sequence[WorkerId]) -> Beat:
    """Note that these workers live. Those still this gateway's (and whether they are to drain), and what they hold."""
    with transaction.atomic():
        known = store.beat(gateway, workers)
        missing = set(workers) - known.keys()
        elsewhere = store.load_elsewhere(gateway, missing) if missing else frozenset()
        return Beat(known, elsewhere, store.load_held(known))


@again
def claim(gateway: WorkerId) -> list[Given]:
    """Leases for workers of this gateway, each handed out once."""
    with transaction.atomic():
        return store.claim(gateway)


@again
def renew(claims: Sequence[Claim]) -> dict[LeaseId, Kept]:
    """Keep leases. One that is missing from the answer is not the caller's any more. Idempotent."""
    with transaction.atomic():
        return store.renew(claims)


def own(claims: Sequence[Claim]) -> set[LeaseId]:
    """The leases that those who name them may report on."""
    return store.load_own(claims)


@again
def drain(worker: str, tenant: TenantId | None, author: Author) -> None:
    """Have a worker of `tenant` (None: anybody's) finish what it has and take nothing new. Raises NotFound."""
    check_reason(author)
    known = worker_id(worker)
    with transaction.atomic():
        if not store.drain(known, tenant):
            raise unknown_worker(worker)
        record(author, "worker.drain", f"worker:{known}", after={"draining": True})


def unknown_worker(worker: str) -> NotFound:
    """The answer to an id that is no worker's here."""
    return NotFound(f"There is no worker {worker!r}; register again.", code="unknown_worker")


def list_workers(caller: Principal, *, rows_max: int) -> list[WorkerLine]:
    """The caller's remote workers, newest first."""
    return store.load_lines(caller.tenant_id, rows_max=rows_max)
