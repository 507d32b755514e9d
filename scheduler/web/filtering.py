"""What pages with a filter's box share: the box with its fault, the chips beside it, and the addresses of pages."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final
from urllib.parse import urlencode

from django.http import HttpRequest

from scheduler.errors import Refused
from scheduler.policy.filters import DEAD, DISCARDED, Filter, Is, Key, format_filter, states_in
from scheduler.policy.operations import DIED
from scheduler.policy.states import REPLAYABLE, TERMINAL
from scheduler.reads.task_lists import read_filter

PLACE_DIGITS_MAX: Final = 18


@dataclass(frozen=True, slots=True)
class Box:
    """The text in the box and what is wrong with it; `asked` is the filter that the page shows."""

    text: str
    fault: str
    asked: Filter


@dataclass(frozen=True, slots=True)
class Chip:
    """A link that sets the filter's states, and whether they are set so now."""

    text: str
    url: str
    here: bool


def box_of(request: HttpRequest, *, always: Sequence[Is] = ()) -> Box:
    """The filter that the address asks for; one that is faulty leaves the page as it was before, as `was` says."""
    text = request.GET.get("filter", "").strip()
    try:
        asked, fault = read_filter(text), ""
    except Refused as refusal:
        asked, fault = _read_or_all(request.GET.get("was", "")), refusal.detail
    return Box(text, fault, Filter((*asked.terms, *always)))


def _read_or_all(text: str) -> Filter:
    try:
        return read_filter(text)
    except Refused:
        return Filter()


def place_of(request: HttpRequest, name: str) -> int | None:
    """A place in a list that an address names; one that no list gave out is none."""
    return place_of_text(request.GET.get(name, ""))


def place_of_text(said: str) -> int | None:
    """The same of a text."""
    return int(said) if said.isascii() and said.isdecimal() and len(said) <= PLACE_DIGITS_MAX else None


def address(path: str, asked: Filter, **more: int | str | None) -> str:
    """An address with the filter and what else is given, in one order."""
    values = {"filter": format_filter(asked), **{name: str(value) for name, value in more.items() if value is not None}}
    query = urlencode({name: value for name, value in values.items() if value})
    return f"{path}?{query}" if query else path


def state_chips(path: str, asked: Filter, words: Sequence[tuple[str, str]]) -> list[Chip]:
    """Chips for states: pairs of what is read and what the filter says; an empty word is every state."""
    rest = tuple(term for term in asked.terms if not (isinstance(term, Is) and term.key is Key.STATE))
    chips = []
    for text, word in words:
        wanted = Filter((Is(Key.STATE, (word,)), *rest) if word else rest)
        chips.append(Chip(text, address(path, wanted), set(wanted.terms) == set(asked.terms)))
    return chips


def bulk_of(asked: Filter) -> list[tuple[str, str]]:
    """What can be done to all that match: pairs of an operation's kind and its name. By the states asked for."""
    states = asked.values_of(Key.STATE) or ()
    if states == (DISCARDED,):
        return [("restore", "Restore…")]
    named = states_in(states)
    dead = DEAD in states or bool(named & DIED)
    offers = [
        ("replay", "Replay…", dead or not states or bool(named & REPLAYABLE)),
        ("cancel", "Cancel…", not states or bool(named - TERMINAL)),
        ("discard", "Discard…", dead or not states),
    ]
    return [(kind, label) for kind, label, offered in offers if offered]
