"""What an API of a provider is, to the simulator: how it reads requests, and how it words answers and refusals.

Decides the seam between what happens to a request, which is the same for all, and how it is told.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Protocol

from scheduler.demo.provider_sim.asks import Answer, Ask, Refused
from scheduler.demo.provider_sim.faults import Fault
from scheduler.demo.provider_sim.http_request import Request
from scheduler.demo.provider_sim.limits import Bucket, Refusal
from scheduler.demo.provider_sim.settings import Settings
from scheduler.demo.provider_sim.wire_formats import Headers

Json = dict[str, object]


class Manners(Protocol):
    """How a family of APIs words what is not an answer."""

    @property
    def request_id_header(self) -> str:
        """The name of the header that tells the request's number."""

    def key_of(self, request: Request) -> str:
        """The key that the request came with, or an empty text."""

    def invalid(self, refused: Refused) -> Json:
        """The body of a request that is not understood."""

    def over_limit(self, refusal: Refusal, model: str) -> Json:
        """The body of the 429 of a limit."""

    def struck(self, fault: Fault, delay_s: float | None, model: str) -> tuple[int, Mapping[str, object]]:
        """Status and body of a fault at the door; `delay_s` is what it asks for."""

    def rate_headers(self, buckets: Mapping[str, Bucket], *, now: float) -> Headers:
        """What is left of the limits; `now` is the provider's clock, in seconds since the epoch."""

    def processing_headers(self, latency_s: float) -> Headers:
        """How long the answer took."""


class Api(Protocol):
    """One endpoint that answers."""

    @property
    def name(self) -> str:
        """What `/stats` calls it."""

    @property
    def manners(self) -> Manners:
        """How its family words refusals."""

    def parse(self, request: Request, settings: Settings) -> Ask:
        """Read a request. Raises Refused."""

    def whole(self, answer: Answer) -> Json:
        """The answer in one piece."""

    def events(self, answer: Answer) -> list[bytes]:
        """The answer as the events of a stream."""

    @property
    def end(self) -> bytes:
        """What follows the last event of a whole stream."""

    @property
    def stream_error(self) -> bytes:
        """The event of an overload in the middle of a stream."""


def event(data: Json, name: str | None = None) -> bytes:
    """One server-sent event."""
    head = "" if name is None else f"event: {name}\n"
    return f"{head}data: {json.dumps(data)}\n\n".encode()
