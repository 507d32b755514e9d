"""Decides whether a JSON value can be stored and handed on exactly as it came, and names the place that cannot.

PostgreSQL's jsonb has no NUL and no lone surrogates, JSON has no NaN, and numbers beyond 64 bits lose digits in most
languages that a worker may be written in. Refusing them at the door loses nothing; storing them would.
"""

from __future__ import annotations

from typing import Final

from scheduler.errors import FieldError

JSON_DEPTH_MAX: Final = 64
INT_MIN: Final = -(2**63)
INT_MAX: Final = 2**64 - 1
_INFINITY: Final = float("inf")

Path = tuple[str | int, ...]


def fault_in_text(text: str) -> str | None:
    """What is wrong with a string, as the end of a sentence, or None."""
    if "\x00" in text:
        return "contains a NUL character; remove it"
    if not text.isascii():
        try:
            text.encode()
        except UnicodeEncodeError:
            return "contains half of a surrogate pair; send complete characters"
    return None


def fault_in_json(value: object, path: Path = ()) -> FieldError | None:
    """The first place in a parsed JSON value that cannot be kept, or None. Never raises, whatever the value."""
    if isinstance(value, str):
        said = fault_in_text(value)
        return None if said is None else FieldError(path, f"This text {said}.")
    if value is None or isinstance(value, bool):
        return None
    if isinstance(value, int):
        if INT_MIN <= value <= INT_MAX:
            return None
        return FieldError(path, "This number needs more than 64 bits; send it as a string.")
    if isinstance(value, float):
        if value - value == 0.0:
            return None
        return FieldError(path, "NaN and infinity are not JSON; send null or a string.")
    if isinstance(value, dict | list | tuple):
        return _fault_inside(value, path)
    return FieldError(path, f"{type(value).__name__} is not a JSON type; send text, number, list, object or null.")


def _printable(name: str) -> str:
    """The key with what cannot be sent back replaced by question marks."""
    return name.replace("\x00", "?").encode(errors="replace").decode()


def _fault_inside(value: dict[object, object] | list[object] | tuple[object, ...], path: Path) -> FieldError | None:
    if len(path) >= JSON_DEPTH_MAX:
        return FieldError(path, f"The value is nested deeper than {JSON_DEPTH_MAX} levels; flatten it.")
    if isinstance(value, dict):
        for name, inner in value.items():
            if not isinstance(name, str):
                return FieldError(path, f"The object has a key that is not text but {type(name).__name__}.")
            said = fault_in_text(name)
            if said is not None:
                return FieldError((*path, _printable(name)), f"This key {said}.")
            if inner is not None and not isinstance(inner, bool):
                fault = fault_in_json(inner, (*path, name))
                if fault is not None:
                    return fault
        return None
    for index, inner in enumerate(value):
        fault = fault_in_json(inner, (*path, index))
        if fault is not None:
            return fault
    return None
