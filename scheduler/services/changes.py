"""How operators' changes are written down and refused: one shape for the audit, one for an edit that came too late."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from scheduler.errors import Conflict, FieldError, Refused
from scheduler.policy.declarations import fault_in_reason
from scheduler.store import control as store

SOURCES: Final = ("ui", "api", "admin", "system")


@dataclass(frozen=True, slots=True)
class Author:
    """Who makes a change, through which door (`ui`, `api`, `admin` or `system`), and why."""

    actor: str
    source: str = "ui"
    reason: str = ""


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
    event = store.AuditEvent(author.actor[:200], author.source, action, subject[:200], author.reason, before, after)
    store.add_audit_event(event)


def differences(
    before: Mapping[str, object], after: Mapping[str, object]
) -> tuple[dict[str, object], dict[str, object]]:
    """Only what differs, before and after."""
    names = [name for name in after if before.get(name) != after[name]]
    return {name: before.get(name) for name in names}, {name: after[name] for name in names}
