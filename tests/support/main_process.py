"""Starts the program `commanded_main.py`, and sends it commands."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

from tests.testkit.client import Connection
from tests.testkit.server import Program, wait_for


class MainProcess(Program):
    """The program `tests.support.commanded_main`, and what it has printed so far."""

    def __init__(self, mode: str, *options: str) -> None:
        words = (sys.executable, "-m", "tests.support.commanded_main", mode, *options)
        self._expected: list[str] = []
        self._connections: list[Connection] = []
        super().__init__(*words, stdin=subprocess.PIPE)
        assert isinstance(self.process, subprocess.Popen)
        assert self.process.stdin is not None
        self._commands = self.process.stdin
        try:
            self.port = int(self.expect("listens").split()[0].rpartition(":")[2])
        except BaseException:
            self.kill()
            raise

    def __exit__(self, *_: object) -> None:
        log = self.log()
        self.kill()
        assert "panicked at" not in log, log
        assert "Traceback" not in log, log

    def _close(self) -> None:
        for connection in self._connections:
            connection.close()
        self._commands.close()
        super()._close()

    def connect(self) -> Connection:
        """A new connection, closed at the end if not before."""
        connection = Connection(("127.0.0.1", self.port))
        self._connections.append(connection)
        return connection

    def tell(self, *words: object) -> None:
        self._commands.write(" ".join(map(str, words)).encode() + b"\n")
        self._commands.flush()

    def _printed(self) -> list[str]:
        """The whole lines that nobody has expected yet."""
        lines = self.output().split("\n")[:-1]
        for line in self._expected:
            lines.remove(line)
        return lines

    def has_printed(self, text: str) -> bool:
        """Whether a line with `text` was there that nobody has expected yet."""
        return any(text in line for line in self._printed())

    def expect(self, text: str) -> str:
        """Wait for a line with `text`; the line."""
        try:
            wait_for(lambda: self.has_printed(text) or self.process.poll() is not None, text)
            assert self.has_printed(text), f"no {text}, exit code {self.process.returncode}"
        except AssertionError as error:
            raise AssertionError(f"{error}; {self._printed()}; the log is:\n{self.log()}") from None
        line = next(line for line in self._printed() if text in line)
        self._expected.append(line)
        return line

    def start(self) -> int:
        """Start a worker, and wait until it serves; its process."""
        self.tell("start")
        pid = int(self.expect("started").split()[0])
        self.expect(f"{pid} said +")
        return pid

    def retire(self, pid: int) -> None:
        """Retire a worker, and wait until it has heard so."""
        self.tell("say", pid, "r")
        self.stopped(pid)

    def stop(self, pid: int, number: signal.Signals = signal.SIGTERM) -> None:
        """Stop a worker by a signal, and wait until it has heard so."""
        self.tell("kill", pid, int(number))
        self.stopped(pid)

    def stopped(self, pid: int) -> None:
        """Wait until a worker does not listen any more."""
        wait_for(lambda: not self._listens(pid), f"process {pid} stops to listen")

    def _listens(self, pid: int) -> bool:
        listening = f":{self.port:04X} 00000000:0000 0A "
        inodes = {
            f"socket:[{line.split()[9]}]"
            for line in Path("/proc/net/tcp").read_text().splitlines()
            if listening in line
        }
        try:
            return any(os.readlink(fd) in inodes for fd in Path(f"/proc/{pid}/fd").iterdir())
        except FileNotFoundError:
            # One was closed meanwhile, or all were.
            return Path(f"/proc/{pid}/fd").exists()
        except PermissionError:
            # It has ended, and its parent has not noticed yet: only root may look there.
            return False

    def replace(self, pid: int) -> int:
        """Start another worker, and only then retire this one."""
        other = self.start()
        self.retire(pid)
        return other

    def has_ended(self, pid: int) -> bool:
        return self.has_printed(f"{pid} ended")

    def ended(self, pid: int) -> None:
        """Wait for the end of a worker, which must be a good one."""
        self.expect(f"{pid} ended 0")

    def entered(self, path: object) -> None:
        """Wait until a request for the file `path` has entered the application."""
        wait_for(lambda: f"entered {path}\n" in self.log(), f"a request for {path}")
