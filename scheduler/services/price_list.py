"""Adds and edits operators' prices. A price applies to attempts that start while it is valid, and to new estimates."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, replace
from typing import Any

from django.db import transaction

from scheduler.errors import Conflict, FieldError, NotFound
from scheduler.policy.books import PriceRow, PriceSettings
from scheduler.services.changes import Author, VersionConflict, check_reason, differences, record, refuse
from scheduler.store import accounts as store


def add_price(settings: PriceSettings, *, actor: str, reason: str = "", source: str = "ui") -> PriceRow:
    """Add a price. Raises Refused for a validity that ends before it begins, Conflict when there is such a price."""
    author = Author(actor, source, reason)
    check_reason(author)
    _refuse(settings)
    with transaction.atomic():
        price = store.add_price(settings)
        if price is None:
            detail = "There is a price of this model from that moment on; edit that one."
            raise Conflict(detail, code="name_taken", errors=(FieldError(("from",), detail),))
        row = load_price(price)
        record(author, "price.add", f"price:{price}", after=asdict(row.settings))
        return row


def edit_price(
    price: int, version: int, changes: Mapping[str, Any], *, actor: str, reason: str = "", source: str = "ui"
) -> PriceRow:
    """Change a price, by the names of `PriceSettings`. Raises NotFound, VersionConflict, Refused."""
    author = Author(actor, source, reason)
    check_reason(author)
    with transaction.atomic():
        row = load_price(price)
        if row.version != version:
            raise VersionConflict(f"The price {price}", sent=version, current=row.version)
        settings = replace(row.settings, **changes)
        _refuse(settings)
        if not store.edit_price(price, version=version, settings=settings):
            raise VersionConflict(f"The price {price}", sent=version, current=load_price(price).version)
        before, after = differences(asdict(row.settings), asdict(settings))
        record(author, "price.edit", f"price:{price}", before=before, after=after)
        return load_price(price)


def load_price(price: int) -> PriceRow:
    """The price of that id. Raises NotFound."""
    rows = store.load_prices(price=price)
    if not rows:
        raise NotFound(f"There is no price {price}.", code="unknown_price_id")
    return rows[0]


def _refuse(settings: PriceSettings) -> None:
    if settings.valid_from is not None and settings.valid_to is not None and settings.valid_to <= settings.valid_from:
        refuse((FieldError(("to",), "It would end before it begins."),), code="bad_price")
