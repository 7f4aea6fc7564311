r"""What proxies say, as data: `tests/cases/trust/*.txt`, read here and by the tests in Rust.

They are written like the protocol cases (tests/case.py says how). A block is a case, or who is
trusted in those behind it.

    trust: 10.0.0.0/8 unix      words of `trusted_proxies`; without any, nobody is
    hears: x-forwarded-for      words of `forwarded_headers`; without this line, all of them
                                and with `off` none
    proxied: yes                the address declares the PROXY protocol

    name: what-it-is            unique in these files
    rfc: 7239 4                 where it is written, if it is
    why: one sentence
    from: 127.0.0.2             who connects, an address or `unix`; without this line, 127.0.0.1
    preamble:
        PROXY UNKNOWN\r\n       what is sent before the request, escapes and 99 * a
    hex:
        0d 0a 0d 0a             or as octets
    host: a                     Host, and this is what it is by default; `-` is HTTP/1.0 without one
    target: /                   so is this
    field:
        Forwarded: for=a        fields of the request; escapes
    expect: 200                 or a status and the reason of the refusal
    environ:
        REMOTE_ADDR: 1.2.3.4    what the application finds in its environ; escapes
        not HTTP_FORWARDED      and what it does not

Of the variables in `WATCHED` a case says all: those that it does not name are as they would be if
nobody had said anything. With another address there is no port, unless it is named as well.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from tests.case import FOLDER, blocks, unescape, wire

KEYS = (
    "trust",
    "hears",
    "proxied",
    "name",
    "rfc",
    "why",
    "from",
    "preamble",
    "hex",
    "host",
    "target",
    "field",
    "expect",
    "environ",
)
WATCHED = (
    "REMOTE_ADDR",
    "REMOTE_PORT",
    "wsgi.url_scheme",
    "HTTPS",
    "HTTP_HOST",
    "SERVER_NAME",
    "SERVER_PORT",
    "SCRIPT_NAME",
    "PATH_INFO",
)


@dataclass(frozen=True)
class Case:
    """What somebody says of where a request comes from, and what is made of that."""

    #: Name of its file, without the ending.
    file: str
    heading: str
    name: str
    #: Of the server.
    options: tuple[str, ...]
    peer: str
    preamble: bytes
    request: bytes
    fields: tuple[str, ...]
    #: Status and reason; empty if it is answered.
    refusal: str
    #: `None`: is not there.
    environ: dict[str, str | None]

    def expected(self, plain: dict[str, str | None]) -> dict[str, str | None]:
        """What the application finds, if `plain` is what it would find otherwise."""
        expected = dict(plain)
        if "REMOTE_ADDR" in self.environ:
            expected["REMOTE_PORT"] = ""
        return expected | self.environ


def read(name: str) -> Iterator[Case]:
    """The cases of one file. ValueError or KeyError for one that is not written as it should be."""
    options: tuple[str, ...] = ()
    for heading, block in blocks((FOLDER / "trust" / name).read_text("ascii"), KEYS):
        if "trust" in block:
            words = " ".join(block["trust"])
            options = ("--trusted-proxies", words) if words else ()
            if "hears" in block:
                options += ("--forwarded-headers", block["hears"][0])
            if "proxied" in block:
                options += ("--proxy-protocol", "on")
            continue
        status, _, reason = block["expect"][0].partition(" ")
        if (status == "200") == bool(reason):
            raise ValueError(f"{block['name'][0]}: expect needs 200, or a status and a reason")
        preamble = [
            *map(wire, block.get("preamble", [])),
            *map(bytes.fromhex, block.get("hex", [])),
        ]
        host, target = block.get("host", ["a"])[0], block.get("target", ["/"])[0]
        lines = [f"GET {target} HTTP/{'1.0' if host == '-' else '1.1'}".encode()]
        lines += [f"Host: {host}".encode()] if host != "-" else []
        lines += map(wire, block.get("field", []))
        environ: dict[str, str | None] = {}
        if "://" in target:
            environ["HTTP_HOST"] = target.partition("://")[2].rstrip("/")
        elif target != "/":
            environ["PATH_INFO"] = target
        if host != "a":
            environ["HTTP_HOST"] = None if host == "-" else host
        for line in block.get("environ", []):
            key, _, value = line.removeprefix("not ").partition(":")
            environ[key] = None if line.startswith("not ") else unescape(value.lstrip())
        yield Case(
            file=name.partition(".")[0],
            heading=heading,
            name=block["name"][0],
            options=options,
            peer=block.get("from", ["127.0.0.1"])[0],
            preamble=b"".join(preamble),
            request=b"\r\n".join([*lines, b"", b""]),
            fields=tuple(block.get("field", [])),
            refusal=f"{status} {reason}" if reason else "",
            environ=environ,
        )


def read_all() -> list[Case]:
    """Every case of both files."""
    cases = [case for name in ("forwarded.txt", "preamble.txt") for case in read(name)]
    names = [case.name for case in cases]
    if len(set(names)) != len(names):
        raise ValueError("two cases have the same name")
    return cases
