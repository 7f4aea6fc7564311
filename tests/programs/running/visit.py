"""One server with a program, from its start to its end, and what the program's clients saw."""

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
from tests.programs.running.environment import FOLDER, variables
from tests.testkit.network.port import free_port
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

    Its path stays the same, since configurations and databases contain it.
    """

    def __init__(self, name: str, application: type[Application], top: Path) -> None:
        self.name, self.application = name, application
        self.folder, self._prepared = top / "site", top / "prepared"
        self.variables = variables(name, application, self.folder)

    def prepare(self) -> None:
        """Let the program write its files; a RuntimeError with its words if it fails."""
        self.folder.mkdir()
        with self.inside() as process:
            if code := process.process.wait(LIMIT):
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
            self._drive(visit, "")
        visit.seconds = time.monotonic() - began
        return visit

    def inside(self, *words: str) -> Program:
        """A process that prepares the program, or visits it."""
        python = str(FOLDER / self.name / "bin" / "python")
        command = (python, "-m", "tests.programs.running.inside", self.name, str(self.folder))
        return Program(*command, *words, cwd=ROOT, env=self.variables)

    def _serve(self, visit: Visit) -> None:
        port = free_port()
        words = self.application(visit.server).command(port)
        env = self.variables
        with Program(*words, cwd=self.folder, env=env, merged=True) as server:
            try:
                wait_for(lambda: self._is_ended_or_answers(server, port), "answer")
                self._drive(visit, f"http://127.0.0.1:{port}")
                visit.fault = visit.fault or ending(server)
            except (AssertionError, OSError, http.client.HTTPException) as error:
                visit.fault = f"the server does not answer: {error or type(error).__name__}"
            visit.log = server.log()
        if "panicked at" in visit.log:
            visit.fault = visit.fault or "the server's log tells of a panic"

    def _is_ended_or_answers(self, server: Program, port: int) -> bool:
        code = server.process.poll()
        assert code is None, f"exit code {code}"
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=LIMIT)
        with suppress(ConnectionRefusedError):
            connection.request("GET", self.application.path)
            return connection.getresponse().status > 0
        return False

    def _drive(self, visit: Visit, url: str) -> None:
        with self.inside(visit.server, url) as clients:
            try:
                code: int | str = clients.process.wait(LIMIT)
            except subprocess.TimeoutExpired:
                code = f"none in {LIMIT} s"
            visit.seen = dict(json.loads(line) for line in clients.output().splitlines())
            if code:
                last = next(reversed(visit.seen), "none")
                reason = last_lines(clients.log(), 8)
                visit.fault = f"exit code {code} of the clients, last step {last!r}\n{reason}"


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
    """The last lines of a log."""
    return "\n".join(text.splitlines()[-number:])
