"""Serial and parallel clients in Python, as of 2010: `python -m loadtests.clients.asker`.

One asks in series: connect, send, wait for the first 15 characters and then for the whole page, and
only then the next. The other has so many threads at once, each of which lives for one request.
"""

from __future__ import annotations

import json
import platform
import socket
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from loadtests.clients import program
from loadtests.clients.client import Job
from loadtests.clients.load import ERRORS, Load, of_times
from loadtests.clients.program import MARK, TIMES

ANSWERED = 15
RECEIVE = 65536
PATIENCE = 5.0
"""Seconds to wait for the next octet."""


@dataclass
class Seen:
    """Seconds to the first characters and to the end of the pages that came; what failed."""

    answers: list[float] = field(default_factory=list)
    pages: list[float] = field(default_factory=list)
    octets: int = 0
    errors: Counter[str] = field(default_factory=Counter)


def ask(address: tuple[str, int], request: bytes, seen: Seen) -> None:
    """Makes a request on a connection of its own and notes what became of it."""
    begun = time.perf_counter()
    kind = "connect"
    try:
        with socket.create_connection(address, PATIENCE) as connection:
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
        return
    except OSError:
        seen.errors[kind] += 1
        return
    if len(page) < ANSWERED:
        seen.errors["read"] += 1
        return
    if page.split(b" ", 2)[1] != b"200":
        seen.errors["status"] += 1
        return
    seen.answers.append(answered - begun)
    seen.pages.append(time.perf_counter() - begun)
    seen.octets += size


def in_series(one: Callable[[], None], until: float, count: int) -> None:
    """One request after the other."""
    assert count == 1
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


def load(seen: Seen, seconds: float, cpu_seconds: float) -> Load:
    """The load that the clients saw."""
    times, answers = ([1e6 * one for one in values] for values in (seen.pages, seen.answers))
    return of_times(times, seconds, seen.octets, seen.errors, cpu_seconds, answers)


def run(job: Job, way: str) -> Load:
    """Asks as long as a job says."""
    address = (job.host, job.port)
    text = f"GET {job.target} HTTP/1.1\r\nHost: {job.host}\r\nConnection: close\r\n\r\n"
    request, seen = text.encode("ascii"), Seen()
    cpu, begun = time.process_time(), time.perf_counter()
    WAYS[way](lambda: ask(address, request, seen), begun + job.seconds, job.connections)
    return load(seen, time.perf_counter() - begun, time.process_time() - cpu)


def line(found: Load) -> str:
    """The line that says it."""
    said = {
        "requests": found.requests,
        "microseconds": round(found.seconds * 1e6),
        "bytes": found.octets,
        **{name: getattr(found, name) for name in TIMES},
        "cpu_us": found.busy * found.seconds * 1e6,
        **{kind: found.errors.get(kind, 0) for kind in ERRORS},
    }
    return MARK + json.dumps(said)


def version() -> str:
    """The version of Python."""
    return f"Python {platform.python_version()}"


def serial(job: Job, core: int | None) -> Load:
    """One request after the other, whatever the number of connections, each on one of its own."""
    return _perform("series", replace(job, connections=1), core)


def threads(job: Job, core: int | None) -> Load:
    """A thread for each request, so many as there are connections, each on one of its own."""
    return _perform("threads", job, core)


def _perform(way: str, job: Job, core: int | None) -> Load:
    """In a process of its own."""
    given = [job.host, str(job.port), job.target, str(job.connections), str(job.seconds)]
    command = [sys.executable, "-m", "loadtests.clients.asker", way, *given]
    return program.run(command, job.seconds, core)


def main() -> None:
    """Does the job that the command line describes."""
    way, host, port, target, connections, seconds = sys.argv[1:]
    job = Job(int(port), float(seconds), int(connections), target, keep=False, host=host)
    print(line(run(job, way)))


if __name__ == "__main__":
    main()
