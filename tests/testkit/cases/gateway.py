"""Reader of gateway cases (`tests/cases/gateway`, described in `tests/cases/schema`)."""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.testkit.cases.blocks import FOLDER, blocks
from tests.testkit.client import BadResponse, Response

FILES = ("request.txt", "uwsgi.txt", "scgi.txt", "fastcgi.txt")

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


def read(*paths: Path) -> Iterator[Case]:
    """The cases of files, each in all its protocols. ValueError for what is none."""
    for block in blocks(paths, "gateway"):
        expect, _, reason = block["expect"].partition(" ")
        content = block.get("send", b"")
        if ("variables" in block) == ("packet" in block):
            raise block.error("either variables or a packet")
        said = [(name, value or "") for name, value in block.get("variables", ())]
        variables = [(name.encode("latin-1"), value.encode("latin-1")) for name, value in said]
        for protocol in block["protocol"]:
            packed = "packet" not in block
            yield Case(
                file=block.file,
                name=f"{block['name']}-{protocol}",
                protocol=protocol,
                status=0 if expect == "nothing" else int(expect),
                reason=reason,
                environ=dict(block.get("environ", ())),
                body=block.get("body"),
                aside=block.get("aside", b""),
                send=pack(protocol, variables, content) if packed else block["packet"] + content,
            )


def read_all() -> list[Case]:
    """Every case of every file."""
    return list(read(*(FOLDER / "gateway" / name for name in FILES)))


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
