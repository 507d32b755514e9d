"""The newest picture that the leader wrote."""

from __future__ import annotations

from scheduler.store.overview import SnapshotRow, load_latest_snapshot

__all__ = ["SnapshotRow", "latest_snapshot"]


def latest_snapshot() -> SnapshotRow | None:
    """The newest picture (`seq`, `as_of` in Unix seconds, `body`), or None when no engine ever ran."""
    return load_latest_snapshot()
