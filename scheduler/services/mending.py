"""What an operator does about a limit in trouble: pause and resume it, close its breaker, let it have its full pace.

Each is audited in its own transaction and moves the limit's version on; doing what is done already changes nothing.
"""

from __future__ import annotations

from dataclasses import asdict

from django.db import transaction

from scheduler.policy.aimd import Pace
from scheduler.policy.breaker import as_new
from scheduler.services.changes import Author, check_reason, record
from scheduler.services.resources import load_resource
from scheduler.store import lessons as store
from scheduler.store import resources as resource_store


def pause_resource(name: str, *, actor: str, reason: str = "", source: str = "ui") -> None:
    """Let nothing be taken of a limit until it is resumed; what runs goes on. Raises NotFound."""
    author = Author(actor, source, reason)
    check_reason(author)
    with transaction.atomic():
        row = load_resource(name)
        if store.pause([row.view.id], actor=actor, reason=reason):
            record(author, "resource.pause", f"resource:{name}", before={"paused": False}, after={"paused": True})


def resume_resource(name: str, *, actor: str, reason: str = "", source: str = "ui") -> None:
    """Let be taken of a limit again, whoever paused it. Raises NotFound."""
    author = Author(actor, source, reason)
    check_reason(author)
    with transaction.atomic():
        row = load_resource(name)
        if row.pause is not None and store.resume(row.view.id):
            before = {"paused": True, "by": row.pause.by, "reason": row.pause.reason}
            record(author, "resource.resume", f"resource:{name}", before=before, after={"paused": False})


def reset_breaker(name: str, *, actor: str, reason: str = "", source: str = "ui") -> None:
    """Close a limit's breaker and forget its failures; calls that run already count for nothing. Raises NotFound."""
    author = Author(actor, source, reason)
    check_reason(author)
    with transaction.atomic():
        row = load_resource(name)
        (known,) = store.lock([row.view.id]).values()
        if known.breaker.open_until is None and known.breaker.window_at is None:
            return
        fresh = as_new(known.breaker, now=known.at)
        store.store({row.view.id: known._replace(breaker=fresh)})
        resource_store.touch(name)
        before = {"open_until": known.breaker.open_until, "failed": known.breaker.failed, "calls": known.breaker.calls}
        after = {"open_until": None, "failed": 0, "calls": 0}
        record(author, "resource.reset_breaker", f"resource:{name}", before=before, after=after)


def reset_factor(name: str, *, actor: str, reason: str = "", source: str = "ui") -> None:
    """Let a limit have all that is declared again, whatever its provider refused before. Raises NotFound."""
    author = Author(actor, source, reason)
    check_reason(author)
    with transaction.atomic():
        row = load_resource(name)
        (known,) = store.lock([row.view.id]).values()
        if known.pace.factor >= 1.0:
            return
        fresh = Pace(cut_at=known.at)
        store.store({row.view.id: known._replace(pace=fresh)})
        resource_store.touch(name)
        before, after = asdict(known.pace), asdict(fresh)
        record(author, "resource.reset_factor", f"resource:{name}", before=before, after=after)
