"""A running server: started on its core, awaited, checked, stopped."""

from __future__ import annotations

import contextlib
import os
import re
import string
import subprocess
import sys
import sysconfig
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import BinaryIO

from loadtests import programs
from loadtests.clients.connection import Answer, Connection, request_bytes
from loadtests.clients.native import compiled
from loadtests.errors import ServerFailure
from loadtests.measure.listeners import Listeners, ports
from loadtests.measure.process_tree import ProcessTree
from loadtests.measure.resources import cpu_seconds, descriptors
from loadtests.measure.waiting import patience, wait_until
from loadtests.network.hosts import Host
from loadtests.network.port import LOOPBACK, free_port
from loadtests.python_path import lab_folder
from loadtests.servers.application import Application
from loadtests.servers.registry import Server
from loadtests.servers.registry.given import Given
from loadtests.servers.registry.server import BASELINE
from loadtests.store import without_paths

START_SECONDS = patience(20.0)
ANSWER_SECONDS = patience(5.0)
"""For each answer of a server that has just started."""
STOP_SECONDS = patience(5.0)
KEPT_LINES = 12
"""Lines of its output that are shown of a server that the lab does not know."""
ATTEMPT_SECONDS = 0.0005
QUIET_SECONDS = 0.3
BUSY_SECONDS = 0.015
"""CPU time in QUIET_SECONDS from which on it is not quiet."""


def _first_line(answer: Answer) -> str:
    """The first line of a text or of a page that is not empty, without what is markup."""
    text = re.sub(r"<[^>]*>", "", answer.body.decode("utf-8", "replace"))
    return next(filter(None, map(str.strip, text.splitlines())), "it has no body")[:200]


