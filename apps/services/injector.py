"""A TCP service that loads a web server with requests, and answers with the times measured.

The client may say in a line what to do. For one that says nothing within a second, or does not
even wait for the figures, it is what the variable INJECT of the environment says:

    $ echo 'http://127.0.0.1:8080/index 5000 random5' | nc 127.0.0.1 1965

URL, number of requests, and which: `randomN` puts a random number from 1 to N and `.html` behind
the URL, `eachN` asks for each of these in turn, the same share of the requests. Without it all are
for the URL itself. Each request has a connection of its own, as in REBOL, where the idea is from.

Only this machine is fired at, unless INJECT_HOSTS names others, with blanks between them.
"""

from __future__ import annotations

import os
import random
import socket
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import SplitResult, urlsplit

if TYPE_CHECKING:
    from collections.abc import Iterator

#: The test R99 of the study: 5,000 requests for one of five pages.
DEFAULT = "http://127.0.0.1:8080/index 5000 random5"

#: Nobody shall have us fire for ever.
MOST_REQUESTS = 100_000
LONGEST = 300.0
#: Seconds that a client may take to say what it wants.
SILENCE = 1.0
#: Seconds that a server may take to answer, and a client to take its figures.
PATIENCE = 10.0
#: Octets of an answer: one without an end is wrong.
LARGEST = 64 << 20
#: Octets of a client's line.
LONGEST_LINE = 1_000


class Order(NamedTuple):
    """What to do: `pages` is 0 for the URL itself, otherwise how many pages there are."""

    url: SplitResult
    requests: int
    is_random: bool
    pages: int


class Figures(NamedTuple):
    """How it went: seconds in all, seconds of each answer that was right, and how many were not."""

    total: float
    times: list[float]
    errors: int

    def __str__(self) -> str:
        answered = len(self.times)
        each = [1000 * seconds for seconds in self.times] or [0.0]
        lines = {
            "requests": f"{answered + self.errors}",
            "errors": f"{self.errors}",
            "total": f"{self.total:.3f} s",
            "mean": f"{sum(each) / len(each):.3f} ms",
            "min": f"{min(each):.3f} ms",
            "max": f"{max(each):.3f} ms",
            "rate": f"{answered / self.total if self.total else 0:.1f} requests/s",
        }
        return "".join(f"{name:<9}{figure}\n" for name, figure in lines.items())


def handler(sock: socket.socket, address: Any) -> None:
    """Do what the client wants, and tell how it went."""
    try:
        order = read_order(first_line(sock) or os.environ.get("INJECT") or DEFAULT)
    except ValueError as error:
        answer = f"error    {error}\n"
    else:
        answer = str(fire(order))
    sock.settimeout(PATIENCE)
    sock.sendall(answer.encode())


def first_line(sock: socket.socket) -> str:
    """What the client says."""
    line = b""
    sock.settimeout(SILENCE)
    with suppress(TimeoutError):
        while b"\n" not in line and len(line) < LONGEST_LINE and (more := sock.recv(LONGEST_LINE)):
            line += more
    return line.partition(b"\n")[0].decode("ascii", "replace").strip()


def read_order(line: str) -> Order:
    """Understand a line; ValueError says what is wrong with it."""
    text, count, pages, *rest = [*line.split(), "", ""]
    if any(rest):
        raise ValueError("say URL, number of requests, and randomN or eachN")
    url = urlsplit(text)
    # Raises where it is none.
    _ = url.port
    if url.scheme != "http" or not url.hostname:
        raise ValueError("the URL should look like http://127.0.0.1:8080/index")
    allowed = ["127.0.0.1", "::1", "localhost", *os.environ.get("INJECT_HOSTS", "").split()]
    if url.hostname not in allowed:
        raise ValueError(f"only {', '.join(allowed)} may be fired at (INJECT_HOSTS)")
    requests = number(count or "1", MOST_REQUESTS)
    is_random = pages.startswith("random")
    if pages and not is_random and not pages.startswith("each"):
        raise ValueError("which pages is said by randomN or eachN")
    return Order(
        url,
        requests,
        is_random,
        number(pages.removeprefix("random").removeprefix("each"), 1_000) if pages else 0,
    )


def number(text: str, most: int) -> int:
    """Read a number from 1 to `most`."""
    if not (text.isascii() and text.isdigit() and 1 <= int(text) <= most):
        raise ValueError(f"{text or 'nothing'} is no number from 1 to {most}")
    return int(text)


def fire(order: Order) -> Figures:
    """Ask, one request after another."""
    times = []
    errors = 0
    begun = time.perf_counter()
    for path in paths(order):
        before = time.perf_counter()
        if before - begun > LONGEST:
            break
        if ask(order.url.hostname or "", order.url.port or 80, path):
            times.append(time.perf_counter() - before)
        else:
            errors += 1
    return Figures(time.perf_counter() - begun, times, errors)


def paths(order: Order) -> Iterator[str]:
    """The paths to ask for."""
    path = order.url.path or "/"
    query = f"?{order.url.query}" if order.url.query else ""
    for count in range(order.requests):
        page = ""
        if order.is_random:
            page = f"{random.randint(1, order.pages)}.html"
        elif order.pages:
            page = f"{1 + count * order.pages // order.requests}.html"
        yield f"{path}{page}{query}"


def ask(host: str, port: int, path: str) -> bool:
    """Ask for a page and read the whole answer; whether it was as it should be."""
    name = f"[{host}]" if ":" in host else host
    until = time.perf_counter() + PATIENCE
    answer = bytearray()
    request = f"GET {path} HTTP/1.1\r\nHost: {name}:{port}\r\nConnection: close\r\n\r\n"
    try:
        with socket.create_connection((host, port), PATIENCE) as connection:
            connection.sendall(request.encode("ascii", "replace"))
            while more := connection.recv(65536):
                answer += more
                if len(answer) > LARGEST or time.perf_counter() > until:
                    return False
    except OSError:
        return False
    head, _, body = bytes(answer).partition(b"\r\n\r\n")
    status, *fields = head.lower().split(b"\r\n")
    lengths = [value.strip() for name, _, value in map(field, fields) if name == b"content-length"]
    length = str(len(body)).encode()
    return b" 200 " in status and all(told == length for told in lengths)


def field(line: bytes) -> tuple[bytes, bytes, bytes]:
    """Name, colon and value of a header."""
    return line.partition(b":")
