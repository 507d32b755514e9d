"""Error families, named by what the caller should do next.

A leaf error carries a stable `code`; each edge maps the five families once, and never by leaf.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class FieldError:
    """One fault in a request: `loc` is the path to the field, `msg` says what to do about it."""

    loc: tuple[str | int, ...]
    msg: str


class CronoqError(Exception):
    """Base of every error that the product raises on purpose."""

    code = "error"

    def __init__(
        self,
        detail: str,
        *,
        code: str | None = None,
        errors: tuple[FieldError, ...] = (),
        retry_after_s: float | None = None,
    ) -> None:
        super().__init__(detail)
        self.detail = detail
        self.code = code or type(self).code
        self.errors = errors
        self.retry_after_s = retry_after_s


class Refused(CronoqError):
    """The request cannot be met as it stands: change the request."""

    code = "refused"


class Forbidden(CronoqError):
    """The caller is known but may not do this: ask for the permission that `detail` names."""

    code = "forbidden"


class NotFound(CronoqError):
    """No such thing in the caller's scope. Another tenant's things are not found either."""

    code = "not_found"


class Conflict(CronoqError):
    """The thing changed meanwhile, or is in a state that forbids this: reload and decide again."""

    code = "conflict"


class Unavailable(CronoqError):
    """Not now: the same request may succeed after `retry_after_s` seconds."""

    code = "unavailable"


class Broken(CronoqError):
    """An invariant does not hold: page us."""

    code = "broken"
