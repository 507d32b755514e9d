"""Alerts of budgets as they are posted: signed, and never to what is not open."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import hmac
from collections.abc import Callable
from ipaddress import ip_network

import orjson
import pytest

from scheduler import conf
from scheduler.engine.messenger import tell
from scheduler.policy.alerts import DueAlert
from scheduler.policy.money import NANO
from tests.support.canned import CannedServer, answer, canned_server

SECRET = "whsec_test"


def alert(url: str) -> DueAlert:
    return DueAlert(7, "tenant", 1, "acme", 0.8, 10 * NANO, 8 * NANO, 0.0, 1, 0.0, 60.0, "UTC", ((url, SECRET),))


@pytest.mark.parametrize(("status", "fault"), [(200, None), (500, "HTTP 500"), (302, "HTTP 302")])
def test_an_alert_is_posted_signed_and_no_redirect_is_followed(
    status: int, fault: str | None, configure: Callable[..., conf.Config]
) -> None:
    configure(outgoing_networks=(ip_network("127.0.0.0/8"),))

    async def post() -> tuple[str | None, CannedServer]:
        async with canned_server(answer("", status=status)) as server:
            return await tell(alert(server.url)), server

    said, server = asyncio.run(post())
    assert said == fault
    (head,), (body,) = server.heads, server.bodies
    assert (body["tenant"], body["limit_usd"], body["spent_usd"]) == ("acme", "10.00", "8.00")
    sent = dict(line.split(": ", 1) for line in head.split("\r\n") if ": " in line)
    sent = {name.lower(): value for name, value in sent.items()}
    signed = b".".join((b"cronoq-alert-7", sent["webhook-timestamp"].encode(), orjson.dumps(body)))
    digest = base64.b64encode(hmac.digest(SECRET.encode(), signed, hashlib.sha256)).decode()
    assert sent["webhook-signature"] == f"v1,{digest}"


def test_an_address_that_is_not_open_is_not_asked() -> None:
    said = asyncio.run(tell(alert("http://127.0.0.1:9/hook")))
    assert said is not None
    assert said.startswith("DestinationClosed")
