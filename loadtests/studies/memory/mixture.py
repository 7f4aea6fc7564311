"""Requests of all kinds in random order, some of them aborted by their client."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from loadtests.clients.connection import Connection, request_bytes
from loadtests.errors import ServerFailure

LANES = 8
"""Connections, on each of which a request is sent before the answers are read."""
POSTED = 1, 64_000
"""The least and the most octets of a body."""
HEAD, BODY, ANSWER = "aborted in its head", "aborted in its body", "aborted before its answer"


@dataclass(frozen=True)
class Request:
    """`status` is that of the right answer, None if the client closes the connection instead."""

    kind: str
    octets: bytes
    status: int | None = 200


LIGHT = Request("light", request_bytes("/light"))
HEAVY = Request("heavy", request_bytes("/heavy"))
NOT_FOUND = Request("not found", request_bytes("/missing"), 404)
SHARES = {"light": 40, "heavy": 20, "not found": 15, "post": 15, HEAD: 3, BODY: 4, ANSWER: 3}
"""In hundredths."""


def drawn(seed: int, count: int) -> list[Request]:
    """So many requests, the same for the same seed."""
    lot = random.Random(seed)
    kinds = lot.choices(list(SHARES), list(SHARES.values()), k=count)
    return [_request(kind, lot) for kind in kinds]


def _request(kind: str, lot: random.Random) -> Request:
    if kind in (one := {request.kind: request for request in (LIGHT, HEAVY, NOT_FOUND)}):
        return one[kind]
    if kind == HEAD:
        return Request(kind, LIGHT.octets[: lot.randrange(1, len(LIGHT.octets) - 1)], None)
    if kind == ANSWER:
        return Request(kind, HEAVY.octets, None)
    post = request_bytes("/post", body=bytes(lot.randint(*POSTED)))
    if kind == BODY:
        head = post.index(b"\r\n\r\n") + 4
        return Request(kind, post[: lot.randrange(head, len(post))], None)
    return Request(kind, post)


class Client:
    """Keeps LANES connections until the block ends; one that was given up is made anew."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._lanes: list[Connection | None] = [None] * LANES

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        for lane in range(LANES):
            self._close(lane)

    def ask(self, requests: Sequence[Request]) -> Counter[str]:
        """Sends them all; how many there were of each kind.

        Raises ServerFailure if one is not answered, or with another status.
        """
        for first in range(0, len(requests), LANES):
            together = requests[first : first + LANES]
            try:
                for lane, request in enumerate(together):
                    self._send(lane, request)
                for lane, request in enumerate(together):
                    self._read(lane, request)
            except OSError as error:
                raise ServerFailure(f"after {first:,} requests: {error}") from None
        return Counter(request.kind for request in requests)

    def _send(self, lane: int, request: Request) -> None:
        connection = self._lanes[lane]
        if connection is None:
            connection = self._lanes[lane] = Connection(self._port)
        connection.send(request.octets)

    def _read(self, lane: int, request: Request) -> None:
        connection = self._lanes[lane]
        assert connection is not None
        if request.status is None:
            self._close(lane)
            return
        answer = connection.read()
        if answer.status != request.status:
            raise ServerFailure(f"{request.kind}: status {answer.status}, not {request.status}")

    def _close(self, lane: int) -> None:
        connection, self._lanes[lane] = self._lanes[lane], None
        if connection is not None:
            connection.close()
