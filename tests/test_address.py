"""Addresses to listen on, as they are written."""

from __future__ import annotations

import pytest

from poorhttp.address import UNIX_PATH_MAX, Address, parse


@pytest.mark.parametrize(
    ("text", "host", "port"),
    [
        ("127.0.0.1:8080", "127.0.0.1", 8080),
        ("0.0.0.0:0", "0.0.0.0", 0),
        ("localhost:65535", "localhost", 65535),
        ("[::1]:80", "::1", 80),
        ("[::]:80", "::", 80),
        ("[fe80::1%eth0]:80", "fe80::1%eth0", 80),
    ],
)
def test_tcp(text: str, host: str, port: int) -> None:
    address = parse(text)
    assert (address.kind, address.host, address.port) == ("tcp", host, port)
    assert str(address) == text
    assert address.url == f"http://{text}"


def test_unix() -> None:
    address = parse("unix:run/my server.sock")
    assert (address.kind, address.path) == ("unix", "run/my server.sock")
    assert address.url == str(address) == "unix:run/my server.sock"


def test_fd() -> None:
    address = parse("fd:3")
    assert (address.kind, address.fd) == ("fd", 3)
    assert address.url == str(address) == "fd:3"


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("", "has no port"),
        ("8080", "write 127.0.0.1:8080"),
        ("localhost", "write it as HOST:PORT"),
        (":8080", r"0\.0\.0\.0:8080 for every IPv4 interface"),
        ("localhost:", '"" in "localhost:" is not a port'),
        ("localhost:http", '"http" in "localhost:http" is not a port'),
        ("localhost:65536", "a number from 0 to 65535"),
        ("localhost:-1", "is not a port"),
        ("localhost:٣", "is not a port"),
        ("::1:8080", r"stands in brackets: \[::1\]:8080"),
        ("[::1]", "is not a port"),
        ("[nonsense]:80", "not an IPv6 address"),
        ("[]:80", "not an IPv6 address"),
        ("a host:80", "not a host name"),
        ("http://127.0.0.1:8080/", r"write the address alone: 127\.0\.0\.1:8080$"),
        ("unix:", "has no path"),
        ("unix:a\0b", "NUL"),
        ("unix:" + "x" * (UNIX_PATH_MAX + 1), "is too long"),
        ("unix:" + "é" * (UNIX_PATH_MAX // 2 + 1), "is too long"),
        ("fd:", "write it as fd:3"),
        ("fd:-1", "write it as fd:3"),
        ("fd:a:b", "write it as fd:3"),
        ("fd:drei\n", "write it as fd:3"),
        ("unix:@", "write it as unix:@poorhttp$"),
    ],
)
def test_mistakes(text: str, complaint: str) -> None:
    with pytest.raises(ValueError, match=complaint):
        parse(text)


def test_the_longest_unix_path_is_allowed() -> None:
    assert len(parse("unix:" + "x" * UNIX_PATH_MAX).path) == UNIX_PATH_MAX


def test_equal_addresses_are_equal() -> None:
    assert parse("[::1]:80") == Address("tcp", host="::1", port=80)
    assert parse("[::1]:80") != parse("[::1]:81")
    assert len({parse("fd:3"), parse("fd:3"), parse("fd:4")}) == 2
    assert parse("fd:3") != "fd:3"
