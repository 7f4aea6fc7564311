"""The command `instructions`: processor instructions of one request in each mode, on two commits.

Callgrind counts what the server executes in user space, with `supervisor = off`, so that it is one
process. The count is the same on a busy machine: one in a hundred can be seen, for which durations
would have to be measured for hours. The kernel's work is not counted.
"""

from __future__ import annotations

import argparse
import re
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from loadtests import programs
from loadtests.arguments import number
from loadtests.clients.connection import Connection
from loadtests.commits import builds
from loadtests.commits.builds import Build
from loadtests.errors import ServerFailure
from loadtests.servers.certificate import certificate
from loadtests.servers.poorhttp_server import PoorhttpServer

MODES = ("single", "forking", "threading", "gevent")

APPLICATION = """\
def application(environ, start_response):
    if environ["REQUEST_METHOD"] == "POST":
        environ["wsgi.input"].read()
    start_response("200 OK", [("Content-Type", "text/plain"), ("Content-Length", "13")])
    return [b"Hello, world!"]
"""
FILE = b"0123456789abcde\n" * 94
POST = b"name=value&" * 93

ANSWER_SECONDS = 60.0
"""Under callgrind everything takes fifty times as long."""


class Subject(NamedTuple):
    """A kind of request: its octets, and whether each goes over a connection of its own by TLS."""

    name: str
    octets: bytes
    handshake: bool = False


SUBJECTS = (
    Subject("kept request", b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"),
    Subject(
        "POST, 1 KB",
        b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/x-www-form-urlencoded\r\n"
        b"Content-Length: %d\r\n\r\n%b" % (len(POST), POST),
    ),
    Subject("file, 1.5 KB", b"GET /files/page.txt HTTP/1.1\r\nHost: localhost\r\n\r\n"),
    Subject(
        "TLS handshake",
        b"GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n",
        handshake=True,
    ),
)
HANDSHAKES = 50
"""One handshake takes as long as this many requests."""


def add(commands: Any) -> None:
    words = "instructions of a request in each mode, on two commits"
    parser = commands.add_parser("instructions", help=words)
    builds.add_arguments(parser, rounds=5, counts="least")
    whole = number(1, 100_000, kind=int)
    parser.add_argument("--requests", type=whole, default=1000, metavar="N", help="default 1000")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace, _: str) -> int:
    """Builds both commits, counts, and prints the table; returns the exit code."""
    for program in ("valgrind", "openssl"):
        programs.path(program)
    pair = builds.chosen(options)
    print(f"{'mode':10} {'':15} {pair[0].name:>12} {pair[1].name:>12} {'ratio':>8}   spread")
    for mode in MODES:
        found = [count(build, mode, options.requests, options.rounds) for build in pair]
        for subject in SUBJECTS:
            before, after = (each[subject.name] for each in found)
            # What happens beside the requests, such as a timer, only adds.
            old, new = min(before), min(after)
            spread = max(statistics.median(one) / min(one) - 1 for one in (before, after))
            print(
                f"{mode:10} {subject.name:15} {old:12,.0f} {new:12,.0f} {new / old:8.4f}"
                f"   {spread:.1%}",
                flush=True,
            )
    print(f"instructions in user space, the least of {options.rounds} rounds")
    print("spread: how far the median is above the least")
    return 0


def count(build: Build, mode: str, requests: int, rounds: int) -> dict[str, list[float]]:
    """Instructions of one request of each kind in each round. Raises ServerFailure."""
    found: dict[str, list[float]] = {subject.name: [] for subject in SUBJECTS}
    with served(build, mode) as server:
        for subject in SUBJECTS:
            times = max(requests // HANDSHAKES, 1) if subject.handshake else requests
            # The first ones allocate what the others use again.
            server.ask(subject, times)
            for _ in range(rounds):
                found[subject.name].append(server.instructions(subject, times) / times)
            print(f"{build.name}: {mode}, {subject.name}", file=sys.stderr, flush=True)
    return found


class Counted:
    """A server under callgrind, which is idle between the calls."""

    def __init__(self, folder: Path, server: PoorhttpServer) -> None:
        self._folder, self._server = folder, server

    def ask(self, subject: Subject, times: int) -> None:
        """Send so many requests, each after the answer to the one before."""
        tls = subject.handshake
        for _ in range(times if tls else 1):
            port = self._server.ports["https" if tls else "http"]
            with Connection(port, ANSWER_SECONDS, tls=tls) as connection:
                for _ in range(1 if tls else times):
                    [answer] = connection.ask(subject.octets)
                    if answer.status != 200:
                        raise ServerFailure(f"{subject.name}: the answer is {answer}")

    def instructions(self, subject: Subject, times: int) -> int:
        """Instructions that so many requests take together."""
        self._control("--zero")
        self.ask(subject, times)
        before = set(self._folder.glob("callgrind.*"))
        self._control("--dump")
        [dump] = set(self._folder.glob("callgrind.*")) - before
        [total] = re.findall(r"^totals: (\d+)", dump.read_text(encoding="utf-8"), re.M)
        dump.unlink()
        return int(total)

    def _control(self, word: str) -> None:
        """Have callgrind set its counters to zero, or write them down."""
        done = subprocess.run(
            ["callgrind_control", word, str(self._server.main)],
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode or "OK" not in done.stdout:
            raise ServerFailure(f"callgrind_control {word}: {(done.stdout + done.stderr).strip()}")


@contextmanager
def served(build: Build, mode: str) -> Iterator[Counted]:
    """A server of this build in this mode under callgrind, until the block ends."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "hello.py").write_text(APPLICATION, encoding="ascii")
        (folder / "files").mkdir()
        (folder / "files" / "page.txt").write_bytes(FILE)
        for file, text in certificate().items():
            (folder / file).write_text(text, encoding="ascii")
        options = f"--mode {mode} --workers 1 --supervisor off --bind https://127.0.0.1:0"
        with PoorhttpServer(
            str(folder / "hello.py:application"),
            *options.split(),
            *("--tls-certificate", str(folder / "cert.pem"), "--tls-key", str(folder / "key.pem")),
            *("--static", f"/files={folder}/files"),
            environ=build.environ(),
            # Not that of the lab, in which Python would find this clone's server first.
            folder=folder,
            launcher=(
                *(programs.path("valgrind"), "--tool=callgrind", "--quiet"),
                f"--callgrind-out-file={folder}/callgrind.%p",
            ),
        ) as server:
            yield Counted(folder, server)
