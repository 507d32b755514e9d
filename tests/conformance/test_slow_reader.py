"""A worker whose TCP connection takes nothing more: the server keeps little for it, ends it, and has its work back."""

from __future__ import annotations

import json

import pytest
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import ClientConnection, connect

from scheduler.models import Task, Worker
from scheduler.protocol.limits import UNREAD_BYTES_MAX
from scheduler.sdk.socket_line import socket_url
from tests.conformance.conftest import Site
from tests.support.server import running_server
from tests.support.waiting import wait_until

pytestmark = [pytest.mark.acceptance, pytest.mark.xdist_group("conformance python")]

IMPATIENT = "import scheduler.protocol.limits as limits; limits.PING_EVERY_S = limits.PONG_WITHIN_S = 1.0"
PAYLOAD_BYTES = 200_000
TASKS = 100


def characters_left(client: ClientConnection) -> int:
    """How much was on its way when the connection was ended. Raises TimeoutError when it was not."""
    count = 0
    try:
        while True:
            count += len(client.recv(timeout=10))
    except ConnectionClosed:
        return count


def test_who_does_not_read_is_ended_and_what_it_was_not_sent_goes_back_unspent(site: Site) -> None:
    # It reads one frame ahead and then leaves what comes to the network.
    stalls = {"max_queue": 1, "ping_interval": None, "close_timeout": 1}
    with (
        running_server(site.database_url, before=IMPATIENT) as url,
        connect(socket_url(url), compression=None, max_size=None, proxy=None, **stalls) as client,  # type: ignore[arg-type]  # of several types
    ):
        hello = {"protocol": 1, "token": site.token, "owner": "sleepy", "pools": ["remote"], "slots": TASKS}
        client.send(json.dumps({"type": "hello", **hello}))
        worker = json.loads(client.recv(timeout=20))["worker"]
        tasks = [site.submit("x" * PAYLOAD_BYTES)[0] for _ in range(TASKS)]
        ended = Worker.objects.filter(pk=worker, slots={})
        wait_until(ended.exists, timeout_s=30, what="the server to give the worker up")
        unspent = Task.objects.filter(pk__in=tasks, state="ready", attempts=0)
        wait_until(lambda: unspent.count() >= TASKS // 2, timeout_s=20, what="work that was not sent to be handed back")
        # What was handed over at once comes on top of the bound, which is looked at before.
        assert 0 < characters_left(client) < 2 * UNREAD_BYTES_MAX < TASKS * PAYLOAD_BYTES // 2
        for task in tasks:
            site.api.post(f"/tasks/{task}/cancel", json={})
