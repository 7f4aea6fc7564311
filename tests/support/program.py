"""A Python program under test that serves by `poorhttp.serve`."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from contextlib import suppress

from tests.testkit.client import HANG
from tests.testkit.server import READY, ROOT, environment, wait_for, written


class Program:
    """A program given as text, started and waited for until it serves.

    Attributes:
        mode: what the ready line says.
        url: where it listens.
    """

    def __init__(self, text: str) -> None:
        # Closed at the end of the block.
        self._stdout = tempfile.TemporaryFile()  # noqa: SIM115
        self._stderr = tempfile.TemporaryFile()  # noqa: SIM115
        self.process = subprocess.Popen(
            [sys.executable, "-c", text],
            stdout=self._stdout,
            stderr=self._stderr,
            stdin=subprocess.DEVNULL,
            cwd=ROOT,
            env=environment(),
        )
        try:
            wait_for(
                lambda: READY.search(self.log()) or self.process.poll() is not None,
                "the ready line of the program",
            )
            found = READY.search(self.log())
            assert found, f"no ready line, exit code {self.process.returncode}:\n{self.log()}"
        except BaseException:
            self.close()
            raise
        self.url = found[2]
        self.mode = found[3]

    def __enter__(self) -> Program:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def log(self) -> str:
        """What it has written to standard error."""
        return written(self._stderr)

    def terminate(self) -> str:
        """Tell it to stop serving, and wait for the end of the program; what it has printed."""
        self.process.terminate()
        return self.end()

    def end(self) -> str:
        """Wait for the end of the program; what it has printed."""
        code = self.process.wait(HANG)
        assert code == 0, f"exit code {code}:\n{self.log()}"
        return written(self._stdout)

    def close(self) -> None:
        """End it, if it has not ended by itself."""
        with suppress(ProcessLookupError):
            self.process.kill()
        self.process.wait(HANG)
        self._stdout.close()
        self._stderr.close()
