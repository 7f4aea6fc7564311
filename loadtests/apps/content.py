"""Pseudorandom content: the client computes it too, from the same token, and compares."""

from __future__ import annotations

import io

BLOCK = 4096


def content(token: str, size: int) -> bytes:
    """`size` octets that belong to `token` alone.

    Each block begins with the token and its own number, so that a block which is lost, sent twice,
    out of place or somebody else's is seen.
    """
    name = token.encode("ascii")
    count = -(-size // BLOCK)
    blocks = [(b"%s %d " % (name, number)).ljust(BLOCK, b".") for number in range(count)]
    return b"".join(blocks)[:size]


def pieces(token: str, sizes: tuple[int, ...]) -> list[bytes]:
    """The same in pieces of these sizes."""
    stream = io.BytesIO(content(token, sum(sizes)))
    return [stream.read(size) for size in sizes]
