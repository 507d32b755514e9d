"""Decides what of a submitter's trace goes along with a task: the W3C `traceparent`, kept as a tag of that name.

It never decides what a task is: the same work submitted from another trace is the same work.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

TRACE_TAG: Final = "traceparent"
_TRACEPARENT: Final = re.compile(r"(?!ff)[0-9a-f]{2}-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}")


def traced(tags: Mapping[str, str] | None, header: str | None) -> Mapping[str, str] | None:
    """The tags with what the header says, where that is a trace and the tags name none."""
    if header is None or not _TRACEPARENT.fullmatch(header) or TRACE_TAG in (tags or {}):
        return tags
    return {**(tags or {}), TRACE_TAG: header}


def trace_of(tags: Mapping[str, str]) -> str | None:
    """The trace that a task belongs to; None without one, or where the tag is something else."""
    said = tags.get(TRACE_TAG, "")
    return said if _TRACEPARENT.fullmatch(said) else None


def untraced(tags: Mapping[str, str]) -> dict[str, str]:
    """The tags without it."""
    return {name: value for name, value in tags.items() if name != TRACE_TAG}
