r"""Cases of the gateway protocols: `tests/cases/gateway/*.txt`, read here and by the Rust core.

They are written as `tests/case.py` describes; the lines of a case are other ones:

    name: what-it-is            unique in all files
    protocol: uwsgi scgi        those it is about; it is tried in each
    why: one sentence
    expect: 400 a malformed     the status, and how the reason begins if the request is refused;
                                `nothing` if more has to come
    environ:
        HTTP_X_A: b             what the application finds in its environ
        not HTTP_X_B            and what it does not
    body: text                  the content that it reads
    variables:
        REQUEST_METHOD: GET     what the web server says, packed as the protocol wants it
        HTTP_X_A: 9 * b         a value that repeats a text
        9 * HTTP_X_A: b         a variable so many times
    packet:                     instead of variables: octets as they are
        \x00\x00\x00\x00
    send:
        hello                   what stands behind: content
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.case import REPEAT, blocks, unescape, wire
from tests.client import BadResponse, Connection, Response

FOLDER = Path(__file__).parent / "cases" / "gateway"
FILES = ("request.txt", "uwsgi.txt", "scgi.txt")
KEYS = (
    "name",
    "protocol",
    "why",
    "expect",
    "environ",
    "body",
    "variables",
    "packet",
    "send",
)

#: A variable: its name and its value.
Pair = tuple[bytes, bytes]

FIRST_LINE = {
    "uwsgi": re.compile(rb"HTTP/1\.1 ([1-5][0-9][0-9]) ([\t\x20-\x7e\x80-\xff]*)"),
    "scgi": re.compile(rb"Status: ([1-5][0-9][0-9]) ([\t\x20-\x7e\x80-\xff]*)"),
}


@dataclass(frozen=True)
class Case:
    """One exchange in one protocol."""

    name: str
    protocol: str
    #: 0: nothing comes.
    status: int
    #: How the reason begins, if the request is refused.
    reason: str
    environ: dict[str, str | None]
    body: bytes | None
    send: bytes


def pack(protocol: str, variables: list[Pair], content: bytes = b"") -> bytes:
    """A request as a web server sends it. SCGI has a place for CONTENT_LENGTH, and wants one."""
    if protocol == "scgi":
        lengths = [pair for pair in variables if pair[0] == b"CONTENT_LENGTH"]
        first = (lengths or [(b"CONTENT_LENGTH", b"0")])[0]
        rest = list(variables)
        if lengths:
            rest.remove(first)
        text = b"".join(b"%b\0%b\0" % pair for pair in [first, *rest])
        return b"%d:%b,%b" % (len(text), text, content)
    text = b"".join(
        len(part).to_bytes(2, "little") + part for variable in variables for part in variable
    )
    return b"\0" + len(text).to_bytes(2, "little") + b"\0" + text + content


def pair(line: str) -> Pair:
    """A name and its value."""
    name, mark, value = line.partition(": ")
    if not mark:
        name, value = line.removesuffix(":"), ""
    return unescape(name).encode("latin-1"), wire(value)


def pairs(line: str) -> list[Pair]:
    """A line of variables: one, or the same one several times."""
    if match := REPEAT.fullmatch(line):
        return [pair(match[2])] * int(match[1])
    return [pair(line)]


def read_variable(line: str) -> tuple[str, str | None]:
    """A key of the environ and its value, `None` if the key must not be there."""
    if line.startswith("not "):
        return line.removeprefix("not "), None
    name, value = pair(line)
    return name.decode(), value.decode("latin-1")


def read(path: Path) -> Iterator[Case]:
    """The cases of one file, each in all its protocols. ValueError or KeyError for what is none."""
    for _, block in blocks(path.read_text("ascii"), KEYS):
        expect, _, reason = block["expect"][0].partition(" ")
        content = b"".join(map(wire, block.get("send", [])))
        if not block["why"]:
            raise ValueError(f"{block['name'][0]}: why?")
        for protocol in block["protocol"][0].split():
            if "variables" in block:
                variables = [pair for line in block["variables"] for pair in pairs(line)]
                send = pack(protocol, variables, content)
            else:
                send = b"".join(map(wire, block["packet"])) + content
            yield Case(
                name=f"{block['name'][0]}-{protocol}",
                protocol=protocol,
                status=0 if expect == "nothing" else int(expect),
                reason=reason,
                environ=dict(map(read_variable, block.get("environ", []))),
                body=b"".join(map(wire, block["body"])) if "body" in block else None,
                send=send,
            )


def read_all() -> list[Case]:
    """Every case of every file."""
    cases = [case for name in FILES for case in read(FOLDER / name)]
    names = [case.name for case in cases]
    if len(set(names)) != len(names):
        raise ValueError("two cases have the same name")
    return cases


def answer(connection: Connection, protocol: str) -> Response:
    """Read the one answer of a connection, up to its end; BadResponse for what is none."""
    head, mark, body = connection.rest().partition(b"\r\n\r\n")
    first, *lines = head.split(b"\r\n")
    match = FIRST_LINE[protocol].fullmatch(first)
    if not mark or match is None:
        raise BadResponse(f"no answer in {protocol}: {head[:200]!r}")
    fields = [line.decode("latin-1").partition(": ") for line in lines]
    headers = [(name, value) for name, _, value in fields]
    response = Response(int(match[1]), match[2].decode("latin-1"), headers, body)
    # The connections of a web server are its own business, and its protocol frames the content.
    for name in ("Connection", "Keep-Alive", "Transfer-Encoding"):
        if response.get(name) is not None:
            raise BadResponse(f"{name} in {protocol}")
    length = response.get("Content-Length")
    if length is not None and int(length) != len(body):
        raise BadResponse(f"{len(body)} octets of {length}")
    return response