class Running:
    """A started server, as a context manager. `core` pins it; None leaves it all cores.

    Entering waits until `request` (default: a GET of `target`) gets the answer of the application
    (default: the server's own), and raises ServerFailure if it does not within START_SECONDS or
    gets another one. `folder` vanishes with the run; `environ` goes to the environment.

    `first` is the further port that commands name so.

    `main` is the process that gets signals: the one that was started, until somebody knows of a
    successor. On a `host` of a network it listens at its address `ip`, and is checked from there;
    whoever loads it has to be on a host of that network himself.
    """

    def __init__(
        self,
        server: Server,
        application: Application | None = None,
        *,
        target: str = "/",
        request: bytes | None = None,
        body: bytes = b"",
        count: int = 1,
        core: int | None = None,
        environ: Mapping[str, str] | None = None,
        host: Host | None = None,
    ) -> None:
        if server.own:
            application, target, body, count = server.application, server.target, b"", 1
            request = request_bytes(target)
        application = application or server.application
        assert application
        self.server = server
        self.application = application
        self.host = host
        self.ip = host.address if host else LOOPBACK
        with self._there():
            self.port = server.listens if isinstance(server, Given) else 0
            self.port = self.port or free_port()
        self.answer = application.answer(target, body)
        self.request = request or request_bytes(target)
        self._count = count
        self._core = core
        self._temporary = tempfile.TemporaryDirectory(prefix="loadtests-")
        self.folder = Path(self._temporary.name)
        # Apache's processes are somebody else's.
        self.folder.chmod(0o755)
        self._said = self.folder / "output"
        self.main = 0
        path = {"PYTHONPATH": os.pathsep.join([lab_folder(), str(application.path)])}
        self._environ = {
            **os.environ,
            # Many servers listen where PORT says if they are not told otherwise.
            **({"PORT": str(self.port)} if server.own else path),
            **{name: value.format(folder=self.folder) for name, value in (environ or {}).items()},
        }
        (self.folder / "body").write_bytes(self.answer.body)
        longest = int(Path("/proc/sys/net/core/somaxconn").read_text(encoding="ascii"))
        self.first = free_port()
        values = {
            "python": sys.executable,
            "scripts": sysconfig.get_path("scripts"),
            "port": self.port,
            "first": self.first,
            "second": free_port(),
            "module": application.module,
            "callable": application.name,
            # uWSGI refuses more.
            "backlog": min(2048, longest),
            "folder": self.folder,
            "root": application.path,
            "log": self.folder / "access.log",
            "floor": compiled.program(BASELINE) if "{floor}" in server.command else "",
            "body": self.folder / "body",
            "content_type": self.answer.content_type,
            "request_body": len(body),
            **{name: programs.path(name) for name in server.programs},
        }
        for name, text in server.files:
            template = string.Template(text.replace(LOOPBACK, self.ip))
            (self.folder / name).write_text(template.safe_substitute(values), encoding="utf-8")
        self.command = server.argv(values, self.ip)

    def _there(self) -> contextlib.AbstractContextManager[None]:
        """A block in which this thread opens sockets and starts processes on the server's host."""
        return self.host.inside() if self.host else contextlib.nullcontext()

    def connect(self) -> Connection:
        """A connection from the server's own host. OSError if nothing listens."""
        with self._there():
            return Connection(self.port, ANSWER_SECONDS, address=self.ip, tls=self.server.tls)

    def _processes(self, output: BinaryIO) -> ProcessTree | Listeners:
        if isinstance(self.server, Given) and self.server.listens:
            return Listeners(self.port, self._core)
        return ProcessTree(
            self.command,
            self._core,
            cwd=self.application.path,
            env=self._environ,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
        )

    def __enter__(self) -> Running:
        with self._said.open("wb") as output:
            self._tree = self._processes(output)
            started = time.perf_counter()
            try:
                with self._there():
                    self.main = self._tree.__enter__().main
                self._wait()
                self.first_answer_seconds = time.perf_counter() - started
                if self._count > 1:
                    self._check(self.connect(), self._count)
            except BaseException:
                self.stop()
                raise
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def _wait(self) -> None:
        deadline = time.monotonic() + START_SECONDS
        while not self.is_ready():
            if (code := self._tree.code()) is not None:
                raise ServerFailure(f"it ended with exit code {code}: {self.last_words()}")
            if time.monotonic() > deadline:
                where = f" at port {self.port}" if self.server.is_told_its_port else ""
                elsewhere = ", ".join(map(str, ports(self.left())))
                but = f", but it does at {elsewhere}" if elsewhere else ""
                raise ServerFailure(
                    f"nothing listens{where} after {START_SECONDS:.0f} s{but}: {self.last_words()}"
                )
            time.sleep(ATTEMPT_SECONDS)

    def is_ready(self) -> bool:
        """Whether it listens; then it has answered rightly, too, or ServerFailure is raised."""
        if not self.server.is_told_its_port:
            self.port = next(iter(ports(self.left())), self.port)
        try:
            connection = self.connect()
        except OSError:
            return False
        self._check(connection, 1)
        return True

    def _check(self, connection: Connection, count: int) -> None:
        with connection:
            try:
                answers = connection.ask(self.request, count)
            except (OSError, ServerFailure) as error:
                asked = f"{count} pipelined requests" if count > 1 else "a request"
                said = f"; {self.last_words()}" if self.server.given else ""
                raise ServerFailure(f"{asked}: {error}{said}") from None
        right = self.answer
        for answer in answers:
            if self.server.own and not self.application.accepts(answer, right):
                [host] = re.findall(rb"(?im)^(host:[^\r]*)", self.request) or [b"no Host"]
                other = "; --path names another path" if answer.status == 404 else ""
                raise ServerFailure(
                    f"GET {self.server.target} ({host.decode('latin-1')}) is answered "
                    f"{answer.status}, not 200: {_first_line(answer)}{other}"
                )
            if not self.application.accepts(answer, right):
                raise ServerFailure(
                    f"its answer is wrong: status {answer.status} and {len(answer.body)} bytes, "
                    f"expected {right.status} and {len(right.body)} bytes"
                )

    def processes(self) -> list[int]:
        """All processes of the server. Raises ServerFailure if it has died."""
        found = self.left()
        if self.main not in found:
            code = self._tree.code()
            raise ServerFailure(f"it died, exit code {code}: {self.last_words()}")
        return found

    def idle_descriptors(self, seconds: float) -> int:
        """Open files without clients: at rest, as the one that checked it has left, or by then."""
        wait_until(self.is_quiet, seconds, 0)
        return descriptors(self.processes())

    def is_quiet(self) -> bool:
        """Whether it does next to nothing for a moment: no process of it ends either."""
        try:
            before = cpu_seconds(self.processes())
            time.sleep(QUIET_SECONDS)
            return cpu_seconds(self.processes()) - before < BUSY_SECONDS
        except ServerFailure:
            # Raised again if it is the server that has ended.
            self.processes()
            return False

    def settle(self, workers: int, seconds: float) -> None:
        """Waits until all workers have begun: the first answers before. Raises ServerFailure."""
        if not wait_until(lambda: len(self.processes()) > workers and self.is_quiet(), seconds):
            raise ServerFailure(f"it does not come to rest with {workers} workers")

    def left(self) -> list[int]:
        """All processes of the server, if there are any."""
        return self._tree.processes()

    def output(self) -> str:
        with contextlib.suppress(OSError):
            return self._said.read_text(encoding="utf-8", errors="replace")
        return ""

    def last_words(self) -> str:
        """The last lines it wrote: two, or more of a server that the lab does not know."""
        lines = self.output().strip().splitlines()
        if self.server.given and len(lines) > 1:
            return "it said:\n  " + "\n  ".join(lines[-KEPT_LINES:])
        return f"it said: {without_paths(' / '.join(lines[-2:]))}" if lines else "it said nothing"

    def at(self, target: str) -> str:
        """What is asked for in place of a target: of an application of its own always the same."""
        return self.server.target if self.server.own else target

    def stop(self) -> None:
        """Asks every process to end, kills what is left after STOP_SECONDS, waits for all."""
        try:
            self._tree.stop(STOP_SECONDS)
        finally:
            self._temporary.cleanup()
