"""Reader of cases of HTTP/2 (`tests/cases/http2`, described in `tests/cases/schema`)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from tests.testkit.cases.blocks import FOLDER, blocks

Fields = list[tuple[bytes, bytes]]

PSEUDO = {":method": "GET", ":scheme": "http", ":authority": "a", ":path": "/"}


@dataclass(frozen=True)
class StreamCase:
    """A request, and what becomes of it."""

    file: str
    name: str
    fields: Fields
    body: bytes | None
    status: int
    #: Why it is refused.
    reason: str
    environ: dict[str, str | None]


@dataclass(frozen=True)
class ConnectionCase:
    """How a connection begins, and what comes back."""

    file: str
    name: str
    #: The scheme of the address, or `unix`.
    over: str
    #: Protocols that a client of TLS offers.
    alpn: tuple[str, ...]
    options: tuple[str, ...]
    send: bytes
    expect: tuple[str, ...]


def fields_of(given: list[tuple[str, str | None]]) -> Fields:
    """The fields of a request: the usual pseudo-header fields, those that replace them, others."""
    pseudo, rest = dict(PSEUDO), list[tuple[str, str]]()
    replaced = set()
    for name, value in given:
        if value is None:
            del pseudo[name]
        elif name in pseudo and name not in replaced and not rest:
            pseudo[name] = value
            replaced.add(name)
        else:
            rest.append((name, value))
    fields = [*pseudo.items(), *rest]
    return [(name.encode("latin-1"), value.encode("latin-1")) for name, value in fields]


def read_streams() -> Iterator[StreamCase]:
    for block in blocks([FOLDER / "http2" / "smuggling.txt"], "stream"):
        status, _, reason = block["expect"].partition(" ")
        yield StreamCase(
            file=block.file,
            name=block["name"],
            fields=fields_of(block["fields"]),
            body=block.get("body"),
            status=int(status),
            reason=reason,
            environ=dict(block.get("environ", ())),
        )


def read_connections() -> Iterator[ConnectionCase]:
    for block in blocks([FOLDER / "http2" / "connections.txt"], "connection"):
        over, *alpn = block["over"]
        yield ConnectionCase(
            file=block.file,
            name=block["name"],
            over=over,
            alpn=tuple(alpn),
            options=tuple(block.get("options", ["--http2=on"])),
            send=block["send"],
            expect=tuple(block["expect"]),
        )
