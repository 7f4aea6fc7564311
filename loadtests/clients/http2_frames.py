"""Frames of HTTP/2, made byte by byte: also those that no library sends."""

from __future__ import annotations

import struct
from collections.abc import Iterator

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
"""What a client sends first (RFC 9113 section 3.4)."""
DATA, HEADERS, PRIORITY, RST_STREAM, SETTINGS = range(5)
PING, GOAWAY, WINDOW_UPDATE, CONTINUATION = range(6, 10)
PRIORITY_UPDATE = 16
"""RFC 9218 section 7.1."""
END_STREAM = ACK = 1
END_HEADERS, PADDED, HAS_PRIORITY = 4, 8, 32
HEADER = 9
"""Bytes of the header of a frame."""

METHOD_GET, METHOD_POST, SCHEME_HTTP, PATH_ROOT = b"\x82", b"\x83", b"\x86", b"\x84"
METHOD_HEAD = b"\x02\x04HEAD"
AUTHORITY = b"\x01\x01a"
"""Fields in HPACK: of the static table, or literals that no table keeps (RFC 7541 section 6)."""
REST = SCHEME_HTTP + PATH_ROOT + AUTHORITY
GET, POST, HEAD = METHOD_GET + REST, METHOD_POST + REST, METHOD_HEAD + REST
GET_LARGE = METHOD_GET + SCHEME_HTTP + b"\x04\x06/large" + AUTHORITY
"""Header blocks of requests for `/`, and of one for `/large`."""


def frame(kind: int, flags: int, stream: int, payload: bytes = b"") -> bytes:
    """A frame (RFC 9113 section 4.1)."""
    return struct.pack("!I", len(payload))[1:] + struct.pack("!BBI", kind, flags, stream) + payload


def request(stream: int, block: bytes = GET, flags: int = 0) -> bytes:
    """A request without content, of one frame."""
    return frame(HEADERS, END_STREAM | END_HEADERS | flags, stream, block)


def reset(stream: int) -> bytes:
    """RST_STREAM with the code CANCEL."""
    return frame(RST_STREAM, 0, stream, b"\0\0\0\x08")


def window_update(stream: int, increment: int) -> bytes:
    """WINDOW_UPDATE, on the connection if the stream is 0."""
    return frame(WINDOW_UPDATE, 0, stream, struct.pack("!I", increment))


def setting(number: int, value: int) -> bytes:
    """One setting in the payload of SETTINGS."""
    return struct.pack("!HI", number, value)


def literal(name: bytes, value: bytes, first: int = 0) -> bytes:
    """A field as a literal (RFC 7541 section 6.2): `first` is 0x40 if the table shall keep it."""
    return bytes([first]) + _string(name) + _string(value)


def _string(text: bytes) -> bytes:
    if len(text) < 127:
        return bytes([len(text)]) + text
    rest, digits = len(text) - 127, b"\x7f"
    while rest >= 128:
        digits += bytes([rest % 128 + 128])
        rest //= 128
    return digits + bytes([rest]) + text


def frames(received: bytearray) -> Iterator[tuple[int, int, int, bytes]]:
    """Takes whole frames from the front: kind, flags, stream and payload of each."""
    while len(received) >= HEADER:
        end = HEADER + int.from_bytes(received[:3], "big")
        if len(received) < end:
            return
        kind, flags, stream = struct.unpack("!BBI", received[3:HEADER])
        payload = bytes(received[HEADER:end])
        del received[:end]
        yield kind, flags, stream, payload
