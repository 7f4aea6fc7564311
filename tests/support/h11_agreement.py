"""Comparison of our request parser with `h11`, an independent implementation of the same RFCs.

Of every message that both accept they must see the same, and where it ends. Where only one accepts,
the reason stands in `tests/support/h11.txt`: a block for each kind of difference
(`tests/cases/schema`).
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

import h11

from tests.support.rust_program import RustProgram
from tests.testkit.cases.blocks import blocks, unescape
from tests.testkit.cases.exchanges import read_all

ROOT = Path(__file__).parents[2]
# What the fuzz target `body` puts before its octets.
CHUNKED = b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"


@dataclass(frozen=True)
class Message:
    """A complete request, and the position behind its last octet."""

    method: bytes
    target: bytes
    version: bytes
    fields: tuple[tuple[bytes, bytes], ...]
    body: bytes
    persists: bool
    end: int


@dataclass(frozen=True)
class Reading:
    """What a parser made of some octets: messages, then perhaps a refusal."""

    messages: tuple[Message, ...]
    refused: str | None


@dataclass(frozen=True)
class Difference:
    """A kind of message that one of the two accepts and the other does not, on purpose."""

    name: str
    ours: str
    h11: str
    where: re.Pattern[bytes]
    send: bytes

    def explains(self, ours: str, theirs: str, octets: bytes) -> bool:
        """Whether these verdicts on these octets are this difference."""
        verdicts = ours.startswith(self.ours) and theirs.startswith(self.h11)
        return verdicts and self.where.search(octets) is not None


class Disagreement(Exception):
    """Two readings of the same octets that no known difference explains."""


class Ours(RustProgram):
    """Our parser: a process that is sent octets and says what it makes of them."""

    name = "requests"

    def read(self, octets: bytes) -> Reading:
        """Its reading; EOFError if it broke down over it."""
        self.send(octets)
        line = self.answers.readline()
        if not line:
            raise EOFError(f"the parser broke down over {octets!r}")
        found = json.loads(line)
        return Reading(tuple(map(self.message, found["messages"])), found["rejected"])

    def message(self, found: dict[str, object]) -> Message:
        plain = {
            key: value.encode("latin-1") if isinstance(value, str) else value
            for key, value in found.items()
        }
        fields = found["fields"]
        assert isinstance(fields, list)
        plain["fields"] = tuple(
            (name.encode("latin-1"), value.encode("latin-1")) for name, value in fields
        )
        return Message(**plain)  # type: ignore[arg-type]


def theirs(octets: bytes) -> Reading:
    """The reading of h11, as a server that answers each request and goes on."""
    connection = h11.Connection(h11.SERVER, max_incomplete_event_size=1 << 20)
    connection.receive_data(octets)
    messages: list[Message] = []
    request: h11.Request | None = None
    body = b""
    while True:
        try:
            event = connection.next_event()
        except h11.RemoteProtocolError as error:
            return Reading(tuple(messages), str(error))
        if isinstance(event, h11.Request):
            request, body = event, b""
        elif isinstance(event, h11.Data):
            body += event.data
        elif isinstance(event, h11.EndOfMessage) and request is not None:
            end = len(octets) - len(connection.trailing_data[0])
            # Any answer that is no consent to CONNECT or Upgrade.
            connection.send(h11.Response(status_code=404, headers=[("Content-Length", "0")]))
            connection.send(h11.EndOfMessage())
            persists = connection.our_state is h11.DONE
            messages.append(
                Message(
                    method=bytes(request.method),
                    target=bytes(request.target),
                    version=bytes(request.http_version),
                    fields=tuple((bytes(name), bytes(value)) for name, value in request.headers),
                    body=body,
                    persists=persists,
                    end=end,
                )
            )
            if not persists:
                return Reading(tuple(messages), None)
            connection.start_next_cycle()
        else:
            return Reading(tuple(messages), None)


@cache
def differences() -> tuple[Difference, ...]:
    """The known ones, in the order in which they are tried."""
    return tuple(
        Difference(
            name=block["name"],
            ours=block["ours"],
            h11=block["h11"],
            where=re.compile(block["where"].encode()),
            send=block["send"],
        )
        for block in blocks([Path(__file__).parent / "h11.txt"], "difference")
    )


def compare(octets: bytes, ours: Reading, others: Reading) -> str | None:
    """The name of the difference between two readings, None if there is none; or Disagreement."""
    start = 0
    for mine, other in zip(ours.messages, others.messages, strict=False):
        if alike(mine) != alike(other):
            raise Disagreement(f"of {octets!r}\n  ours: {mine}\n  h11:  {other}")
        if mine.persists != other.persists:
            return explained(octets[start : mine.end], goes_on(mine), goes_on(other))
        start = mine.end
    one, two = len(ours.messages), len(others.messages)
    if one == two:
        # Both wait, or at least one refuses what the other has not accepted.
        return None
    last = (ours if one > two else others).messages[min(one, two)]
    verdicts = ("accepts" if one > two else ours.refused or "waits",
                "accepts" if two > one else others.refused or "waits")  # fmt: skip
    return explained(octets[start : last.end], *verdicts)


def alike(message: Message) -> Message:
    """What both must see: h11 has written the transfer coding in lower case, and any version."""
    fields = tuple(
        (name, value.lower() if name == b"transfer-encoding" else value)
        for name, value in message.fields
    )
    version = min(message.version, b"1.1") if message.version.startswith(b"1.") else message.version
    return replace(message, version=version, fields=fields, persists=True)


def goes_on(message: Message) -> str:
    """The verdict on the connection."""
    return "goes on" if message.persists else "closes"


def explained(octets: bytes, ours: str, others: str) -> str:
    """The known difference that these verdicts are, or Disagreement."""
    for difference in differences():
        if difference.explains(ours, others, octets):
            return difference.name
    raise Disagreement(f"of {octets!r}\n  ours: {ours}\n  h11:  {others}")


def inputs() -> Iterator[bytes]:
    """Everything there is to be compared: protocol cases, and what the fuzzers found."""
    for case in read_all():
        yield case.send
    for target, before, skipped in (("head", b"", 0), ("connection", b"", 4), ("body", CHUNKED, 0)):
        path = ROOT / "core" / "fuzz" / "corpus" / f"{target}.txt"
        for line in path.read_text("ascii").splitlines():
            yield before + unescape(line).encode("latin-1")[skipped:]
