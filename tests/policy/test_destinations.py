"""To which addresses anything is sent: public ones, and those that the operator allows."""

from __future__ import annotations

from ipaddress import ip_network

import pytest

from scheduler.policy.destinations import URL_CHARS_MAX, fault_in_url, is_open

ALLOWED = (ip_network("10.1.0.0/16"), ip_network("127.0.0.1/32"), ip_network("::1/128"))


@pytest.mark.parametrize(
    "address",
    [
        "8.8.8.8",
        "2606:4700::1111",
        "::ffff:8.8.8.8",  # an IPv4 address in IPv6 clothes
        "64:ff9b::808:808",  # translated
        "2002:808:808::1",  # 6to4
    ],
)
def test_public_addresses_are_open(address: str) -> None:
    assert is_open(address)


@pytest.mark.parametrize(
    "address",
    [
        "127.0.0.1",
        "10.1.2.3",
        "172.16.0.1",
        "192.168.1.1",
        "169.254.169.254",  # the metadata of clouds
        "100.64.0.1",
        "0.0.0.0",
        "224.0.0.1",
        "255.255.255.255",
        "198.18.0.1",
        "::",
        "::1",
        "fe80::1%eth0",
        "fc00::1",
        "fec0::1",
        "ff02::1",
        "2001:db8::1",
        "::ffff:127.0.0.1",
        "::127.0.0.1",
        "64:ff9b::7f00:1",
        "2002:7f00:1::",
        "2001:0:7f00:1::",
        "example.com",
        "",
    ],
)
def test_everything_else_is_closed(address: str) -> None:
    assert not is_open(address)


def test_the_operator_opens_networks_and_nothing_beside_them() -> None:
    assert is_open("10.1.2.3", ALLOWED)
    assert is_open("::ffff:10.1.2.3", ALLOWED)
    assert is_open("::1", ALLOWED)
    assert not is_open("10.2.0.1", ALLOWED)
    assert not is_open("127.0.0.2", ALLOWED)


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("ftp://x.example/", "http or https"),
        ("https://", "with a host"),
        ("http://x.example:0/", "with a host"),
        ("http://x.example:99999/", "not a URL"),
        ("http://[::1/", "not a URL"),
        ("https://user:pw@x.example/", "no user name"),
        ("https://x.example/#part", "fragment"),
        ("https://x.example\\@y.example/", "backslashes"),
        ("https://x.example/\r\nHost: y", "line ends"),
        ("https://x.example/" + "a" * URL_CHARS_MAX, "at most"),
        ("http://127.0.0.1/", "not a public address"),
        ("http://[::ffff:10.0.0.1]/", "not a public address"),
        ("http://localhost:8000/", "CRONOQ_OUTGOING_NETWORKS"),
        ("http://api.LOCALHOST./", "not a public address"),
        ("http://2130706433/", "neither a name nor an address"),
        ("http://0x7f.1/", "neither a name nor an address"),
        ("http://0x7f000001/", "neither a name nor an address"),
    ],
)
def test_a_url_that_cannot_be_posted_to_says_why(url: str, said: str) -> None:
    fault = fault_in_url(url)
    assert fault is not None
    assert said in fault


def test_a_name_is_judged_when_it_is_resolved() -> None:
    assert fault_in_url("https://hooks.example/a?b=c") is None
    assert fault_in_url("https://notlocalhost/") is None
    assert fault_in_url("http://8.8.8.8:8080/x") is None


def test_what_the_operator_allows_may_be_named() -> None:
    assert fault_in_url("http://localhost:9/", ALLOWED) is None
    assert fault_in_url("http://127.0.0.1:9/", ALLOWED) is None
    assert fault_in_url("http://10.9.0.1/", ALLOWED) is not None
