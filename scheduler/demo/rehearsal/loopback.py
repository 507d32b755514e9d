"""How the programs of a rehearsal speak to each other: HTTP on this machine, no proxy, and nothing to be trusted.

Decides what a client costs: loading certificates for connections that are never encrypted takes more than the call. It
must never be used for an address that somebody else may answer at.
"""

from __future__ import annotations

import ssl
from collections.abc import Mapping
from typing import Final

import httpx2 as httpx

_UNUSED: Final = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
"""Trusts nobody; it is here because a client loads everybody's certificates otherwise."""


def loopback_client(timeout_s: float, *, base_url: str = "", headers: Mapping[str, str] = {}) -> httpx.AsyncClient:
    """A client for addresses of this machine."""
    limits = httpx.Limits(max_connections=None)
    return httpx.AsyncClient(
        base_url=base_url, headers=dict(headers), timeout=timeout_s, trust_env=False, verify=_UNUSED, limits=limits
    )
