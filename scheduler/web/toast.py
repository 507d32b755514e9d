"""Keeps the short notice that follows an action, with its undo, from the redirect until the next page shows it."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any, Final

from django.http import HttpRequest

_KEY: Final = "toast"


@dataclass(frozen=True, slots=True)
class Undo:
    """The form that takes the action back: where it posts, the reason it gives, and what else it holds."""

    url: str
    reason: str
    values: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Toast:
    """`text` says what happened. `tone` is ``ok`` or ``bad``."""

    text: str
    tone: str = "ok"
    undo: Undo | None = None


def leave_toast(request: HttpRequest, toast: Toast) -> None:
    """Show this on the next page; it replaces one that was not shown yet."""
    request.session[_KEY] = asdict(toast)


def take_toast(request: HttpRequest) -> Toast | None:
    """The notice to show now, once. Touches the session only when there is one."""
    kept: dict[str, Any] | None = request.session.pop(_KEY, None) if _KEY in request.session else None
    if not kept:
        return None
    undo = kept.get("undo")
    return Toast(kept["text"], kept["tone"], Undo(**undo) if undo else None)
