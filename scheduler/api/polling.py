"""Polls for work: what they are answered, and a short way for those that are as they should be.

Workers that poll do little else, and Django's resolver, its request and ninja's views cost a poll twice what it is
about. The short way takes only what is right: a token known to open it, a query and a body of the schemas. Everything
else goes to the view, which says what is wrong. Neither decides who gets what.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Mapping
from typing import Annotated, Any, Final, NamedTuple
from urllib.parse import parse_qsl

from pydantic import Field, ValidationError

from scheduler import conf
from scheduler.api.answers import In
from scheduler.api.bodies import parse
from scheduler.api.worker_schemas import PollIn
from scheduler.engine.remote.gateway import gateway
from scheduler.engine.remote.wording import lease_texts, stop_texts
from scheduler.errors import FieldError, Refused
from scheduler.protocol.fields import BadMessage
from scheduler.protocol.limits import FRAME_BYTES_MAX, SLOTS_MAX
from scheduler.protocol.messages import Report
from scheduler.protocol.messages import report as report_in
from scheduler.services import workers as service
from scheduler.services.tokens import Principal, recall

WAIT_MAX_S: Final = conf.current().wait_timeout_max_s
REPORTED_WAIT_S: Final = 0.05
"""How long the answer to reports is kept back for the attempts that follow them: a plan comes at once after an end."""
PATH: Final = re.compile(r"/api/v1/workers/([^/]+)/lease")
BEARER: Final = b"Bearer "
SCOPE: Final = "work"


class PollQuery(In):
    """How much, and for how long to wait."""

    max: Annotated[int, Field(ge=1, le=SLOTS_MAX)] = Field(1, description="Leases at most")
    wait_s: Annotated[float, Field(ge=0, le=WAIT_MAX_S)] = Field(30.0, description="Seconds to wait for the first")


class Poll(NamedTuple):
    """A worker asks for work."""

    caller: Principal
    worker: str
    wanted: PollQuery
    said: PollIn


def plain_poll(scope: Mapping[str, Any], body: bytes) -> Poll | None:
    """The poll that this request is; None for any other request, and for one that the view is to look at."""
    place = PATH.fullmatch(scope["path"])
    if place is None or scope["method"] != "POST" or not 0 < len(body) <= FRAME_BYTES_MAX:
        return None
    sent = next((value for name, value in scope["headers"] if name == b"authorization"), b"")
    token = sent.removeprefix(BEARER).decode("latin-1").strip()
    known = recall(token) if sent.startswith(BEARER) else None
    caller = None if known is None else known.caller
    if caller is None or SCOPE not in caller.scopes:
        return None
    try:
        query = dict(parse_qsl(scope["query_string"].decode("latin-1"), keep_blank_values=True))
        return Poll(caller, place[1], PollQuery.model_validate(query), PollIn.model_validate(parse(body)))
    except (ValidationError, Refused):
        return None


async def answer_poll(poll: Poll) -> str:
    """The answer, as JSON text. Raises NotFound for an unknown worker, Refused for a report that makes no sense."""
    caller, name, wanted, polled = poll
    hub = gateway()
    said = _reports_in(polled)
    seat = await hub.seat_for_polls(service.worker_id(name), caller)
    # Not cancelled with the request: a report that has come is settled also if its sender hangs up.
    reporting = asyncio.ensure_future(hub.report(said, caller)) if said else None
    news = await hub.poll(
        seat,
        leases_max=wanted.max,
        wait_s=min(wanted.wait_s, REPORTED_WAIT_S) if said else wanted.wait_s,
        held=polled.held,
        reporting=None if reporting is None else asyncio.shield(reporting),
    )
    drain = "true" if news.drain else "false"
    settled = "" if reporting is None else f',"settled":[{",".join(map(_settled, said, await reporting))}]'
    return f'{{"leases":[{",".join(lease_texts(news))}],"cancel":{stop_texts(news)},"drain":{drain}{settled}}}'


def _reports_in(body: PollIn) -> list[Report]:
    """The reports that come with a poll. Raises Refused, with the place, when one cannot be understood."""
    said = []
    for place, each in enumerate(body.reports):
        try:
            said.append(report_in(each))
        except BadMessage as fault:
            error = FieldError(("reports", str(place), fault.field or "type"), fault.detail)
            raise Refused(f"Report {place}: {fault.detail}", code="bad_report", errors=(error,)) from None
    return said


def _settled(said: Report, answer: str | Refused | None) -> str:
    """What became of one report, as JSON text; one that is refused or stale keeps no other from being settled."""
    if isinstance(answer, Refused):
        return json.dumps({"lease_id": said.lease, "code": answer.code, "detail": answer.detail})
    if answer is None:
        return json.dumps({"lease_id": said.lease, "stale": True, "code": "stale_lease"})
    return f'{{"lease_id":{said.lease},"state":"{answer}"}}'
