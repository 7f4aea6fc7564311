"""Runs one server with a program and its clients, and records what the clients saw."""

from __future__ import annotations

import http.client
import json
import shutil
import subprocess
import time
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from tests.programs.running.application import LIMIT, Application
from tests.programs.running.environment import variables
from tests.support.proxies import reserve
from tests.testkit.server import ROOT, Program, wait_for


@dataclass
class Visit:
    """What came of it; `fault` is empty if the clients came to their end and the server to its."""

    server: str
    seen: dict[str, object] = field(default_factory=dict)
    fault: str = ""
    log: str = ""
    seconds: float = 0.0


class Place:
    """The folder of a program: prepared once, and given to each server as it was then.

    Its path and the URL stay the same, since configurations and databases contain them.
    """

    def __init__(self, name: str, application: type[Application], top: Path) -> None:
        self.name, self.application = name, application
        self.folder, self._prepared = top / "site", top / "prepared"
        self.variables = variables(name, application, self.folder)
        # Open until the end, so that nobody else is given the port.
        self._port = reserve()
        self.url = f"http://127.0.0.1:{self._port.getsockname()[1]}"

    def prepare(self) -> None:
        """Let the program write its files; a RuntimeError with its words if it fails."""
        self.folder.mkdir()
        with self.inside() as process:
            if code := ended(process):
                raise RuntimeError(f"prepare: exit code {code}\n{last_lines(process.log())}")
        shutil.copytree(self.folder, self._prepared, symlinks=True)

    def visit(self, server: str) -> Visit:
        """Start a server in a fresh copy of the folder, let clients use it, and end it."""
        shutil.rmtree(self.folder)
        shutil.copytree(self._prepared, self.folder, symlinks=True)
        visit = Visit(server)
        began = time.monotonic()
        if self.application.target:
            self._serve(visit)
        else:
            self._drive(visit)
        visit.seconds = time.monotonic() - began
        return visit

    def close(self) -> None:
        """Give up the port."""
        self._port.close()

    def inside(self, *server: str) -> Program:
        """A process that prepares the program, or visits it under a server."""
        words = ("python", "-m", "tests.programs.running.inside", self.name, self.folder, self.url)
        return Program(*words, *server, cwd=ROOT, env=self.variables)

    def _serve(self, visit: Visit) -> None:
        words = self.application(self.url, visit.server).command()
        env = self.variables
        with Program(*words, cwd=self.folder, env=env, merged=True) as server:
            try:
                wait_for(lambda: self._answers(server), "answer")
                self._drive(visit)
                # Stopped after a failure too: the workers of a killed server would answer the next.
                fault = ending(server)
                visit.fault = visit.fault or fault
            except (AssertionError, OSError, http.client.HTTPException) as error:
                visit.fault = f"the server does not answer: {error or type(error).__name__}"
            visit.log = server.log()
        if "panicked at" in visit.log:
            visit.fault = visit.fault or "the server's log tells of a panic"

    def _answers(self, server: Program) -> bool:
        code = server.process.poll()
        assert code is None, f"exit code {code}"
        address = self.url.removeprefix("http://")
        connection = http.client.HTTPConnection(address, timeout=LIMIT)
        with suppress(ConnectionRefusedError):
            connection.request("GET", self.application.path)
            return connection.getresponse().status > 0
        return False

    def _drive(self, visit: Visit) -> None:
        with self.inside(visit.server) as clients:
            code = ended(clients)
            visit.seen = dict(json.loads(line) for line in clients.output().splitlines())
            if code:
                last = next(reversed(visit.seen), "none")
                reason = last_lines(clients.log(), 8)
                visit.fault = f"exit code {code} of the clients, last step {last!r}\n{reason}"


def ended(process: Program) -> int | str:
    """Wait for the end of a process; its exit code, or that it has none."""
    try:
        return process.process.wait(LIMIT)
    except subprocess.TimeoutExpired:
        return f"none in {LIMIT} s"


def ending(server: Program) -> str:
    """Stop a server as an administrator does; what was wrong with its end."""
    if (code := server.process.poll()) is not None:
        return f"the server has ended by itself with exit code {code}"
    server.process.terminate()
    try:
        code = server.wait()
    except subprocess.TimeoutExpired:
        return "the server does not stop"
    return f"exit code {code} after SIGTERM" if code else ""


def last_lines(text: str, number: int = 15) -> str:
    return "\n".join(text.splitlines()[-number:])
