"""Decides to which addresses this installation may send what its users ask it to send.

Who may name a URL could otherwise reach what only this machine reaches: its own ports, the private network, the cloud's
metadata. So only public addresses are open, and those that the operator names. Names are resolved elsewhere; whoever
resolves one asks here about the address that it connects to, never about the name. It must never resolve anything.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address
from typing import Final
from urllib.parse import urlsplit

Address = IPv4Address | IPv6Address
Network = IPv4Network | IPv6Network

URL_CHARS_MAX: Final = 2_000

_NAT64: Final = IPv6Network("64:ff9b::/96")
_SITE_LOCAL: Final = IPv6Network("fec0::/10")
_CARRIES_IPV4_LAST: Final = IPv6Network("::/96")
_NUMBER = re.compile(r"[0-9]+|0x[0-9a-f]*")
"""A name does not end so, but some resolvers take it for an address."""
_SPELT_WRONG: Final = frozenset("\\ \t\r\n\x00")


def is_open(address: str, allowed: Sequence[Network] = ()) -> bool:
    """Whether a connection to this address may be made: it is public, or inside a network of `allowed`.

    An IPv6 address that stands for an IPv4 one (mapped, translated, tunnelled) is judged by that one as well.
    """
    try:
        found = ip_address(address.partition("%")[0])
    except ValueError:
        return False
    return _is_in(found, allowed) or all(_is_public(each) or _is_in(each, allowed) for each in _meant(found))


def fault_in_url(url: str, allowed: Sequence[Network] = ()) -> str | None:
    """What is wrong with a URL to post to, as a sentence; None as far as can be said before its name is resolved."""
    if len(url) > URL_CHARS_MAX:
        return f"A URL has at most {URL_CHARS_MAX} characters."
    if _SPELT_WRONG & set(url):
        return "A URL has no spaces, backslashes or line ends."
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError:
        return "This is not a URL."
    if parts.scheme not in ("http", "https") or not host or port == 0:
        return "Give an http or https URL with a host."
    if parts.username is not None or parts.password is not None or parts.fragment:
        return "A URL here holds no user name, password or fragment."
    return _fault_in_host(host, allowed)


def _fault_in_host(host: str, allowed: Sequence[Network]) -> str | None:
    literal = _literal(host)
    if literal is not None:
        return None if is_open(literal, allowed) else closed(host, literal)
    name = host.rstrip(".")
    if _NUMBER.fullmatch(name.rpartition(".")[2]):
        return f"{host!r} is neither a name nor an address."
    if name == "localhost" or name.endswith(".localhost"):
        return None if is_open("127.0.0.1", allowed) or is_open("::1", allowed) else closed(host, "127.0.0.1")
    return None


def closed(host: str, address: str) -> str:
    """The refusal of an address, with what an operator can do about it."""
    return (
        f"{host} is at {address}, which is not a public address. The operator of this installation may allow its "
        "network in CRONOQ_OUTGOING_NETWORKS."
    )


def _literal(host: str) -> str | None:
    try:
        return str(ip_address(host.partition("%")[0]))
    except ValueError:
        return None


def _is_public(address: Address) -> bool:
    return (
        address.is_global
        and not address.is_multicast
        and not address.is_reserved
        and not address.is_unspecified
        and not _is_in(address, (_SITE_LOCAL,))
    )


def _is_in(address: Address, networks: Sequence[Network]) -> bool:
    return any(address in network for network in networks)


def _meant(address: Address) -> tuple[Address, ...]:
    """The addresses that a packet to this one may end up at."""
    if isinstance(address, IPv4Address):
        return (address,)
    if address.ipv4_mapped is not None:
        return (address.ipv4_mapped,)
    if address in _NAT64:
        return (IPv4Address(int(address) & 0xFFFFFFFF),)
    if address.sixtofour is not None:
        return (address, address.sixtofour)
    if address.teredo is not None:
        return (address, *address.teredo)
    if address in _CARRIES_IPV4_LAST:
        return (address, IPv4Address(int(address) & 0xFFFFFFFF))
    return (address,)
