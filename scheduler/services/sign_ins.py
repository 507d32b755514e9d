"""Decides when signing in must wait: after a few tries for a name from an address, many from an address or for a name.

A try is counted before its password is looked at, so that any number at once get no more looks than one after another,
and a success is taken back. Whether an account exists plays no part. A name that has signed in from an address waits
there only for its own faults: nobody elsewhere can keep it out. Each count is a statement and a commit of its own, so
that no lock is held while a password is checked, and none while another is waited for.
"""

from __future__ import annotations

import unicodedata
from dataclasses import dataclass
from ipaddress import IPv6Address, IPv6Network, ip_address
from typing import Final

from django.utils.crypto import salted_hmac

from scheduler.store import sign_ins as store
from scheduler.store.sign_ins import Gate

LEAK_S: Final = 3_600.0
NAME_AT_ADDRESS: Final = Gate(free=5, first_s=30.0, longest_s=900.0, leak_s=LEAK_S)
ADDRESS: Final = Gate(free=50, first_s=30.0, longest_s=900.0, leak_s=LEAK_S)
NAME: Final = Gate(free=100, first_s=1.0, longest_s=10.0, leak_s=LEAK_S)
"""For tries from many addresses: it slows them, and never stops somebody for long who is new at theirs."""
KEEP_S: Final = 86_400.0
KNOWN_S: Final = 90 * 86_400.0
FORGET_MAX: Final = 1_000
NETWORK_BITS: Final = 64
"""How much of an IPv6 address names its owner."""


@dataclass(frozen=True, slots=True)
class Try:
    """A try of a name from an address; `wait_s` above 0: it is not to be looked at for so many seconds."""

    wait_s: float
    pair: str
    shared: tuple[str, ...] = ()
    """What else it was counted against."""


def begin(username: str, address: str) -> Try:
    """Count a try and say whether its password may be looked at."""
    name, place = _folded(username), _owner(address)
    pair = _key("name at address", f"{name}\0{place}")
    own = store.count_try(pair, NAME_AT_ADDRESS)
    if own.wait_s > 0.0 or own.known:
        return Try(own.wait_s, pair)
    by_address, by_name = _key("address", place), _key("name", name)
    wait_s = store.count_try(by_address, ADDRESS).wait_s
    if wait_s > 0.0:
        return Try(wait_s, pair)
    wait_s = store.count_try(by_name, NAME).wait_s
    return Try(wait_s, pair, (by_address, by_name))


def succeed(tried: Try) -> None:
    """The password was right: the name is known at the address from now on, and the try is no fault of anybody's."""
    store.know(tried.pair)
    for key in tried.shared:
        store.take_back(key)


def forget_tries() -> int:
    """Forget what nobody tried for a day, and who was known somewhere three months ago; returns how many."""
    return store.forget(keep_s=KEEP_S, known_s=KNOWN_S, rows_max=FORGET_MAX)


def _folded(username: str) -> str:
    """One spelling for all that may be taken for the same name: the sign-in form strips and composes them too."""
    return unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", username).strip().casefold())


def _owner(address: str) -> str:
    """Who has the address: itself, or the network of one of version 6, of which everyone has many."""
    try:
        known = ip_address(address)
    except ValueError:
        return address
    if isinstance(known, IPv6Address):
        return str(known.ipv4_mapped or IPv6Network((int(known), NETWORK_BITS), strict=False))
    return str(known)


def _key(kind: str, value: str) -> str:
    return salted_hmac(f"sign-in {kind}", value.encode(errors="replace"), algorithm="sha256").hexdigest()[:32]
