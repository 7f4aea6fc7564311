"""The development server as a process, started by any command and awaited until ready."""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

from tests.testkit.server import READY, Server, environment, wait_for

PYTHON = (sys.executable, "-W", "error::SyntaxWarning")
DEV = (*PYTHON, "-m", "poorhttp", "dev")


def write(folder: Path, files: Mapping[str, str]) -> None:
    """Make files below a folder."""
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def save(path: Path, text: str) -> None:
    """Replace a file as editors do."""
    beside = path.with_name(f".{path.name}.new")
    beside.write_text(text)
    beside.replace(path)


class Started(Server):
    """A server that another command than `poorhttp serve` starts, on a port of its own choice."""

    def __init__(
        self,
        *words: str,
        cwd: Path,
        env: Mapping[str, str] | None = None,
        tracebacks: bool = False,
    ) -> None:
        self.tracebacks = tracebacks
        self._connections = []
        self._stdout = tempfile.TemporaryFile()  # noqa: SIM115
        self._stderr = tempfile.TemporaryFile()  # noqa: SIM115
        self.process = subprocess.Popen(
            words,
            stdout=self._stdout,
            stderr=self._stderr,
            stdin=subprocess.DEVNULL,
            cwd=cwd,
            env=environment(
                {"POORHTTP_GRACEFUL_TIMEOUT": "600", "POORHTTP_BIND": "127.0.0.1:0", **(env or {})}
            ),
            start_new_session=True,
        )
        try:
            wait_for(self._ready_or_gone, f"the ready line of {' '.join(words)}")
            found = READY.search(self.log())
            assert found, f"no ready line, exit code {self.process.returncode}:\n{self.log()}"
        except BaseException:
            self.kill()
            raise
        self.version, self.urls, self.mode, workers = found.groups()
        self.workers = int(workers)
        ports = re.findall(r"http://[\d.]+:(\d+)", self.urls)
        self.port = int(ports[0])

    def __enter__(self) -> Started:
        return self

    @property
    def said(self) -> str:
        """What it has said that it found; empty if nothing."""
        found = re.search("^poorhttp: (found .*)$", self.log(), re.MULTILINE)
        return found[1] if found else ""
