"""Decides what a page must be told to move from one frame to another: the smallest message, or nothing.

A frame is one page drawn from one snapshot, cut into nested fragments. Each fragment is compared by what is *its own*:
its markup with the nested fragments left out. A table row whose number changed therefore sends one cell; a table that
gained a row sends the table.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from hashlib import blake2s
from typing import Final

BEAT_ID: Final = "live-beat"
_DELTAS_KEPT_MAX: Final = 8


@dataclass(frozen=True, slots=True)
class Key:
    """What is watched: a live page, and the one thing on it where the page is about one thing."""

    page: str
    scope: str = ""


@dataclass(frozen=True, slots=True)
class Fragment:
    """One element with an id. `own` is its markup without nested fragments; `holds` are the ids of those."""

    id: str
    html: str
    own: str
    parent: str | None
    holds: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Frame:
    """One page drawn from one snapshot. `root` names the fragment that contains all others."""

    key: Key
    seq: int
    as_of_s: float | None
    root: str
    fragments: Mapping[str, Fragment]
    shape: str
    _deltas: dict[int, str] = field(default_factory=dict, compare=False, repr=False)

    @property
    def html(self) -> str:
        """The whole page body."""
        return self.fragments[self.root].html

    @property
    def beside(self) -> list[str]:
        """What lives outside the page body: each has its own place in the shell."""
        return [each.html for each in self.fragments.values() if each.parent is None and each.id != self.root]

    def leaves(self) -> list[str]:
        """Every innermost fragment and no container: enough for a page of the same shape with older contents."""
        return [fragment.html for fragment in self.fragments.values() if not fragment.holds]

    def since(self, earlier: Frame) -> str:
        """What changed since an earlier frame of the same key; empty when nothing visible did."""
        known = self._deltas.get(earlier.seq)
        if known is None:
            known = "".join(fragment.html for fragment in _changed(earlier.fragments, self.fragments))
            if len(self._deltas) < _DELTAS_KEPT_MAX:
                self._deltas[earlier.seq] = known
        return known


def frame(key: Key, seq: int, as_of_s: float | None, root: str, fragments: Mapping[str, Fragment]) -> Frame:
    """A frame with its shape: a digest of every container's own markup, equal when only contents differ."""
    digest = blake2s(digest_size=6)
    for fragment in fragments.values():
        if fragment.holds:
            digest.update(fragment.own.encode(errors="replace"))
        else:
            digest.update(fragment.id.encode(errors="replace"))
    return Frame(key, seq, as_of_s, root, fragments, shape=digest.hexdigest())


def _changed(before: Mapping[str, Fragment], after: Mapping[str, Fragment]) -> Iterable[Fragment]:
    sent: set[str] = set()
    for fragment in after.values():  # parents come before what they hold
        if fragment.parent in sent:
            sent.add(fragment.id)
            continue
        earlier = before.get(fragment.id)
        if earlier is None or earlier.own != fragment.own:
            sent.add(fragment.id)
            yield fragment


def beat(frame_: Frame, age_s: float, *, lost: bool = False) -> str:
    """The element that opens every message: what the frame is, and the age of its snapshot. At most 200 bytes.

    `lost`: the last look for a newer snapshot failed, since the database did not answer.
    """
    return (
        f'<i id="{BEAT_ID}" data-seq="{frame_.seq}" data-at="{frame_.as_of_s or 0:.3f}" data-age="{max(age_s, 0):.1f}"'
        f' data-shape="{frame_.shape}" data-lost="{"yes" if lost else ""}" hidden></i>'
    )


def opening(frame_: Frame, *, seq: int | None, shape: str) -> list[str]:
    """What a joining viewer is sent after the beat, given the sequence number and shape of the page it shows."""
    if shape != frame_.shape:
        return [frame_.html, *frame_.beside]
    return [] if seq == frame_.seq else frame_.leaves()


def out_of_band(fragments: Iterable[str]) -> str:
    """The same fragments for an HTTP answer, where each top-level element must ask to be swapped by its id."""
    return "".join(html.replace(" id=", ' hx-swap-oob="true" id=', 1) for html in fragments)
