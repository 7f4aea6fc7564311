"""Numbered pieces of bytes, of which clients and applications make large documents to check."""

from __future__ import annotations

import functools
import zlib
from collections.abc import Callable, Iterator

PIECE = 65536
_FILL = (bytes(range(251)) * (PIECE // 251 + 1))[: PIECE - 8]


def pieces(octets: int) -> Iterator[bytes]:
    """A document of so many octets. Each piece begins with its number; the last may be short."""
    for number in range(-(-octets // PIECE)):
        piece = number.to_bytes(8, "big") + _FILL
        yield piece[: octets - number * PIECE]


@functools.cache
def checksum(octets: int) -> int:
    """The CRC-32 of the document of so many octets."""
    found = 0
    for piece in pieces(octets):
        found = zlib.crc32(piece, found)
    return found


def summary(read: Callable[[int], bytes]) -> bytes:
    """Length and CRC-32 of what can be read, piece by piece."""
    received = found = 0
    while piece := read(PIECE):
        received += len(piece)
        found = zlib.crc32(piece, found)
    return b"%d %d" % (received, found)
