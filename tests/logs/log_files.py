"""Logs as files: a server whose access log is one, who has files open, rotation."""

from __future__ import annotations

import re
import signal
from pathlib import Path

from tests.testkit.client import Connection
from tests.testkit.server import Server, wait_for

ANSWERS = "tests/apps/answers.py"
CLOSE = b"Connection: close\r\n"


def rotate(server: Server, *paths: Path, number: int = 1) -> None:
    """Give logs another name, and wait for the new files."""
    for path in paths:
        path.rename(path.with_suffix(f".{number}"))
    server.process.send_signal(signal.SIGUSR1)
    for path in paths:
        wait_for(path.exists, f"the new {path}")


class Logged(Server):
    """A server with an access log in `folder`, of the format `line`."""

    def __init__(
        self, app: str, mode: str, folder: Path, line: str, *options: str, tracebacks: bool = False
    ) -> None:
        self.path = folder / "access.log"
        logged = ("--access-log", str(self.path), "--access-log-format", line)
        workers = () if "--workers" in options else ("--workers", "1")
        super().__init__(app, mode, *workers, *logged, *options, tracebacks=tracebacks)

    def lines(self) -> list[str]:
        """Its lines by now. Whatever clients sent, they are printable ASCII."""
        data = self.path.read_bytes()
        assert re.fullmatch(rb"(?:[\x20-\x7e]*\n)*", data), data
        return data.decode().splitlines()

    def wait_lines(self, count: int) -> list[str]:
        """The same, when there are `count`: a line may come behind those of later requests."""
        wait_for(lambda: self.path.read_bytes().count(b"\n") >= count, f"{count} lines")
        assert len(self.lines()) == count
        return self.lines()

    def ask(self, target: str, method: str = "GET", fields: bytes = b"") -> Connection:
        """A client that has asked, and has not read anything."""
        client = self.connect()
        client.send(f"{method} {target} HTTP/1.1\r\nHost: a\r\n".encode() + fields + b"\r\n")
        return client
