"""Keeps and forgets filters under a name: one person's own, or shared with everybody who may look at the console.

What a filter matches is asked anew whenever it is used; nothing is kept but its text.
"""

from __future__ import annotations

from typing import Final

from django.db import transaction

from scheduler.errors import Conflict, FieldError, NotFound, Refused
from scheduler.policy.filters import Filter, FilterFault, format_filter, parse_filter
from scheduler.services.changes import Author, record, refuse
from scheduler.store import saved_filters as store
from scheduler.store.saved_filters import SavedRow

NAME_CHARS_MAX: Final = 60
KEPT_MAX: Final = 50
"""Filters that one person keeps at most, and that are shared at most."""


def save_filter(name: str, text: str, owner: int | None, author: Author) -> str:
    """Keep a filter for a person (None: for all); one of the same name is replaced. Returns its text as it is kept.

    Raises Refused with every fault, Conflict when somebody else took the name at the same moment.
    """
    found = parse_filter(text)
    refuse(_faults(name, found), code="bad_saved_filter")
    assert not isinstance(found, FilterFault)  # noqa: S101 - it would have been refused
    kept = format_filter(found)
    with transaction.atomic():
        before = store.drop_named(owner, name)
        if before is None and store.count_saved(owner) >= KEPT_MAX:
            fault = FieldError(("name",), f"There are {KEPT_MAX} already; remove one first.")
            raise Refused(fault.msg, code="too_many_saved_filters", errors=(fault,))
        if not store.add_saved(owner, name, kept, by=author.actor[:200]):
            raise Conflict(f"Somebody else saved “{name}” just now.", code="saved_meanwhile")
        earlier = None if before is None else {"filter": before}
        record(author, "filter.save", f"filter:{name}", before=earlier, after={"filter": kept, "shared": owner is None})
    return kept


def forget_filter(saved: int, person: int, author: Author, *, shared: bool) -> SavedRow:
    """Forget one of a person's own, or (`shared`) one that is shared. Raises NotFound."""
    with transaction.atomic():
        row = store.drop_saved(saved, person, shared=shared)
        if row is None:
            raise NotFound("There is no such saved filter.", code="unknown_filter")
        record(author, "filter.forget", f"filter:{row.name}", before={"filter": row.filter, "shared": row.shared})
    return row


def _faults(name: str, found: Filter | FilterFault) -> tuple[FieldError, ...]:
    faults = []
    if not name or len(name) > NAME_CHARS_MAX or not name.isprintable():
        faults.append(FieldError(("name",), f"A name has 1 to {NAME_CHARS_MAX} characters that can be seen."))
    if isinstance(found, FilterFault):
        faults.append(FieldError(("filter",), str(found)))
    elif not found.terms:
        faults.append(FieldError(("name",), "The list is not filtered: there is nothing to save."))
    return tuple(faults)
