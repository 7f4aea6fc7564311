"""Requests with known responses, and how a response is checked."""

from __future__ import annotations

import re
import zlib
from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import Enum
from random import Random
from typing import Any

from loadtests.apps.content import content
from loadtests.apps.mixed import PIECES
from loadtests.clients.strict import Response

PIECED = sum(PIECES)
"""The size of answers that come in pieces."""

#: What the server says if the application fails before anything was sent.
FAILED = b"500 Internal Server Error"


class Wrong(Exception):
    """An answer is not the one that this request must get."""


class Ending(Enum):
    """State of the connection after an answer."""

    KEPT = "the next request may come"
    CLOSED = "the answer is complete, then the server closes"
    CUT = "the server closes before the answer is complete"
    DIED = "the worker is gone, and there is no answer at all"


class Nature(Enum):
    """Sort of an answer."""

    ANSWERED = "made by the application"
    FAILED = "500, after a fault of the application"
    CUT = "cut in the middle, after a fault of the application"
    REFUSED = "a refusal by the server, which malformed requests must have"
    NO_ROOM = "507, for want of room on the disk"
    DIED = "a closed connection, after the end of a worker"


@dataclass(frozen=True)
class Question:
    """A request and what it must be answered with.

    `body` is the content of an answer that the application makes; of one that is cut it is what may
    have come by then. `failed` ones are answered by the server, in the application's place.
    """

    kind: str
    token: str
    request: bytes
    body: bytes = b""
    status: int = 200
    method: str = "GET"
    ending: Ending = Ending.KEPT
    failed: bool = False
    #: Content-Length, where there is no content that shows it.
    length: int | None = None

    @property
    def nature(self) -> Nature:
        """Sort of the answer that is due."""
        if self.ending is Ending.CUT:
            return Nature.CUT
        if self.ending is Ending.DIED:
            return Nature.DIED
        return Nature.FAILED if self.failed else Nature.ANSWERED

    def check(self, response: Response) -> None:
        """Compare a complete answer; raises Wrong."""
        if response.status != self.status:
            raise Wrong(f"status {response.status} instead of {self.status}")
        for name in ("X-Injected", "X-Dropped"):
            if response.get_all(name):
                raise Wrong(f"the header {name} was sent")
        if response.interim:
            raise Wrong(f"interim answers {response.interim}")
        if self.failed:
            if not response.body.startswith(FAILED) or response.get("X-Token") is not None:
                raise Wrong("the answer to a failure has content of the application")
        else:
            self.check_tokens(response.get_all)
            self.check_content(response.body)
        if self.length is not None and response.get("Content-Length") != str(self.length):
            raise Wrong(f"Content-Length {response.get('Content-Length')}")
        closes = response.get("Connection") == "close"
        if closes != (self.ending is Ending.CLOSED):
            raise Wrong(f"Connection: {response.get('Connection')}")

    def check_tokens(self, values: Callable[[str], list[str]]) -> None:
        """Compare the tokens among the values of the answer's fields; raises Wrong."""
        target, header = values("X-Token"), values("X-Token-Header")
        if target != [self.token] or header != [self.token]:
            raise Wrong(f"it is the answer to {target} and {header}, not to {self.token}")

    def check_content(self, body: bytes) -> None:
        """Compare the whole content; raises Wrong."""
        if body != self.body:
            pairs = enumerate(zip(body, self.body, strict=False))
            differ = (at for at, (came, right) in pairs if came != right)
            same = next(differ, min(len(body), len(self.body)))
            raise Wrong(
                f"{len(body)} octets of content instead of {len(self.body)}, different from octet "
                f"{same}: {body[same : same + 60]!r} instead of {self.body[same : same + 60]!r}"
            )

    def check_part(self, received: bytes) -> None:
        """Check the beginning of an answer, as far as it came; raises Wrong."""
        head, end, rest = received.partition(b"\r\n\r\n")
        status_line = b"HTTP/1.1 %d " % self.status
        if not head.startswith(status_line[: len(head)]):
            raise Wrong(f"the answer begins with {head[:60]!r}")
        if not end:
            return
        fields = [line.decode("latin-1").partition(": ") for line in head.split(b"\r\n")[1:]]
        if not self.failed:
            self.check_tokens(lambda name: [value for key, _, value in fields if key == name])
        if ("Transfer-Encoding", ": ", "chunked") in fields:
            rest = unchunked(rest)
        if not self.failed and not self.body.startswith(rest):
            self.check_content(rest)


