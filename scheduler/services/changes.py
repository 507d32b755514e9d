"""How operators' changes are written down and refused: one shape for the audit, one for an edit that came too late."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from ipaddress import ip_address
from typing import Final

from scheduler.errors import Conflict, FieldError, Refused
from scheduler.policy.declarations import fault_in_reason
from scheduler.store import audit as store


@dataclass(frozen=True, slots=True)
class Author:
    """Who makes a change, through which door (`ui`, `api`, `admin` or `system`), and why."""

    actor: str
    source: str = "ui"
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Origin:
    """Where a request came from: a network address and the name that its sender gave it, as far as they are known."""

    address: str | None = None
    request_id: str | None = None


_origin: Final[ContextVar[Origin]] = ContextVar("origin", default=Origin())  # noqa: B039 - it is frozen
_REQUEST_ID: Final = re.compile(r"[A-Za-z0-9_.:+/=-]{1,64}")


@contextmanager
def coming_from(address: str | None, request_id: str | None) -> Iterator[None]:
    """Let the audit of whatever is changed in this block say where it came from. What makes no sense is left out."""
    named = request_id if request_id is not None and _REQUEST_ID.fullmatch(request_id) else None
    token = _origin.set(Origin(_address(address), named))
    try:
        yield
    finally:
        _origin.reset(token)


def _address(text: str | None) -> str | None:
    try:
        return None if not text else str(ip_address(text))
    except ValueError:
        return None


class VersionConflict(Conflict):
    """An edit of a version that is not the current one. Carries both."""

    code = "version_conflict"

    def __init__(self, what: str, *, sent: int, current: int) -> None:
        detail = (
            f"{what} was changed meanwhile: you edited version {sent}, the current one is {current}. Reload it first."
        )
        super().__init__(
            detail, errors=(FieldError(("version",), f"You sent {sent}; the current version is {current}."),)
        )
        self.sent = sent
        self.current = current


def refuse(faults: tuple[FieldError, ...], *, code: str) -> None:
    """Raise Refused when there are faults."""
    if faults:
        raise Refused(" ".join(fault.msg for fault in faults), code=code, errors=faults)


def check_reason(author: Author) -> None:
    """Raise Refused when the reason cannot be kept."""
    fault = fault_in_reason(author.reason)
    if fault is not None:
        refuse((fault,), code="bad_reason")


def record(
    author: Author,
    action: str,
    subject: str,
    *,
    before: Mapping[str, object] | None = None,
    after: Mapping[str, object] | None = None,
) -> None:
    """Append to the audit, in the change's own transaction."""
    origin, said = _origin.get(), (action, subject[:200], author.reason, before, after)
    store.add(store.AuditEvent(author.actor[:200], author.source, *said, origin.address, origin.request_id))


def differences(
    before: Mapping[str, object], after: Mapping[str, object]
) -> tuple[dict[str, object], dict[str, object]]:
    """Only what differs, before and after."""
    names = [name for name in after if before.get(name) != after[name]]
    return {name: before.get(name) for name in names}, {name: after[name] for name in names}
