"""What this installation posts to URLs that its users name: signed, to open addresses only, and bounded.

Decides the signature, which address is connected to, and how much of an answer is read. A name is resolved once, and
the connection goes to the very address that was looked at: a name cannot point elsewhere a moment later. A redirect is
an answer like any other. It must never decide what an answer means, and never use a proxy of the environment.
"""

from __future__ import annotations

import asyncio
import base64
import hashlib
import hmac
import socket
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import httpx2 as httpx

from scheduler import conf
from scheduler.engine.executors.connections import trusted_authorities
from scheduler.policy.destinations import closed, is_open

CONNECT_TIMEOUT_S: Final = 5.0
ADDRESSES_MAX: Final = 3
"""Of one name, so that a dead one costs little."""


class DestinationClosed(Exception):
    """The URL leads to an address that may not be connected to; the message is a sentence for who gave the URL."""


class AnswerTooLarge(Exception):
    """More came than is read."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What came back, whatever its status."""

    status: int
    headers: Mapping[str, str]
    body: bytes


class Guarded(httpx.AsyncBaseTransport):
    """Resolves the host, refuses addresses that are not open, and sends over `inner` to one that is."""

    def __init__(self, inner: httpx.AsyncBaseTransport) -> None:
        self._inner = inner

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Send it. Raises DestinationClosed before anything is connected."""
        host = request.url.host
        addresses = await _open_addresses(host, request.url.port or (443 if request.url.scheme == "https" else 80))
        # Certificates are checked against the name, whatever the address.
        request.extensions = {**request.extensions, "sni_hostname": host}
        named = request.url
        for address in addresses[:-1]:
            request.url = named.copy_with(host=address)
            try:
                return await self._inner.handle_async_request(request)
            except (httpx.ConnectError, httpx.ConnectTimeout):
                # Nothing was sent; the name has another address.
                continue
        request.url = named.copy_with(host=addresses[-1])
        return await self._inner.handle_async_request(request)

    async def aclose(self) -> None:
        """Close what is beneath."""
        await self._inner.aclose()


async def _open_addresses(host: str, port: int) -> list[str]:
    """The addresses of the host that may be connected to, in the system's order of preference; never empty."""
    try:
        found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (socket.gaierror, UnicodeError) as error:
        raise httpx.ConnectError(f"{host} has no address: {error}") from error
    addresses = list(dict.fromkeys(str(address[0]) for _, _, _, _, address in found))
    allowed = conf.current().outgoing_networks
    usable = [address for address in addresses if is_open(address, allowed)]
    if not usable:
        raise DestinationClosed(closed(host, addresses[0]) if addresses else f"{host} has no address.")
    return usable[:ADDRESSES_MAX]


def one_time_client() -> httpx.AsyncClient:
    """A client for deliveries to many hosts: no connection is used twice, so none is used under another's name."""
    inner = httpx.AsyncHTTPTransport(
        verify=trusted_authorities(), trust_env=False, limits=httpx.Limits(max_keepalive_connections=0)
    )
    return guarded_client(inner)


def guarded_client(inner: httpx.AsyncBaseTransport) -> httpx.AsyncClient:
    """A client over a transport of one's own, with the guard before it."""
    return httpx.AsyncClient(transport=Guarded(inner), follow_redirects=False, trust_env=False)


def signature_headers(secret: bytes, body: bytes, *, message_id: str, timestamp_s: int) -> dict[str, str]:
    """The headers by which a receiver knows who sent this and when, after the Standard Webhooks specification.

    HMAC-SHA256 over `id.timestamp.body`, so that a copy is known by its id and an old one by its time.
    """
    signed = b".".join((message_id.encode(), str(timestamp_s).encode(), body))
    digest = base64.b64encode(hmac.digest(secret, signed, hashlib.sha256)).decode()
    return {
        "content-type": "application/json",
        "webhook-id": message_id,
        "webhook-timestamp": str(timestamp_s),
        "webhook-signature": f"v1,{digest}",
    }


async def post(
    client: httpx.AsyncClient,
    url: str,
    body: bytes,
    headers: Mapping[str, str],
    *,
    timeout_s: float,
    answer_bytes_max: int,
) -> Answer:
    """Post and read the answer.

    Raises DestinationClosed, AnswerTooLarge, TimeoutError after `timeout_s` for the whole, and httpx.HTTPError.
    """
    request = client.build_request(
        "POST",
        url,
        content=body,
        # Nothing packed: what is bounded is then what arrives.
        headers={"accept": "application/json", "accept-encoding": "identity", **headers},
        timeout=httpx.Timeout(timeout_s, connect=min(CONNECT_TIMEOUT_S, timeout_s / 2)),
    )
    async with asyncio.timeout(timeout_s):
        response = await client.send(request, stream=True)
        try:
            return Answer(response.status_code, response.headers, await _read(response, answer_bytes_max))
        finally:
            await response.aclose()


async def _read(response: httpx.Response, bytes_max: int) -> bytes:
    pieces = bytearray()
    async for piece in response.aiter_raw():
        pieces += piece
        if len(pieces) > bytes_max:
            raise AnswerTooLarge(f"the answer is larger than {bytes_max} bytes")
    return bytes(pieces)
