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
    aside:
        \x01\x0a                what is answered beside the request, and before it (FastCGI)
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
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.case import REPEAT, blocks, unescape, wire
from tests.client import BadResponse, Response

FOLDER = Path(__file__).parent / "cases" / "gateway"
FILES = ("request.txt", "uwsgi.txt", "scgi.txt", "fastcgi.txt")
KEYS = (
    "name",
    "protocol",
    "why",
    "expect",
    "environ",
    "body",
    "aside",
    "variables",
    "packet",
    "send",
)

#: A variable: its name and its value.
Pair = tuple[bytes, bytes]

FIRST_LINE = {
    "uwsgi": re.compile(rb"HTTP/1\.1 ([1-5][0-9][0-9]) ([\t\x20-\x7e\x80-\xff]*)"),
    "scgi": re.compile(rb"Status: ([1-5][0-9][0-9]) ([\t\x20-\x7e\x80-\xff]*)"),
    "fastcgi": re.compile(rb"Status: ([1-5][0-9][0-9]) ([\t\x20-\x7e\x80-\xff]*)"),
}

#: Octets of the FastCGI records that are made; variables are split somewhere.
PART = 8_191
BEGIN, END, PARAMS, STDIN, STDOUT = 1, 3, 4, 5, 6


@dataclass(frozen=True)
class Case:
    """One exchange in one protocol."""

    #: Name of its file, without the ending.
    file: str
    name: str
    protocol: str
    #: 0: nothing comes.
    status: int
    #: How the reason begins, if the request is refused.
    reason: str
    environ: dict[str, str | None]
    body: bytes | None
    aside: bytes
    send: bytes


def record(kind: int, content: bytes, number: int = 1) -> bytes:
    """A record of FastCGI, padded to a multiple of eight."""
    padding = -len(content) % 8
    head = struct.pack("!BBHHBx", 1, kind, number, len(content), padding)
    return head + content + bytes(padding)


def recorded(pair: Pair) -> bytes:
    """A variable of FastCGI: lengths below 128 have one octet, others four."""
    lengths = (
        struct.pack("!B", len(part)) if len(part) < 128 else struct.pack("!I", len(part) | 1 << 31)
        for part in pair
    )
    return b"".join(lengths) + b"".join(pair)


def request_in_records(
    variables: list[Pair], content: bytes = b"", *, number: int = 1, keep: bool = False
) -> bytes:
    """A request in FastCGI; whether the connection shall be kept stands in its first record."""
    begin = record(BEGIN, struct.pack("!HB5x", 1, keep), number)
    streams = ((PARAMS, b"".join(map(recorded, variables))), (STDIN, content))
    return begin + b"".join(
        record(kind, stream[start : start + PART], number)
        for kind, stream in streams
        for start in range(0, len(stream) + PART, PART)
    )


def pack(protocol: str, variables: list[Pair], content: bytes = b"") -> bytes:
    """A request as a web server sends it. SCGI has a place for CONTENT_LENGTH, and wants one."""
    if protocol == "fastcgi":
        return request_in_records(variables, content)
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
                file=path.stem,
                name=f"{block['name'][0]}-{protocol}",
                protocol=protocol,
                status=0 if expect == "nothing" else int(expect),
                reason=reason,
                environ=dict(map(read_variable, block.get("environ", []))),
                body=b"".join(map(wire, block["body"])) if "body" in block else None,
                aside=b"".join(map(wire, block.get("aside", []))),
                send=send,
            )


def read_all() -> list[Case]:
    """Every case of every file."""
    cases = [case for name in FILES for case in read(FOLDER / name)]
    names = [case.name for case in cases]
    if len(set(names)) != len(names):
        raise ValueError("two cases have the same name")
    return cases


def answer_in_records(data: bytes, number: int) -> tuple[bytes, bytes]:
    """What stands in the records of one answer, and what is behind; BadResponse if it is cut."""
    parts: list[bytes] = []
    while True:
        if len(data) < 8:
            raise BadResponse("an answer in FastCGI without its last record")
        version, kind, other, length, padding = struct.unpack_from("!BBHHBx", data)
        content, data = data[8 : 8 + length], data[8 + length + padding :]
        if (version, other) != (1, number) or kind not in (STDOUT, END):
            raise BadResponse(f"a record of version {version}, kind {kind}, number {other}")
        if kind == END:
            if content != bytes(8):
                raise BadResponse(f"a request that ends with {content!r}")
            return b"".join(parts), data
        parts.append(content)


def answer(data: bytes, protocol: str) -> Response:
    """Read everything that one connection has answered; BadResponse for what is no answer."""
    if protocol == "fastcgi":
        number = struct.unpack_from("!2xH", data)[0]
        data, rest = answer_in_records(data, number)
        if rest:
            raise BadResponse(f"{rest[:200]!r} behind an answer")
    head, mark, body = data.partition(b"\r\n\r\n")
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
