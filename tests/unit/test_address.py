"""Parser of addresses to listen on."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from poorhttp.config.address import UNIX_PATH_MAX, parse, protocols


@pytest.mark.parametrize(
    ("text", "kind", "parts"),
    [
        ("127.0.0.1:8080", "tcp", {"host": "127.0.0.1", "port": 8080}),
        ("0.0.0.0:0", "tcp", {"host": "0.0.0.0", "port": 0}),
        ("localhost:65535", "tcp", {"host": "localhost", "port": 65535}),
        ("[::1]:80", "tcp", {"host": "::1", "port": 80}),
        ("[::]:80", "tcp", {"host": "::", "port": 80}),
        ("[fe80::1%eth0]:80", "tcp", {"host": "fe80::1%eth0", "port": 80}),
        ("unix:run/my server.sock", "unix", {"path": "run/my server.sock"}),
        ("fd:3", "fd", {"fd": 3}),
    ],
)
def test_parts(text: str, kind: str, parts: dict[str, object]) -> None:
    address = parse(text)
    assert address.kind == kind
    assert {name: getattr(address, name) for name in parts} == parts
    assert str(address) == text
    assert address.url == (f"http://{text}" if kind == "tcp" else text)


def test_other_spellings() -> None:
    # A port alone is every IPv4 interface.
    assert str(parse(":8080")) == "0.0.0.0:8080"
    assert parse("fd://3") == parse("fd:3")
    # A path behind a gateway protocol may have any marks in it.
    address = parse("uwsgi+unix:a://b+c")
    assert (address.kind, address.protocol, address.path) == ("unix", "uwsgi", "a://b+c")


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("", "has no port"),
        ("8080", "write 127.0.0.1:8080"),
        ("localhost", "write it as HOST:PORT"),
        ("localhost:", '"" in "localhost:" is not a port'),
        ("localhost:http", '"http" in "localhost:http" is not a port'),
        ("localhost:65536", "a number from 0 to 65535"),
        ("localhost:" + "9" * 5000, "a number from 0 to 65535"),
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
        ("fd:2147483648", "a number from 0 to 2147483647"),
        ("fd:" + "9" * 5000, "a number from 0 to 2147483647"),
        ("fd:a:b", "write it as fd:3"),
        ("fd:drei\n", "write it as fd:3"),
        ("unix:@", "write it as unix:@poorhttp$"),
    ],
)
def test_mistakes(text: str, complaint: str) -> None:
    with pytest.raises(ValueError, match=complaint):
        parse(text)


#: What is nearly an address.
PIECES = [
    *("unix:", "fd:", "http://", "https://", "://", "+", ":", "[", "]", "%", "@", "/", "\0"),
    *("127.0.0.1", "localhost", "[::1]", "::", "web", "-", "0", "80", "65535", "65536", "٣"),
    *protocols(),
]


@given(st.lists(st.sampled_from(PIECES) | st.text(max_size=3)).map("".join))
def test_any_text_is_an_address_or_refused_with_a_remedy(text: str) -> None:
    try:
        address = parse(text)
    except ValueError as error:
        remedies = ("; write ", "; it is a number", "in brackets", "the system allows", "NUL")
        assert any(remedy in str(error) for remedy in remedies), error  # noqa: PT017
    else:
        assert parse(str(address)) == address
