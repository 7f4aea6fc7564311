"""A Python program under test that serves by `poorhttp.serve`."""

from __future__ import annotations

import sys

from tests.testkit.server import Program


class LibraryProgram(Program):
    """A program given as text, started and waited for until it serves.

    Attributes:
        mode: what the ready line says.
        url: where it listens.
    """

    def __init__(self, text: str) -> None:
        super().__init__(sys.executable, "-c", text)
        _, self.url, self.mode, _ = self.wait_line().groups()

    def terminate(self) -> str:
        """Tell it to stop serving, and wait for the end of the program; what it has printed."""
        self.process.terminate()
        return self.end()

    def end(self) -> str:
        """Wait for the end of the program; what it has printed."""
        code = self.wait()
        assert code == 0, f"exit code {code}:\n{self.log()}"
        return self.output()
