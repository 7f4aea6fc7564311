"""Stacks of a worker by `faulthandler`, which does not need the GIL.

`faulthandler` reads stacks while other threads may change them. So it is used only if the worker
runs no Python code (a C extension holds the GIL): then the stacks do not change.
"""

from __future__ import annotations

import re
import time

from poorhttp.plugins.monitor.inspection.signalling import Target
from poorhttp.plugins.monitor.inspection.stack_lists import is_serve_loop
from poorhttp.plugins.monitor.inspection.worker.area import area
from poorhttp.plugins.monitor.inspection.worker.handler import DUMP_SIGNAL

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

#: Seconds in which it must have written something, and for which nothing must have followed.
TIMEOUT = 1.0
QUIET = 0.03

#: The first line of a stack, since Python 3.14 with the name of the thread, and that of a frame.
THREAD = re.compile(
    r"(?:Current t|T)hread 0x([0-9a-f]+)(?: \[(.*)\])?[^\[\]]*\(most recent call first\):"
)
FRAME = re.compile(r'  File "(.*)", line (\d+|\?\?\?) in (.*)')


class Dumps:
    """Stacks of workers, at once or as samples.

    Attributes:
        sampled: milliseconds of each stack, by PID.
    """

    def __init__(self) -> None:
        self.sampled: dict[int, dict[str, int]] = {}

    def stacks(self, worker: Target) -> list[dict[str, Any]]:
        """Return the stacks of all threads; empty if it has no handler."""
        area.start_dump()
        if not worker.send(DUMP_SIGNAL):
            return []
        begin = changed = time.monotonic()
        text = ""
        while (now := time.monotonic()) < begin + TIMEOUT:
            time.sleep(QUIET / 3)
            if (read := area.dumped()) != text:
                text, changed = read, now
            elif text and now - changed >= QUIET:
                break
        return parsed(text)

    def sample(self, worker: Target, milliseconds: float) -> None:
        """Add a sample of a worker, which counts for so long."""
        found = self.sampled.setdefault(worker.pid, {})
        for each in self.stacks(worker):
            frames = [
                f"{frame['function']} ({'/'.join(frame['file'].rsplit('/', 2)[-2:])})"
                if not is_serve_loop(frame)
                else SERVE
                for frame in each["frames"]
            ]
            key = ";".join(name.replace(";", ",") for name in frames)
            found[key] = found.get(key, 0) + round(milliseconds)


#: The serve loop in stacks, as py-spy writes it.
SERVE = "serve (poorhttp/worker/wsgi.py)"


def parsed(text: str) -> list[dict[str, Any]]:
    """Return the stacks in what `faulthandler` has written."""
    stacks: list[dict[str, Any]] = []
    for line in text.splitlines():
        if match := THREAD.fullmatch(line):
            stacks.append(
                {
                    "name": match[2] or f"0x{match[1].lstrip('0')}",
                    "kind": "thread",
                    "thread": 0,
                    "idle": False,
                    "request": None,
                    "frames": [],
                }
            )
        elif stacks and (match := FRAME.fullmatch(line)):
            number = int(match[2]) if match[2].isdecimal() else 0
            frame = {"file": match[1], "line": number, "function": match[3]}
            stacks[-1]["frames"].insert(0, frame)
    return stacks
