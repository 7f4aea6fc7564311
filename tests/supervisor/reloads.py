"""A reload (HUP) under test, and what the main process says at its end."""

from __future__ import annotations

import re
import signal

from tests.testkit.server import Program, wait_for

#: A whole line: it is written in pieces.
ENDED = re.compile(r"^.*reloaded.*(?=\n)", re.MULTILINE)


def end_of_reload(server: Program) -> str:
    """Tell a main process to reload, and wait until it says how that has ended; the line."""
    start = server.log_size()
    server.process.send_signal(signal.SIGHUP)
    wait_for(lambda: ENDED.search(server.log(start)), "the end of the reload")
    found: list[str] = ENDED.findall(server.log(start))
    return found[0]


def reload(server: Program) -> None:
    """Have it reload."""
    line = end_of_reload(server)
    assert "reloaded: the new version serves" in line, line


def refused_reload(server: Program) -> str:
    """Have it refuse to reload; the line that says why."""
    line = end_of_reload(server)
    assert "not reloaded; the previous version keeps serving" in line, line
    return line