def unchunked(data: bytes) -> bytes:
    """The content of a chunked body that may end anywhere."""
    parts: list[bytes] = []
    while True:
        line, end, rest = data.partition(b"\r\n")
        if not end:
            return b"".join(parts)
        if not re.fullmatch(rb"[0-9a-fA-F]{1,8}", line):
            raise Wrong(f"a malformed chunk size: {line[:60]!r}")
        size = int(line, 16)
        parts.append(rest[:size])
        if rest[size : size + 2] != b"\r\n"[: len(rest[size : size + 2])]:
            raise Wrong("a chunk without CRLF behind its data")
        data = rest[size + 2 :]


def head(token: str, path: str, *fields: str, method: str = "GET", version: str = "1.1") -> bytes:
    """The head of a request for `path`, which may have a query; with both tokens."""
    target = f"/{path}{'&' if '?' in path else '?'}token={token}"
    lines = [f"{method} {target} HTTP/{version}", "Host: soak", f"X-Token: {token}", *fields]
    return "\r\n".join([*lines, "", ""]).encode("ascii")


Maker = Callable[[str, Random], Question]


def get(token: str, path: str, body: bytes = b"", *fields: str, **how: Any) -> Question:
    """A GET of a path, which begins with the kind, and the content of its answer."""
    return Question(path.partition("?")[0], token, head(token, path, *fields), body, **how)


def plain(
    kind: str,
    ending: Ending = Ending.KEPT,
    *,
    status: int = 200,
    sizes: tuple[int, int] = (1, 2_000),
) -> Maker:
    """A GET of an answer of a random size."""

    def make(token: str, random: Random) -> Question:
        size = random.randrange(*sizes)
        path, body = f"{kind}?size={size}", content(token, size)
        return get(token, path, body, status=status, ending=ending)

    return make


def much(kind: str, least: int = 300_000, most: int = 3_000_000) -> Maker:
    return plain(kind, sizes=(least, most))


def in_pieces(kind: str, ending: Ending = Ending.KEPT) -> Maker:
    """A GET of an answer that comes in pieces."""
    return lambda token, random: get(token, kind, content(token, PIECED), ending=ending)


def bare(kind: str, **how: Any) -> Maker:
    """A GET of an answer without content that the application has made."""
    return lambda token, random: get(token, kind, **how)


def post(kind: str, least: int, most: int, *, chunked: bool) -> Maker:
    """A POST, answered with length and checksum."""

    def make(token: str, random: Random) -> Question:
        body = content(token, random.randrange(least, most))
        answer = f"{token} {len(body)} {zlib.crc32(body)}\n".encode("ascii")
        if chunked:
            step = random.choice((1_000, 9_000, 70_000))
            cut = [body[at : at + step] for at in range(0, len(body), step)]
            framed = b"".join(b"%x\r\n%b\r\n" % (len(part), part) for part in cut) + b"0\r\n\r\n"
            field = "Transfer-Encoding: chunked"
        else:
            framed, field = body, f"Content-Length: {len(body)}"
        request = head(token, "posted", field, method="POST") + framed
        return Question(kind, token, request, answer, method="POST")

    return make


def unread(token: str, random: Random) -> Question:
    """A POST whose body the application does not look at."""
    body = content("unread", random.choice((10, 10_000, 400_000)))
    request = head(token, "unread", f"Content-Length: {len(body)}", method="POST") + body
    return Question("unread", token, request, content(token, 100), method="POST")


