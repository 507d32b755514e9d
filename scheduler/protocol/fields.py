"""Decides whether one field of a message is what it must be, and words the fault so that its sender can mend it."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any, Final

ID_MAX: Final = 2**63 - 1
TEXT_CHARS_MAX: Final = 10_000
SECONDS_MAX: Final = 366 * 86_400.0
_MISSING: Final = object()


class BadMessage(ValueError):
    """A message that cannot be understood: a stable code, what to do about it, and the field at fault."""

    def __init__(self, code: str, detail: str, field: str | None = None) -> None:
        super().__init__(detail)
        self.code = code
        self.detail = detail
        self.field = field


@dataclass(frozen=True, slots=True)
class Fields:
    """The fields of one message. Every reader raises BadMessage and names the field."""

    said: Mapping[str, Any]

    def value(self, name: str) -> Any:
        """Any JSON value; null when it is left out."""
        return self.said.get(name)

    def id(self, name: str) -> int:
        """A number that identifies something."""
        return self._id(name, self.said.get(name, _MISSING))

    def _id(self, name: str, value: object) -> int:
        if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value <= ID_MAX:
            raise self._bad(name, "a whole number that is not negative")
        return value

    def optional_id(self, name: str) -> int | None:
        """A number that identifies something, or nothing."""
        return None if self.said.get(name) is None else self.id(name)

    def ids(self, name: str, *, count_max: int = ID_MAX) -> tuple[int, ...]:
        """Several of them; none when it is left out."""
        value = self._optional(name, list, "a list of whole numbers") or []
        if len(value) > count_max:
            raise self._bad(name, f"a list of at most {count_max} numbers")
        return tuple(self._id(name, each) for each in value)

    def text(self, name: str, *, default: str | None = None, chars_max: int = TEXT_CHARS_MAX) -> str:
        """A text; `default` when it is left out, if there is one."""
        value = self.said.get(name, default)
        if not isinstance(value, str) or len(value) > chars_max:
            raise self._bad(name, f"a text of at most {chars_max} characters")
        return value

    def optional_text(self, name: str) -> str | None:
        """A text, or nothing."""
        return None if self.said.get(name) is None else self.text(name)

    def one_of(self, name: str, known: Collection[str]) -> str:
        """One of these words."""
        value = self.said.get(name)
        if value not in known:
            raise self._bad(name, f"one of {', '.join(known)}")
        return str(value)

    def flag(self, name: str) -> bool:
        """True or false; false when it is left out."""
        return bool(self._optional(name, bool, "true or false"))

    def optional_seconds(self, name: str) -> float | None:
        """A duration, or nothing."""
        value = self.said.get(name)
        return None if value is None else self._number(name, value, SECONDS_MAX)

    def _number(self, name: str, value: object, most: float) -> float:
        # NaN compares false with everything, and so is refused as well.
        if not isinstance(value, int | float) or isinstance(value, bool) or not 0 <= value <= most:
            raise self._bad(name, f"a number from 0 to {most:g}")
        return float(value)

    def optional_object(self, name: str) -> dict[str, Any] | None:
        """An object, or nothing."""
        value: dict[str, Any] | None = self._optional(name, dict, "an object")
        return value

    def numbers(self, name: str) -> dict[str, float]:
        """Numbers by name; none when it is left out."""
        return {n: self._number(f"{name}.{n}", v, 1e15) for n, v in self._named(name).items()}

    def texts(self, name: str) -> dict[str, str]:
        """Texts by name; none when it is left out."""
        value = self._named(name)
        for each, said in value.items():
            if not isinstance(said, str):
                raise self._bad(f"{name}.{each}", "a text")
        return value

    def texts_by_id(self, name: str) -> dict[int, str]:
        """Texts by the number that identifies each; none when it is left out."""
        said = self.texts(name)
        if not all(each.isdecimal() for each in said):
            raise self._bad(name, "an object with whole numbers as its names")
        return {int(each): text for each, text in said.items()}

    def names(self, name: str, *, count_max: int) -> list[str]:
        """Some names, one at least."""
        value = self._optional(name, list, "a list of names") or []
        if not 0 < len(value) <= count_max or not all(isinstance(each, str) for each in value):
            raise self._bad(name, f"a list of 1 to {count_max} names")
        return value

    def _named(self, name: str) -> dict[str, Any]:
        return self._optional(name, dict, "an object") or {}

    def _optional(self, name: str, kind: type, what: str) -> Any:
        value = self.said.get(name)
        if value is not None and not isinstance(value, kind):
            raise self._bad(name, what)
        return value

    def _bad(self, name: str, what: str) -> BadMessage:
        kind = self.said.get("type")
        where = f"{kind}.{name}" if isinstance(kind, str) and name != "type" else name
        return BadMessage("bad_field", f"{where} must be {what}.", name)
