"""A binary upgrade (USR2) under test: the old main process, the new one, and their end."""

from __future__ import annotations

import os
import signal
from pathlib import Path

from tests.testkit.process import lives
from tests.testkit.server import Server, wait_for


def upgrade(server: Server, pidfile: Path, times: int = 1) -> int:
    """Tell the main process to let another take over, the so manyeth time; the new one."""
    old = int(pidfile.read_text())
    os.kill(old, signal.SIGUSR2)
    server.wait_log("has taken over", times)
    wait_for(lambda: int(pidfile.read_text()) != old, "the number of the new main process")
    wait_for_end(old, server)
    return int(pidfile.read_text())


def wait_for_end(pid: int, server: Server) -> None:
    """Wait until a process has ended; the one that we have started is our child."""

    def ended() -> bool:
        if pid == server.process.pid:
            return server.process.poll() is not None
        return not lives(pid)

    wait_for(ended, f"the end of process {pid}")


def end(server: Server, pid: int) -> None:
    """Stop the main process that has taken over, and check what is left behind."""
    os.kill(pid, signal.SIGTERM)
    wait_for_end(pid, server)
    server.ended()