def asked_for_head(token: str, random: Random) -> Question:
    """A HEAD: the head of the answer to a GET, and nothing behind it."""
    size = random.randrange(1, 2_000)
    request = head(token, f"small?size={size}", method="HEAD")
    return Question("head", token, request, method="HEAD", length=size)


def sleeps(token: str, random: Random) -> Question:
    """A GET of an answer that takes its time."""
    path = f"sleeps?seconds={random.choice((0.001, 0.005, 0.03))}"
    return get(token, path, content(token, 100))


def last(token: str, random: Random) -> Question:
    """A GET that asks for the connection to be closed."""
    question = get(token, "small", content(token, 100), "Connection: close", ending=Ending.CLOSED)
    return renamed(question, "last")


def old(token: str, random: Random) -> Question:
    """A GET of HTTP/1.0: no chunks, and the connection is closed."""
    request = head(token, "streamed", version="1.0")
    return Question("old", token, request, content(token, PIECED), ending=Ending.CLOSED)


#: Answered completely, and the connection goes on. With how often each is taken.
SOUND: dict[Maker, int] = {
    plain("small"): 30,
    in_pieces("streamed"): 8,
    in_pieces("measured"): 8,
    in_pieces("written"): 4,
    in_pieces("close_raises"): 1,
    asked_for_head: 4,
    bare("nothing", status=204): 4,
    bare("unchanged", status=304): 4,
    sleeps: 2,
    plain("restarts", status=503): 2,
    plain("too_much"): 1,
    plain("too_much_generated"): 1,
    post("posted", 1, 20_000, chunked=False): 8,
    post("posted chunked", 1, 20_000, chunked=True): 8,
    unread: 1,
    much("large", 20_000, 400_000): 1,
    much("file", 1, 400_000): 2,
}

#: Answered by the server with 500, and the connection goes on.
FAILING: dict[Maker, int] = {
    bare(kind, status=500, failed=True): 1
    for kind in (
        "raises_before", "raises_started", "raises_first", "returns_none", "returns_text",
        "returns_number", "never_starts", "starts_twice", "starts_late", "splits_value",
        "splits_name", "splits_status", "frames", "two_lengths", "exits", "interrupts",
        "exhausts_memory", "recurses",
    )
}  # fmt: skip

#: Cut in the middle, so that nobody takes what came for an answer.
CUT: dict[Maker, int] = {
    **{in_pieces(kind, Ending.CUT): 1 for kind in ("raises_between", "raises_after")},
    **{plain(kind, Ending.CUT): 1 for kind in ("yields_text", "restarts_late")},
    **{plain(kind, Ending.CUT): 1 for kind in ("too_little", "too_little_generated")},
}

#: The last on its connection.
LAST: dict[Maker, int] = {last: 1, old: 1}

#: Large requests, which spill into files.
UPLOADS: dict[Maker, int] = {
    post("upload", 300 << 10, 5 << 20, chunked=False): 1,
    post("upload chunked", 300 << 10, 5 << 20, chunked=True): 1,
}

#: Large answers, which wait for slow readers.
DOWNLOADS: dict[Maker, int] = {much("large"): 1, much("generated"): 1, much("file"): 1}

#: Answers that are longer than anybody who leaves will read.
LONG: dict[Maker, int] = {much(kind, 1_200_000): 1 for kind in ("large", "generated", "file")}

#: The end of a worker.
DYING: dict[Maker, int] = {bare(kind, ending=Ending.DIED): 1 for kind in ("aborts", "leaves")}


def choose(random: Random, *tables: dict[Maker, int]) -> Maker:
    """One of these by its weight."""
    weights = {maker: weight for table in tables for maker, weight in table.items()}
    return random.choices(list(weights), list(weights.values()))[0]


def tidying(token: str) -> Question:
    """Asks a process to give free memory back."""
    return get(token, "tidies", content(token, 100))


def endless(token: str) -> Question:
    """An answer without end; only its beginning can be checked, up to 10 MB of it."""
    return get(token, "endless", content(token, 16_384) * 600)


def renamed(question: Question, kind: str) -> Question:
    """The same, counted as something else."""
    return replace(question, kind=kind)
