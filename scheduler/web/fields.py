"""One labelled input of a form, drawn by ``ops/_field.html``, with its fault beside it when a form is refused."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from scheduler.errors import FieldError


@dataclass(frozen=True, slots=True)
class Field:
    """`kind` is an input's type, ``textarea`` or ``select``; `options` are pairs of value and text for a select.

    `value` is what stands in it, as text. `extra` are further attributes, for example ``{"min": "0"}``.
    """

    name: str
    label: str
    value: str = ""
    help: str = ""
    fault: str = ""
    kind: str = "text"
    required: bool = False
    options: Sequence[tuple[str, str]] = ()
    extra: dict[str, str] = field(default_factory=dict)

    @property
    def described_by(self) -> str:
        """The ids of what explains it, for ``aria-describedby``."""
        parts = [f"{self.name}-fault" if self.fault else "", f"{self.name}-help" if self.help else ""]
        return " ".join(part for part in parts if part)


def with_faults(fields: Sequence[Field], errors: Sequence[FieldError]) -> tuple[list[Field], list[str]]:
    """The fields with their faults, and the faults that belong to no field shown."""
    said: dict[str, str] = {}
    for error in errors:
        name = str(error.loc[-1]) if error.loc else ""
        said[name] = f"{said[name]} {error.msg}" if name in said else error.msg
    names = {each.name for each in fields}
    return (
        [replace(each, fault=said[each.name]) if each.name in said else each for each in fields],
        [msg for name, msg in said.items() if name not in names],
    )
