"""Draws one page from one board and cuts it into fragments: one source of markup for first paint and for every frame.

Templates mark what lives with ``{% live "td" some_id class="num" %}…{% endlive %}``. The tag writes the element and
records it; nested tags become nested fragments. Templates here are given the board only: never a request, a user,
a token or a time zone, so that one drawing serves every viewer.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any, Final

from django.conf import settings
from django.template import Context, Engine, Library, Node, NodeList, TemplateSyntaxError
from django.template.base import FilterExpression, Parser, Token, token_kwargs
from django.templatetags.static import static
from django.utils.html import escape
from django.utils.safestring import SafeString, mark_safe

from scheduler.live import wording
from scheduler.live.board import Board
from scheduler.live.frames import Fragment, Frame, Key, frame

ROOT_ID: Final = "live"
_PLACE = re.compile("\x01([^\x02]*)\x02")
_COLLECTOR: Final = "live_collector"

_TABLE_PARTS: Final = frozenset({"caption", "col", "colgroup", "tbody", "td", "tfoot", "th", "thead", "tr"})

register = Library()


class _Collector:
    """The fragments of one drawing, in document order, with a stack of those still open."""

    def __init__(self) -> None:
        self.own: dict[str, str] = {}
        self.parent: dict[str, str | None] = {}
        self.open: list[str] = []

    def start(self, fragment_id: str) -> None:
        if fragment_id in self.own:
            message = f"two live fragments have the id {fragment_id!r}"
            raise ValueError(message)
        self.own[fragment_id] = ""
        self.parent[fragment_id] = self.open[-1] if self.open else None
        self.open.append(fragment_id)

    def finish(self, own: str) -> str:
        fragment_id = self.open.pop()
        self.own[fragment_id] = own
        return f"\x01{fragment_id}\x02"

    def fragments(self) -> dict[str, Fragment]:
        holds = {fragment_id: tuple(_PLACE.findall(own)) for fragment_id, own in self.own.items()}
        html: dict[str, str] = {}
        for fragment_id in reversed(self.own):  # children are finished before what contains them
            html[fragment_id] = _PLACE.sub(lambda place: html[place[1]], self.own[fragment_id])
        return {
            fragment_id: Fragment(fragment_id, html[fragment_id], own, self.parent[fragment_id], holds[fragment_id])
            for fragment_id, own in self.own.items()
        }


class _LiveNode(Node):
    """An element that lives. It must be one that may stand anywhere in a body: a lone ``td`` would be dropped."""

    def __init__(
        self, tag: str, fragment_id: FilterExpression, attrs: dict[str, FilterExpression], body: NodeList
    ) -> None:
        if tag in _TABLE_PARTS:
            message = f"<{tag}> cannot live by itself; put the live element inside or around it"
            raise TemplateSyntaxError(message)
        self.tag, self.fragment_id, self.attrs, self.nodelist = tag, fragment_id, attrs, body

    def render(self, context: Context) -> SafeString:
        collector: _Collector = context[_COLLECTOR]
        fragment_id = str(self.fragment_id.resolve(context))
        attrs = "".join(
            f' {name.replace("_", "-")}="{escape(value.resolve(context))}"' for name, value in self.attrs.items()
        )
        collector.start(fragment_id)
        inner = self.nodelist.render(context).strip()
        own = f'<{self.tag} id="{escape(fragment_id)}"{attrs}>{inner}</{self.tag}>'
        return mark_safe(collector.finish(own))  # noqa: S308 - inner came out of autoescaping, attributes are escaped


@register.tag("live")
def _live(parser: Parser, token: Token) -> _LiveNode:
    """``{% live "tag" id name=value … %}``: an element that frames may replace."""
    name, *bits = token.split_contents()
    if len(bits) < 2:  # noqa: PLR2004 - the element and its id
        message = f"{name} needs an element name and an id"
        raise TemplateSyntaxError(message)
    attrs = token_kwargs(bits[2:], parser)
    body = parser.parse((f"end{name}",))
    parser.delete_first_token()
    return _LiveNode(bits[0].strip("\"'"), parser.compile_filter(bits[1]), attrs, body)


class _CellNode(_LiveNode):
    """A table cell around a live ``span``."""

    def __init__(self, fragment_id: FilterExpression, label: str, classes: str, body: NodeList) -> None:
        super().__init__("span", fragment_id, {}, body)
        self.opening = f'<td role="cell" data-label="{escape(label)}"' + (
            f' class="{escape(classes)}">' if classes else ">"
        )

    def render(self, context: Context) -> SafeString:
        return mark_safe(f"{self.opening}{super().render(context)}</td>")  # noqa: S308 - both parts are escaped


@register.tag("cell")
def _cell(parser: Parser, token: Token) -> _CellNode:
    """``{% cell id "Label" "classes" %}``: a cell with live contents that reads as a card line on a narrow screen."""
    _, fragment_id, label, *classes = token.split_contents()
    body = parser.parse(("endcell",))
    parser.delete_first_token()
    return _CellNode(parser.compile_filter(fragment_id), label.strip('"'), " ".join(classes).strip('"'), body)


for _filter in (
    wording.count,
    wording.amount,
    wording.rate,
    wording.percent,
    wording.duration,
    wording.clock,
    wording.day_and_clock,
    wording.machine,
):
    register.filter(_filter.__name__, _filter)


@register.filter
def tally_id(entry: str) -> str:
    """The id of the element beside an entry of the navigation."""
    return f"tally-{entry}"


@cache
def _engine() -> Engine:
    directories = [str(Path(settings.BASE_DIR) / "templates")]
    return Engine(
        dirs=directories,
        libraries={"live": __name__},
        builtins=[__name__],
        loaders=[("django.template.loaders.cached.Loader", ["django.template.loaders.filesystem.Loader"])],
    )


def draw(key: Key, board: Board, template: str, values: Mapping[str, Any], *, beside: str = "") -> Frame:
    """The frame of a page. Shape: one root ``<div id="live">`` around everything the template writes.

    The template `beside` draws what lives elsewhere in the shell.
    """
    collector = _Collector()
    context = Context({"board": board, **values, _COLLECTOR: collector, "sprite": static("sprite.svg")})
    collector.start(ROOT_ID)
    inner = _engine().get_template(template).render(context).strip()
    collector.finish(f'<div id="{ROOT_ID}" class="live">{inner}</div>')
    if beside:
        _engine().get_template(beside).render(context)
    return frame(key, board.seq, board.as_of_s, ROOT_ID, collector.fragments())
