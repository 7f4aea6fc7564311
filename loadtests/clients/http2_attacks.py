"""Known attacks on servers of HTTP/2, as bytes: what repeats, how much is borne, and what ends it.

The allowances are those of `core/http2/src/options.rs`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from loadtests.clients.http2_frames import (
    ACK,
    CONTINUATION,
    DATA,
    END_HEADERS,
    END_STREAM,
    GET,
    GET_LARGE,
    GOAWAY,
    HAS_PRIORITY,
    HEADERS,
    PADDED,
    PING,
    POST,
    PRIORITY,
    PRIORITY_UPDATE,
    SETTINGS,
    frame,
    literal,
    request,
    reset,
    setting,
    window_update,
)

PROTOCOL_ERROR, COMPRESSION_ERROR, ENHANCE_YOUR_CALM = 1, 9, 11
"""Codes of errors (RFC 9113 section 7)."""
NAMES = {1: "PROTOCOL_ERROR", 9: "COMPRESSION_ERROR", 11: "ENHANCE_YOUR_CALM"}
RESETS, FRAMES, BLOCK_FRAMES, BLOCK_BYTES = 1_000, 2_000, 64, 2 * 65_535
"""What a connection is allowed at once."""
GROWTH = 4_096 + 100 * 48 + 4_096
"""Bytes by which a head may exceed four times its header block."""
STREAMS = 250
"""Requests at the same time."""
LARGEST = 2**31 - 1
NO_WINDOW = frame(SETTINGS, 0, 0, setting(4, 0))
"""Responses wait for WINDOW_UPDATE, so no stream has ended when its next frame comes."""
CRUMBS = literal(b"cookie", b"a", 0x40) + 6_000 * b"\xbe"
"""One part of a Cookie, and references to it: the whole is longer than a field may be."""
RESET = "too many streams that were reset"
LONG_FIELD = literal(b"x", 4_000 * b"a", 0x40)


@dataclass(frozen=True)
class Attack:
    """An attack.

    `unit(n)` are the bytes of its n-th step, from 0 on, `opening` those before them, and `closing`
    those after which a client that has stopped in time is served. `borne` is how many steps that
    may be. More end the connection with the error `code`, for `reason`, over `limit`; without a
    code everything is answered. `waits`: the client waits for answers, or it had too many requests
    at once.
    """

    name: str
    unit: Callable[[int], bytes]
    borne: int
    code: int = 0
    reason: str = ""
    limit: int = 0
    opening: bytes = b""
    closing: bytes = b""
    waits: bool = False

    @property
    def reasons(self) -> set[str]:
        """What may end it.

        A stream counts as open until the thread that had it lets go of it, so among requests that
        the server resets may be one too many at the same time. That is reset, too.
        """
        return {self.reason, RESET} if self.limit == RESETS else {self.reason}

    def line(self, reason: str) -> str:
        """What the log says of the end."""
        limit = f" (limit: {self.limit})" if self.limit else ""
        return f"{NAMES[self.code]}, {reason}{limit}"


def odd(number: int) -> int:
    """The number of a stream that a client begins."""
    return 1 + 2 * number


def flood(name: str, what: str, bytes_of: bytes, opening: bytes = b"") -> Attack:
    """Frames that bring nothing, all alike."""
    reason, borne = f"too many {what}", FRAMES - 100
    return Attack(name, lambda _: bytes_of, borne, ENHANCE_YOUR_CALM, reason, FRAMES, opening)


def resets(
    name: str, unit: Callable[[int], bytes], opening: bytes = NO_WINDOW, closing: bytes = b""
) -> Attack:
    """Requests that the server resets (CVE-2025-8671)."""
    borne = RESETS - 100
    return Attack(name, unit, borne, ENHANCE_YOUR_CALM, RESET, RESETS, opening, closing)


def made_to_reset(name: str, behind: Callable[[int], bytes]) -> Attack:
    """Requests that the server resets because of a frame behind each, or the client itself."""
    return resets(name, lambda n: request(odd(n)) + behind(odd(n)))


def malformed(name: str, unit: Callable[[int], bytes]) -> Attack:
    """Requests that are answered with 400."""
    reason, borne = "too many malformed requests", RESETS - 100
    return Attack(name, unit, borne, ENHANCE_YOUR_CALM, reason, RESETS, waits=True)


def long_block(name: str, part: bytes, borne: int, reason: str, limit: int) -> Attack:
    """A header block that does not end (CVE-2024-27316)."""

    def unit(n: int) -> bytes:
        if n == 0:
            return frame(HEADERS, END_STREAM, 1, GET)
        return frame(CONTINUATION, 0, 1, part)

    ending = frame(CONTINUATION, END_HEADERS, 1)
    return Attack(name, unit, borne, ENHANCE_YOUR_CALM, reason, limit, closing=ending)


def with_trailers(n: int, trailers: bytes = literal(b"x", b"y")) -> bytes:
    """A request with content and trailers."""
    return (
        frame(HEADERS, END_HEADERS, odd(n), POST)
        + frame(DATA, 0, odd(n), b"a")
        + frame(HEADERS, END_HEADERS | END_STREAM, odd(n), trailers)
    )


OPEN = frame(HEADERS, END_HEADERS, 1, POST)
"""A request whose content is to come."""
ANSWERED = request(1) + reset(1)
"""A stream that has ended."""

ATTACKS = (
    made_to_reset("rapid reset (CVE-2023-44487)", reset),
    made_to_reset("WINDOW_UPDATE of 0 (CVE-2025-8671)", lambda stream: window_update(stream, 0)),
    made_to_reset("a window over 2^31 - 1", lambda stream: window_update(stream, LARGEST)),
    made_to_reset("DATA after the end", lambda stream: frame(DATA, 0, stream, b"a")),
    made_to_reset("HEADERS after the end", request),
    made_to_reset(
        "PRIORITY on itself",
        lambda stream: frame(PRIORITY, 0, stream, stream.to_bytes(4, "big") + b"\0"),
    ),
    made_to_reset("PRIORITY of 4 bytes", lambda stream: frame(PRIORITY, 0, stream, bytes(4))),
    resets(
        "HEADERS that depend on themselves",
        lambda n: request(odd(n), odd(n).to_bytes(4, "big") + b"\0" + GET, HAS_PRIORITY),
    ),
    resets(
        "more streams than are allowed",
        lambda n: request(odd(STREAMS + n)),
        b"".join(frame(HEADERS, END_HEADERS, odd(n), POST) for n in range(STREAMS)),
        reset(1),
    ),
    malformed(
        "content of another length",
        lambda n: (
            frame(HEADERS, END_HEADERS, odd(n), POST + b"\x0f\x0d\x011")
            + frame(DATA, END_STREAM, odd(n), b"ab")
        ),
    ),
    malformed("empty names (CVE-2019-9516)", lambda n: request(odd(n), GET + bytes(3))),
    malformed("empty HEADERS", lambda n: request(odd(n), b"")),
    malformed("malformed trailers", lambda n: with_trailers(n, literal(b":path", b"/"))),
    long_block(
        "CONTINUATION flood (CVE-2024-27316)",
        160 * literal(b"x-name", 90 * b"a"),
        8,
        "a header block over the limit",
        BLOCK_BYTES,
    ),
    long_block("empty CONTINUATION", b"", 60, "a header block of too many frames", BLOCK_FRAMES),
    Attack(
        "HPACK bomb (CVE-2016-6581)",
        # The last step is the bomb; a field of the table may stand in a head, and again in another.
        lambda n: request(odd(n + 1), GET + (b"\xbe" if n < 15 else 15 * b"\xbe")),
        15,
        ENHANCE_YOUR_CALM,
        "a head that is much longer than its header block",
        GROWTH,
        request(1, GET + LONG_FIELD),
        waits=True,
    ),
    Attack(
        "an index that no field has",
        lambda n: request(odd(n), GET + b"\xff\x00" if n else GET),
        1,
        COMPRESSION_ERROR,
        "an index in a header block that no field has",
    ),
    Attack(
        "RST_STREAM on an idle stream",
        lambda n: reset(odd(n)) if n else request(1),
        1,
        PROTOCOL_ERROR,
        "a frame on a stream that has not begun",
    ),
    flood("SETTINGS (CVE-2019-9515)", "SETTINGS", frame(SETTINGS, 0, 0)),
    Attack(
        "SETTINGS of 16 KiB",
        lambda _: frame(SETTINGS, 0, 0, 2_730 * setting(4, 65_535)),
        6,
        ENHANCE_YOUR_CALM,
        "too many SETTINGS",
        FRAMES,
    ),
    flood("acknowledgements of SETTINGS", "SETTINGS", frame(SETTINGS, ACK, 0)),
    flood("PING (CVE-2019-9512)", "PING", frame(PING, 0, 0, bytes(8))),
    flood("acknowledgements of PING", "PING", frame(PING, ACK, 0, bytes(8))),
    flood("PRIORITY (CVE-2019-9513)", "PRIORITY frames", frame(PRIORITY, 0, 3, bytes(5))),
    flood(
        "PRIORITY_UPDATE", "PRIORITY_UPDATE frames", frame(PRIORITY_UPDATE, 0, 0, b"\0\0\0\x03u=0")
    ),
    flood("WINDOW_UPDATE of the connection", "WINDOW_UPDATE", window_update(0, 1)),
    flood("WINDOW_UPDATE of ended streams", "WINDOW_UPDATE", window_update(1, 1), ANSWERED),
    flood(
        "windows of one byte (CVE-2019-9511)",
        "WINDOW_UPDATE",
        window_update(1, 1),
        NO_WINDOW + request(1, GET_LARGE),
    ),
    flood(
        "DATA without content (CVE-2019-9518)",
        "DATA frames without content",
        frame(DATA, 0, 1),
        OPEN,
    ),
    flood(
        "DATA of padding",
        "DATA frames without content",
        frame(DATA, PADDED, 1, b"\xff" + bytes(255)),
        OPEN,
    ),
    flood("GOAWAY", "GOAWAY", frame(GOAWAY, 0, 0, bytes(8)), OPEN),
    flood("frames of an unknown kind", "frames of unknown kinds", frame(99, 0, 0)),
    flood("RST_STREAM of ended streams", "RST_STREAM on closed streams", reset(1), ANSWERED),
    Attack(
        "Cookie of 6,000 parts (CVE-2026-49975)",
        lambda n: request(odd(n), GET + CRUMBS),
        200,
        waits=True,
    ),
    Attack("requests", lambda n: request(odd(n)), 200, waits=True),
    Attack("requests with trailers", with_trailers, 200, waits=True),
    Attack(
        "table churn",
        lambda n: request(
            odd(n), GET + b"".join(literal(b"x%d" % i, b"", 0x40) for i in range(90))
        ),
        50,
        waits=True,
    ),
    Attack(
        "table sizes", lambda n: request(odd(n), 4_000 * b"\x20\x3f\xe1\x1f" + GET), 20, waits=True
    ),
    Attack(
        "DATA of one byte and padding",
        lambda _: frame(DATA, PADDED, 1, b"\xff" + bytes(256)),
        2_000,
        opening=OPEN,
    ),
    Attack("DATA of one byte", lambda _: frame(DATA, 0, 1, b"a"), 5_000, opening=OPEN),
)
