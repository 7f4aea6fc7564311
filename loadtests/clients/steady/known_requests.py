"""Requests with known responses, and how a response is checked."""

from __future__ import annotations

import re
import zlib
from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import Enum
from random import Random

from loadtests.apps.content import content, pieces
from loadtests.apps.mixed import PIECES
from tests.testkit.client import Response

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
            self.check_tokens(response.get_all("X-Token"), response.get_all("X-Token-Header"))
            self.check_content(response.body)
        if self.length is not None and response.get("Content-Length") != str(self.length):
            raise Wrong(f"Content-Length {response.get('Content-Length')}")
        closes = response.get("Connection") == "close"
        if closes != (self.ending is Ending.CLOSED):
            raise Wrong(f"Connection: {response.get('Connection')}")

    def check_tokens(self, target: list[str], header: list[str]) -> None:
        """Compare the tokens of the answer's head; raises Wrong."""
        if target != [self.token] or header != [self.token]:
            raise Wrong(f"it is the answer to {target} and {header}, not to {self.token}")

    def check_content(self, body: bytes) -> None:
        """Compare the whole content; raises Wrong."""
        if body != self.body:
            same = next(
                (
                    at
                    for at, pair in enumerate(zip(body, self.body, strict=False))
                    if len(set(pair)) > 1
                ),
                min(len(body), len(self.body)),
            )
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
            values = [
                [v for n, _, v in fields if n == name] for name in ("X-Token", "X-Token-Header")
            ]
            self.check_tokens(*values)
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


def plain(kind: str, ending: Ending = Ending.KEPT, *, status: int = 200) -> Maker:
    """A GET of a short answer."""

    def make(token: str, random: Random) -> Question:
        size = random.randrange(1, 2_000)
        request = head(token, f"{kind}?size={size}")
        return Question(kind, token, request, content(token, size), status, ending=ending)

    return make


def in_pieces(kind: str, ending: Ending = Ending.KEPT) -> Maker:
    """A GET of an answer that comes in pieces."""

    def make(token: str, random: Random) -> Question:
        body = b"".join(pieces(token, PIECES))
        return Question(kind, token, head(token, kind), body, ending=ending)

    return make


def failing(kind: str) -> Maker:
    """A GET that the application fails before anything was sent."""

    def make(token: str, random: Random) -> Question:
        return Question(kind, token, head(token, kind), status=500, failed=True)

    return make


def dying(kind: str) -> Maker:
    """A GET that ends the process which runs it."""

    def make(token: str, random: Random) -> Question:
        return Question(kind, token, head(token, kind), ending=Ending.DIED)

    return make


def much(kind: str, least: int = 300_000, most: int = 3_000_000) -> Maker:
    """A GET of a large answer."""

    def make(token: str, random: Random) -> Question:
        size = random.randrange(least, most)
        return Question(kind, token, head(token, f"{kind}?size={size}"), content(token, size))

    return make


def empty(kind: str, status: int) -> Maker:
    """A GET of an answer without content."""

    def make(token: str, random: Random) -> Question:
        return Question(kind, token, head(token, kind), status=status)

    return make


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
    request = head(token, f"sleeps?seconds={random.choice((0.001, 0.005, 0.03))}")
    return Question("sleeps", token, request, content(token, 100))


def last(token: str, random: Random) -> Question:
    """A GET that asks for the connection to be closed."""
    request = head(token, "small", "Connection: close")
    return Question("last", token, request, content(token, 100), ending=Ending.CLOSED)


def old(token: str, random: Random) -> Question:
    """A GET of HTTP/1.0: no chunks, and the connection is closed."""
    body = b"".join(pieces(token, PIECES))
    request = head(token, "streamed", version="1.0")
    return Question("old", token, request, body, ending=Ending.CLOSED)


#: Answered completely, and the connection goes on. With how often each is taken.
SOUND: dict[Maker, int] = {
    plain("small"): 30,
    in_pieces("streamed"): 8,
    in_pieces("measured"): 8,
    in_pieces("written"): 4,
    in_pieces("close_raises"): 1,
    asked_for_head: 4,
    empty("nothing", 204): 4,
    empty("unchanged", 304): 4,
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
FAILING: dict[Maker, int] = dict.fromkeys(
    map(
        failing,
        (
            "raises_before", "raises_started", "raises_first", "returns_none", "returns_text",
            "returns_number", "never_starts", "starts_twice", "starts_late", "splits_value",
            "splits_name", "splits_status", "frames", "two_lengths", "exits", "interrupts",
            "exhausts_memory", "recurses",
        ),
    ),
    1,
)  # fmt: skip

#: Cut in the middle, so that nobody takes what came for an answer.
CUT: dict[Maker, int] = {
    in_pieces("raises_between", Ending.CUT): 1,
    in_pieces("raises_after", Ending.CUT): 1,
    plain("yields_text", Ending.CUT): 1,
    plain("restarts_late", Ending.CUT): 1,
    plain("too_little", Ending.CUT): 1,
    plain("too_little_generated", Ending.CUT): 1,
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
DYING: dict[Maker, int] = {dying("aborts"): 1, dying("leaves"): 1}


def choose(random: Random, *tables: dict[Maker, int]) -> Maker:
    """One of these by its weight."""
    makers = [maker for table in tables for maker in table]
    weights = [weight for table in tables for weight in table.values()]
    return random.choices(makers, weights)[0]


def tidying(token: str) -> Question:
    """Asks a process to give free memory back."""
    return Question("tidies", token, head(token, "tidies"), content(token, 100))


def endless(token: str) -> Question:
    """An answer without end; only its beginning can be checked, up to 10 MB of it."""
    piece = content(token, 16_384)
    return Question("endless", token, head(token, "endless"), piece * 600)


def renamed(question: Question, kind: str) -> Question:
    """The same, counted as something else."""
    return replace(question, kind=kind)
