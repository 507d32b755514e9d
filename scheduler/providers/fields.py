"""Reads single values out of headers and JSON that somebody else wrote.

Decides what counts as a usable count, text or object. It must never raise on a strange value: strange is absent.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

COUNT_MAX: Final = 2**53
"""Counts above this are no token counts; JSON numbers stop being exact here."""


def header(headers: Mapping[str, str], name: str) -> str | None:
    """The value of the header `name` (lower case), whatever the case it was sent in; None if absent or blank."""
    value = headers.get(name)
    if value is None:
        value = next((each for key, each in headers.items() if key.lower() == name), None)
    return (value.strip() or None) if value is not None else None


def count(value: object) -> int | None:
    """A whole number >= 0, else None. A bool is no count, and neither are -1, NaN, or a number in a string."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    if not 0 <= value <= COUNT_MAX or value != int(value):
        return None
    return int(value)


def mapping(value: object) -> Mapping[str, object]:
    """The value if it is a JSON object, else an empty one."""
    return value if isinstance(value, dict) else {}


def text(value: object) -> str | None:
    """The value if it is a text with something in it, else None."""
    return value.strip() or None if isinstance(value, str) else None


def storable(value: str) -> str:
    """The text as any JSON store takes it: halves of a surrogate pair joined, lone ones and NUL replaced by U+FFFD.

    Streams cut an emoji's two halves apart when they are escaped in different chunks.
    """
    value = value.replace("\0", "\ufffd")
    try:
        value.encode()
    except UnicodeEncodeError:
        return value.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return value


def error_object(body: object) -> Mapping[str, object]:
    """The error inside an answer's body, in any of the shapes in use; a bare text becomes its `message`.

    Shapes: `{"error": {…}}`, `{"type": "error", "error": {…}}`, `{"error": "text"}`, `{"message": …}`,
    `[{"error": {…}}]` (Gemini streams), and text that is not JSON.
    """
    if isinstance(body, list) and body:
        body = body[0]
    if isinstance(body, str):
        return {"message": body}
    outer = mapping(body)
    inner = outer.get("error", outer)
    return {"message": inner} if isinstance(inner, str) else mapping(inner)
