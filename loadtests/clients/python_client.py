"""Serial and parallel HTTP clients in Python, as a study of 2010 had them: a program.

`python -m loadtests.clients.python_client`.

One asks in series: connect, send, wait for the first 15 characters and then for the whole page, and
only then the next. The other has so many threads at once, each of which lives for one request.
"""

from __future__ import annotations

import json
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from socket import create_connection

from loadtests.clients import program
from loadtests.clients.load import Job, Load, of_times
from loadtests.measure.waiting import patience

ANSWERED = 15
RECEIVE = 65536
PATIENCE = patience(5.0)
"""Seconds to wait for the next byte."""


@dataclass
class Seen:
    """Seconds to the first characters and to the end of the pages that came; what failed."""

    answers: list[float] = field(default_factory=list)
    pages: list[float] = field(default_factory=list)
    octets: int = 0
    errors: Counter[str] = field(default_factory=Counter)

    def line(self, seconds: float, cpu_seconds: float) -> str:
        """The line that tells the load that the clients saw."""
        pages, answers = ([1e6 * one for one in times] for times in (self.pages, self.answers))
        load = of_times(pages, seconds, self.octets, self.errors, cpu_seconds, answers)
        return program.MARK + json.dumps(asdict(load))


def ask(address: tuple[str, int], request: bytes, seen: Seen) -> None:
    """Makes a request on a connection of its own and notes what became of it."""
    begun = time.perf_counter()
    kind = "connect"
    try:
        with create_connection(address, PATIENCE) as connection:
            kind = "write"
            connection.sendall(request)
            kind = "read"
            page = b""
            while len(page) < ANSWERED and (more := connection.recv(RECEIVE)):
                page += more
            answered = time.perf_counter()
            size = len(page)
            while more := connection.recv(RECEIVE):
                size += len(more)
    except TimeoutError:
        seen.errors["timeout"] += 1
    except OSError:
        seen.errors[kind] += 1
    else:
        if len(page) < ANSWERED:
            seen.errors["read"] += 1
        elif page.split(b" ", 2)[1] != b"200":
            seen.errors["status"] += 1
        else:
            seen.answers.append(answered - begun)
            seen.pages.append(time.perf_counter() - begun)
            seen.octets += size


def in_series(one: Callable[[], None], until: float, _count: int) -> None:
    """One request after the other, whatever the number of connections."""
    while time.perf_counter() < until:
        one()


def in_threads(one: Callable[[], None], until: float, count: int) -> None:
    """So many threads at once; another one when one has ended."""
    free = threading.Semaphore(count)

    def run() -> None:
        try:
            one()
        finally:
            free.release()

    while time.perf_counter() < until:
        free.acquire()
        threading.Thread(target=run).start()
    for _ in range(count):
        free.acquire()


WAYS = {"series": in_series, "threads": in_threads}


def drive(job: Job, core: int | None, way: str) -> Load:
    """Does a job one of these WAYS, in a process of its own, each request on its own connection."""
    given = [job.host, str(job.port), job.target, str(job.connections), str(job.seconds)]
    command = [sys.executable, "-m", "loadtests.clients.python_client", way, *given]
    return program.run(command, job.seconds, core)


def main(way: str, host: str, port: str, target: str, connections: str, seconds: str) -> None:
    """Does the job that the command line describes."""
    text = f"GET {target} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n"
    address, request, seen = (host, int(port)), text.encode("ascii"), Seen()
    cpu, begun = time.process_time(), time.perf_counter()
    WAYS[way](lambda: ask(address, request, seen), begun + float(seconds), int(connections))
    print(seen.line(time.perf_counter() - begun, time.process_time() - cpu))


if __name__ == "__main__":
    main(*sys.argv[1:])
